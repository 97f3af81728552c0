"""``hybridflow profile FILE::function``: how long each kernel of a signature takes."""

from __future__ import annotations

import argparse
from typing import Any

from hybridflow.cli import output, target


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "profile",
        help="how long each kernel of a function takes",
        description="Microseconds per kernel, as medians of some runs on random values; variables keep theirs.",
    )
    target.add_measured_options(parser, "how many runs (default: for a quarter of a second)", wide="the table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    function, arguments = target.measured(options, "profile")
    report = function.profile(*arguments, runs=options.runs)
    if options.json:
        fields = {name: getattr(report, name) for name in ("function", "signature", "runs", "total")}
        output.print_json({**fields, "kernels": report.kernels.rows})
    else:
        print(report.wide() if options.wide else report)
    return 0
