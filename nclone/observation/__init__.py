"""What an agent sees of N worlds, written per call: state, dangers, places."""
