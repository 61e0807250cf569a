"""Learning: learners, policies, networks and the update."""
