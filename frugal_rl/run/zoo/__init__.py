"""`algo=zoo`: hyperparameter files of RL Baselines3 Zoo, read as they are."""
