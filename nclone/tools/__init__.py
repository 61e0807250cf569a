"""What can be done with N++ besides training, a module each; see `frugal_rl.run.tools`."""
