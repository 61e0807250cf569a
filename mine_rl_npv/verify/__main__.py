"""The command line of the independent checker; see the package."""

from __future__ import annotations

import argparse
import sys

from mine_rl_npv.verify import __doc__ as usage
from mine_rl_npv.verify import minelib, slopes
from mine_rl_npv.verify.text import plain


def main(words: list[str] | None = None) -> int:
    """0 when every rule is kept, 1 when one is broken, 2 when a file cannot be read."""
    parser = argparse.ArgumentParser(
        "mine_rl_npv.verify", description=usage, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", help="DIR/NAME FILE.sol, or SCHEDULE.csv")
    parser.add_argument("--pcpsp", action="store_true", help="blocks choose their destination")
    parser.add_argument("--lp", action="store_true", help="blocks may be mined in parts")
    parser.add_argument("--degrees", type=float, default=45.0)
    parser.add_argument("--sectors", default="", help="other slopes, as 90-180:38,300-60:42")
    parser.add_argument("--columns", default="", help="as x=EASTING,y=NORTHING,z=RL")
    parser.add_argument("--size", default="", help="edge lengths, as 20,20,15")
    parser.add_argument("--levels", type=int, default=0, help="benches to look at; 0: all")
    parser.add_argument("--down", action="store_true", help="z grows downward (so do depths)")
    parser.add_argument("--up", action="store_true", help="z grows upward, whatever its name says")
    args = parser.parse_args(words)
    try:
        if len(args.files) == 2:
            value, faults = minelib.judge(args.files[0], args.files[1], args.pcpsp, args.lp)
            print(f"value      {value!r}")
        else:
            names = dict(pair.split("=", 1) for pair in args.columns.split(",") if pair)
            if args.levels and not args.size:
                raise ValueError("--levels counts benches: state their height by --size")
            size = [float(word) for word in args.size.split(",") if word] or [1.0, 1.0, 1.0]
            sectors = [word for word in args.sectors.split(",") if word]
            down = args.down or (False if args.up else None)
            blocks, faults, upward = slopes.judge(
                args.files[0], args.degrees, names, size, args.levels, sectors, down
            )
            print(f"blocks     {blocks} mined\nvertical   {upward}")
    except (OSError, LookupError, ValueError, OverflowError) as error:
        print(plain(f"cannot be judged: {type(error).__name__} {error}"), file=sys.stderr)
        return 2
    for fault in faults[:10]:
        print(plain(f"broken     {fault}"))
    print(f"feasible   {'no, ' + str(len(faults)) + ' faults' if faults else 'yes'}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
