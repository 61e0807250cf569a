"""Memory: what a run may hold, what it will hold, what it held."""

from frugal_rl.memory.profile import MemoryProfile
from frugal_rl.observation.choices import FrameStack, Label, Storage

__all__ = ["FrameStack", "Label", "MemoryProfile", "Storage"]
