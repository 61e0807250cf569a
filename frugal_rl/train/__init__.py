"""Training: policy, learner, loop, evaluation, checkpoints. The only core room with torch."""
