"""``hybridflow report FILE::function -o page.html``: one page about a signature of a function."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hybridflow.cli import output, target


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="a page about a function: kernels, source, memory",
        description="One HTML file that asks nothing of the network. Times are of runs on random values.",
    )
    target.add_measured_options(parser, "how many runs (default: for a quarter of a second)")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the page that is written")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    function, arguments = target.measured(options, "report")
    function.report(options.output, *arguments, runs=options.runs)
    size = os.path.getsize(options.output)
    if options.json:
        output.print_json({"path": options.output, "bytes": size})
    else:
        print(f"{options.output}: {size:,} bytes")
    return 0
