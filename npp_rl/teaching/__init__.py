"""Learning from winning inputs before and beside reinforcement."""
