"""A plug-in: an environment, a codec, a network and an algorithm that the core knows nothing of."""
