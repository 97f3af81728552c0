"""``hybridflow ir FILE::function``: the program as text at any stage, or what each pass made of it."""

from __future__ import annotations

import argparse
import difflib
import itertools
import os
import tempfile
from typing import Any

from hybridflow import flags
from hybridflow.cli import output, target
from hybridflow.compiler import pipeline
from hybridflow.compiler.ir.graph import Graph
from hybridflow.jit import inspection


def add_to(commands: Any) -> None:
    parser = commands.add_parser("ir", help="a function's program as text", description="The program of a signature.")
    target.add_options(parser)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--stage", choices=inspection.STAGES, default="traced", help="which form (default: traced)")
    choice.add_argument("--passes", action="store_true", help="show what each pass changed")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    function = target.load(options.target, "ir")
    arguments = target.trace_arguments(function, options.shapes, "ir")
    if options.passes:
        stages = _after_each_pass(function.get_concrete_function(*arguments).graph)
        if options.json:
            output.print_json([{"stage": stage, "text": text} for stage, text in stages])
        else:
            _print_changes(stages)
        return 0
    text = function.ir(*arguments, stage=options.stage)
    if options.json:
        output.print_json({"stage": options.stage, "text": text})
    else:
        print(text.rstrip("\n"))
    return 0


def _after_each_pass(graph: Graph) -> list[tuple[str, str]]:
    """(name, text) of the input and of what each pass that changed something made of it."""
    with tempfile.TemporaryDirectory() as folder, flags.DUMP(folder):
        pipeline.optimize(graph)
        stages = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                stages.append((name.removesuffix(".ir").rpartition("-")[2], file.read()))
        return stages


def _print_changes(stages: list[tuple[str, str]]) -> None:
    print(stages[0][1].rstrip("\n"))
    for (_, before), (name, after) in itertools.pairwise(stages):
        print(output.colour(f"\n# {name}", "bold"))
        changes = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
        for line in list(changes)[2:]:  # less the header with file names
            style = {"+": "green", "-": "red"}.get(line[:1])
            if not line.startswith("@@"):
                print(output.colour(line, style) if style else line)
    if len(stages) == 1:
        print("\n# no pass changes it")
