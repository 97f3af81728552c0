"""``hybridflow tune FILE::function``: the fastest schedules of its kernels on this machine, measured and kept."""

from __future__ import annotations

import argparse
from typing import Any

from hybridflow.cli import output, target


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "tune",
        help="find the fastest schedules of a function's kernels",
        description="Times the schedules of each kernel on random values, and keeps the best for this machine.",
    )
    target.add_measured_options(parser, "runs of each schedule (default: for two seconds in all)", wide="the table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    function, arguments = target.measured(options, "tune")
    tuning = function.tune(*arguments, runs=options.runs)
    if options.json:
        fields = {name: getattr(tuning, name) for name in ("function", "runs", "file")}
        output.print_json({**fields, "kernels": tuning.kernels.rows})
    else:
        print(tuning.wide() if options.wide else tuning)
    return 0
