"""Vector environments: one interface over in-process batches, threads and workers."""

from frugal_rl.vec_env.interface import EndedEpisodes, Step, VectorEnv

__all__ = ["EndedEpisodes", "Step", "VectorEnv"]
