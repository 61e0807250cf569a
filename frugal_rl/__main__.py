"""`python -m frugal_rl train env=nclone`: the console command, wherever the package lies."""

from frugal_rl.cli import main

main()
