"""``hybridflow profile FILE::function``: how long each kernel of a signature takes."""

from __future__ import annotations

import argparse
from typing import Any

from hybridflow.cli import explain, output, target
from hybridflow.errors import ArgumentError


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "profile",
        help="how long each kernel of a function takes",
        description="Microseconds per kernel, as medians of some runs on random values; variables keep theirs.",
    )
    explain.add_subject(parser)
    parser.add_argument("--runs", type=int, metavar="N", help="how many runs (default: for a quarter of a second)")
    parser.add_argument("--wide", action="store_true", help="all columns of the table, however long its lines get")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.runs is not None and options.runs < 1:
        raise ArgumentError("profile", f"--runs is {options.runs}; give 1 or more.", "")
    function = target.load(options.target, "profile")
    arguments = target.random_tensors(target.specs(function, options.shapes, "profile"), "profile")
    report = function.profile(*arguments, runs=options.runs)
    if options.json:
        fields = {name: getattr(report, name) for name in ("function", "signature", "runs", "total")}
        output.print_json({**fields, "kernels": report.kernels.rows})
    else:
        print(report.wide() if options.wide else report)
    return 0
