"""What can be done with the agent besides training: one module per tool."""
