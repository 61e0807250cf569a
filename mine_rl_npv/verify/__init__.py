"""A program of its own that judges schedules from files alone; it imports nothing of ours.

python -m mine_rl_npv.verify DIR/NAME SCHEDULE.sol          MineLib: CPIT, --pcpsp, --lp, or a pit
python -m mine_rl_npv.verify SCHEDULE.csv --degrees 45      slopes of a scheduled block model
"""
