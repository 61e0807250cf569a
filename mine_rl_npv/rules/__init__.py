"""What a step does: layout of a mine, extraction by period, destination or day, macro actions."""
