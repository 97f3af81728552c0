"""``hybridflow report FILE::function -o page.html``: one page about a signature of a function."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hybridflow.cli import explain, output, target
from hybridflow.errors import ArgumentError


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="a page about a function: kernels, source, memory",
        description="One HTML file that asks nothing of the network. Times are of runs on random values.",
    )
    explain.add_subject(parser)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the page that is written")
    parser.add_argument("--runs", type=int, metavar="N", help="how many runs (default: for a quarter of a second)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.runs is not None and options.runs < 1:
        raise ArgumentError("report", f"--runs is {options.runs}; give 1 or more.", "")
    function = target.load(options.target, "report")
    arguments = target.random_tensors(target.specs(function, options.shapes, "report"), "report")
    function.report(options.output, *arguments, runs=options.runs)
    size = os.path.getsize(options.output)
    if options.json:
        output.print_json({"path": options.output, "bytes": size})
    else:
        print(f"{options.output}: {size:,} bytes")
    return 0
