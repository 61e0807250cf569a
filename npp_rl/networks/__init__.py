"""The parts of the attention network, from branches to policy and value."""
