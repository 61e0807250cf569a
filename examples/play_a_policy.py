"""Train for a few seconds, then load the policy from its run folder and watch it decide.

python examples/play_a_policy.py
"""

import frugal_rl


def main() -> None:
    """Train, evaluate beside random play, play one episode."""
    summary = frugal_rl.train("env=toy algo.total_steps=16384 tracking=disabled")
    results = frugal_rl.evaluate(summary["run_dir"], "evaluation.episodes=64")
    for player, result in results.items():
        print(f"{player}: return {result.score.means['return']:.3f}")

    with frugal_rl.load_policy(summary["run_dir"]) as player:
        done = False
        while not done:
            actions = player.choose()
            step = player.step(actions)
            done = bool(step.done[0])
            print(f"action {actions[0]} reward {step.reward[0]:+.2f}")


if __name__ == "__main__":
    main()
