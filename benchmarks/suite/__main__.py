"""Programs of all kinds on hybridflow and its peers, next to what the machine can do.

    python -m benchmarks.suite [--threads N] [--peers jax,torch,...] [--only WORD ...] [--json FILE] [--picture FILE]

Every side lives in a process of its own and is asked in turn for a sample of each program, when the threads of the one
before have come to rest (some look for work for a tenth of a second); all have the same number of threads, one unless
given.  Peers that are not installed are left out (``pip install '.[peers]'``); PyTorch's compiler
takes part when it is named (``--peers torch-compile``), since it compiles for minutes.  All results are compared with
hybridflow's before anything is timed.  Times are medians with half the distance of their quartiles.  Temporaries are
what a compiled program needs at most besides arguments and results, by its own account.  The limits of the machine are
measured in the same run: memory read and copied (bytes in both directions), and fused multiply-adds in registers.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys

from benchmarks.suite import measuring, picture, report
from benchmarks.suite.libraries import SIDES
from benchmarks.suite.programs import CASES, KIND_OF

PEERS = ("numpy", "jax", "torch", "tf", "tf-xla")
_NAMED = (*PEERS, "torch-compile")


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.suite", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1, help="of each side (1)")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"of {', '.join(_NAMED)}; empty for none")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="kinds, and programs that have a word")
    parser.add_argument("--json", metavar="FILE", help="write all figures, times in seconds")
    parser.add_argument("--picture", metavar="FILE", help="write ratios and a roofline as SVG")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds that a side may take to answer (30)")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no further program is begun (60)")
    parser.add_argument(
        "--quick", action="store_true", help="one short round, no limits of the machine: times mean little"
    )
    options = parser.parse_args(arguments)
    asked = [peer for peer in options.peers.split(",") if peer]
    if unknown := [peer for peer in asked if peer not in _NAMED]:
        parser.error(f"no such peers: {', '.join(unknown)}; there are {', '.join(_NAMED)}")
    options.peers = [peer for peer in asked if importlib.util.find_spec(SIDES[peer].module.partition(".")[0])]
    words = options.only
    options.names = [n for n in CASES if not words or KIND_OF[n] in words or any(word in n for word in words)]
    if not options.names:
        parser.error(f"no program has one of {', '.join(words)} in its name")
    return options


def _told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    plan = measuring.Plan(options.quick, options.limit, options.minutes)
    found = measuring.measured(options.threads, options.peers, options.names, plan, _told)
    found["summary"] = report.summary(found["programs"])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    if options.picture:
        with open(options.picture, "w", encoding="utf-8") as file:
            file.write(picture.svg(found))
    print(report.table(found))
    print(report.conclusion(found))
    wrong = any(
        answer["state"] in ("failed", "differs") for r in found["programs"].values() for answer in r["sides"].values()
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
