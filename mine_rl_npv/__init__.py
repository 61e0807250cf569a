"""Open-pit mine scheduling: block models, exact bounds, environments and learned schedules."""
