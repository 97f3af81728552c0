"""``hybridflow explain FILE::function``: what a signature runs."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from hybridflow.cli import output, target
from hybridflow.jit.inspection import Table


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "explain", help="what a function runs", description="The program, kernels, memory and retraces of a signature."
    )
    target.add_options(parser, wide="the tables")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    function = target.load(options.target, "explain")
    explanation = function.explain(*target.trace_arguments(function, options.shapes, "explain"))
    if options.json:
        fields = {f.name: getattr(explanation, f.name) for f in dataclasses.fields(explanation) if f.name != "summary"}
        output.print_json({name: v.rows if isinstance(v, Table) else v for name, v in fields.items()})
    else:
        print(explanation.wide() if options.wide else explanation)
    return 0
