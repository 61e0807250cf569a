"""Pits, bounds, schedules and the checker that trusts none of them."""
