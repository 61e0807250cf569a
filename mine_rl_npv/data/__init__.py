"""Block models, MineLib files, synthetic deposits and their realisations."""

from mine_rl_npv.data.instance import Graph, Instance
from mine_rl_npv.data.minelib import read_instance
from mine_rl_npv.data.minelib_write import write_instance
from mine_rl_npv.data.solutions import read_solution, write_schedule

__all__ = [
    "Graph",
    "Instance",
    "read_instance",
    "read_solution",
    "write_instance",
    "write_schedule",
]
