"""What will this run hold, and which part is it? Nothing is allocated.

python examples/plan_a_run.py
"""

import frugal_rl
from frugal_rl.memory.part import human


def main() -> None:
    """Print the parts of a run that fits, then the refusal of one that does not."""
    plan = frugal_rl.plan("env=nclone memory=parallel")
    for part in sorted(plan.parts, key=lambda p: -p.ram_bytes)[:5]:
        print(f"{human(part.ram_bytes):>10}  {part.name}  ({part.formula})")
    print(
        f"{plan.verdict}: {human(plan.ram_bytes)}, {plan.bytes_per_transition:,.0f} B a transition"
    )

    try:
        frugal_rl.plan("env=mine memory=baseline memory.budget_gib=16")
    except frugal_rl.MemoryBudgetError as refusal:
        print(refusal)


if __name__ == "__main__":
    main()
