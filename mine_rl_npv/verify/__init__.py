"""A program of its own that judges schedules from files alone; it imports nothing of ours.

python -m mine_rl_npv.verify DIR/NAME SCHEDULE.sol          MineLib, CPIT (or --pcpsp), or a pit; --lp: in parts
python -m mine_rl_npv.verify SCHEDULE.csv --degrees 45      slopes of a scheduled block model
"""
