"""`python -m frugal_rl train env=nclone`: the console command, wherever the package lies."""

try:
    from frugal_rl.cli import main
except ImportError as missing:
    raise SystemExit(f"{missing}. Use .venv/bin/python (make train), or pip install .") from None

main()
