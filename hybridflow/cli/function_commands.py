"""Commands about one signature of one function: ``explain``, ``profile``, ``report`` and ``tune`` of FILE::function."""

from __future__ import annotations

import argparse
import dataclasses
import os
from typing import Any

from hybridflow.cli import output, target
from hybridflow.jit.inspection import Table

_QUARTER = "how many runs (default: for a quarter of a second)"


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "explain", help="what a function runs", description="The program, kernels, memory and retraces of a signature."
    )
    target.add_options(parser, wide="the tables")
    parser.set_defaults(run=_explain)
    parser = commands.add_parser(
        "profile",
        help="how long each kernel of a function takes",
        description="Microseconds per kernel, as medians of some runs on random values; variables keep theirs.",
    )
    target.add_measured_options(parser, _QUARTER, wide="the table")
    parser.set_defaults(run=_profile)
    parser = commands.add_parser(
        "report",
        help="a page about a function: kernels, source, memory",
        description="One HTML file that asks nothing of the network. Times are of runs on random values.",
    )
    target.add_measured_options(parser, _QUARTER)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the page that is written")
    parser.set_defaults(run=_report)
    parser = commands.add_parser(
        "tune",
        help="find the fastest schedules of a function's kernels",
        description="Times the schedules of each kernel on random values, and keeps the best for this machine.",
    )
    target.add_measured_options(parser, "runs of each schedule (default: for two seconds in all)", wide="the table")
    parser.set_defaults(run=_tune)


def _explain(options: argparse.Namespace) -> int:
    function = target.load(options.target, "explain")
    explanation = function.explain(*target.trace_arguments(function, options.shapes, "explain"))
    fields = {f.name: getattr(explanation, f.name) for f in dataclasses.fields(explanation) if f.name != "summary"}
    return _show(options, explanation, {name: v.rows if isinstance(v, Table) else v for name, v in fields.items()})


def _profile(options: argparse.Namespace) -> int:
    function, arguments = target.measured(options, "profile")
    profile = function.profile(*arguments, runs=options.runs)
    fields = {name: getattr(profile, name) for name in ("function", "signature", "runs", "total")}
    return _show(options, profile, {**fields, "kernels": profile.kernels.rows})


def _tune(options: argparse.Namespace) -> int:
    function, arguments = target.measured(options, "tune")
    tuning = function.tune(*arguments, runs=options.runs)
    fields = {name: getattr(tuning, name) for name in ("function", "runs", "file")}
    return _show(options, tuning, {**fields, "kernels": tuning.kernels.rows})


def _show(options: argparse.Namespace, result: Any, fields: dict[str, Any]) -> int:
    """Print a result for people, or its fields for programs."""
    if options.json:
        output.print_json(fields)
    else:
        print(result.wide() if options.wide else result)
    return 0


def _report(options: argparse.Namespace) -> int:
    function, arguments = target.measured(options, "report")
    function.report(options.output, *arguments, runs=options.runs)
    size = os.path.getsize(options.output)
    if options.json:
        output.print_json({"path": options.output, "bytes": size})
    else:
        print(f"{options.output}: {size:,} bytes")
    return 0
