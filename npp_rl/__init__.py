"""The attention agent for N++: networks, objectives, pretraining, evaluation."""
