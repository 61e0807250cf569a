"""What is known about three MineLib instances: published or proven values, to check ours against.

Sources: the instance pages of MineLib (Espinoza, Goycoolea, Moreno and Newman, Annals of
Operations Research 206, 2013) and, for certified bounds and the proven optimum, recomputation with
independent solvers.
"""

PIT = {
    "newman1": (26_086_899.026, 1_059),
    "zuck_small": (1_422_726_897.735, 9_399),
    "kd": (652_195_036.915, 12_154),
}
"""Value of the ultimate pit, and its blocks."""

CPIT_RELAXATION = {
    "newman1": 24_486_184.091,
    "zuck_small": 854_190_247.80,
    "kd": 409_511_609.47,
}
PCPSP_RELAXATION = {"newman1": 24_486_549.022}
CPIT_OPTIMUM = {"newman1": 24_176_864.825}
GREEDY_FORWARD = {"newman1": 23_552_842.0}
"""Greedy by value, list scheduling in the earliest feasible period, in whole dollars."""

SCHEDULES = {
    "newman1_cpit_gmunoz120723": 23_483_671.15,
    "zuck_small_cpit_gmunoz120723": 788_652_599.55,
    "kd_cpit_gmunoz120723": 396_858_192.50,
    "newman1_cpit_optimal": 24_176_864.82,
    "zuck_small_cpit_reference": 840_679_170.06,
    "kd_cpit_reference": 408_287_882.01,
}
"""Solution files by name without the ending, and what they are worth."""

TOLERANCE = 1e-6
"""Relative."""
