"""``hybridflow tune FILE::function``: the fastest schedules of its kernels on this machine, measured and kept."""

from __future__ import annotations

import argparse
from typing import Any

from hybridflow.cli import explain, output, target
from hybridflow.errors import ArgumentError


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "tune",
        help="find the fastest schedules of a function's kernels",
        description="Times the schedules of each kernel on random values, and keeps the best for this machine.",
    )
    explain.add_subject(parser)
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each schedule (default: for two seconds in all)")
    parser.add_argument("--wide", action="store_true", help="all columns of the table, however long its lines get")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.runs is not None and options.runs < 1:
        raise ArgumentError("tune", f"--runs is {options.runs}; give 1 or more.", "")
    function = target.load(options.target, "tune")
    arguments = target.random_tensors(target.specs(function, options.shapes, "tune"), "tune")
    found = function.tune(*arguments, runs=options.runs)
    if options.json:
        fields = {name: getattr(found, name) for name in ("function", "runs", "file")}
        output.print_json({**fields, "kernels": found.kernels.rows})
    else:
        print(found.wide() if options.wide else found)
    return 0
