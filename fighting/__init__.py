"""Game Boy fighting games on PyBoy: an own cartridge, environments, self-play."""
