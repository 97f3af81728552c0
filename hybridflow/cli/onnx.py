"""``hybridflow onnx check | run | show FILE``: models of ONNX files."""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.cli import output
from hybridflow.errors import ArgumentError


def add_to(commands: Any) -> None:
    parser = commands.add_parser("onnx", help="models of ONNX files", description="What a file holds, and its results.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("check", "which nodes run here, and how"),
        ("run", "run it on random numbers: results, times"),
        ("show", "the nodes as text"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        action.add_argument("file", metavar="FILE", help="a file such as model.onnx")
        action.add_argument("--json", action="store_true", help="machine-readable output")
        if name == "run":
            action.add_argument(
                "--shape",
                action="append",
                default=[],
                metavar="NAME=2x3",
                help="the extents of an input (default: open ones are 1)",
            )
            action.add_argument("--runs", type=int, default=10, help="how often it is timed (default: 10)")
            action.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")
        action.set_defaults(run=_ACTIONS[name])


def _check(options: argparse.Namespace) -> int:
    report = hf.onnx.check(options.file)
    if options.json:
        output.print_json(dataclasses.asdict(report))
    else:
        print(report)
    return 0 if report.runs else 1


def _run(options: argparse.Namespace) -> int:
    model = hf.onnx.load(options.file)
    shapes = _shapes(options.shape, model)
    rng = np.random.default_rng(options.seed)
    arguments = []
    for name, spec in zip(model.input_names, model.signature):
        if spec is None:
            raise ArgumentError("onnx", f"the input {name!r} of {options.file} is no tensor of a known shape.", "")
        shape = shapes.get(name) or tuple(n if isinstance(n, int) else 1 for n in spec.shape)
        arguments.append(hf.asarray(_random(rng, shape, spec.dtype)))
    start = time.perf_counter()
    results = model(*arguments)
    first = time.perf_counter() - start
    times = []
    for _ in range(max(options.runs, 1)):
        start = time.perf_counter()
        model(*arguments)
        times.append(time.perf_counter() - start)
    listed = results if isinstance(results, tuple) else (results,)
    if options.json:
        output.print_json(
            {
                "file": options.file,
                "results": [
                    {"name": name, "shape": list(value.shape), "dtype": str(value.dtype)}
                    for name, value in zip(model.output_names, listed)
                ],
                "first_seconds": first,
                "seconds": min(times),
            }
        )
        return 0
    for name, value in zip(model.output_names, listed):
        print(f"{name}: {value!r}")
    print(f"first call {output.seconds(first)}, then {output.seconds(min(times))}")
    return 0


def _shapes(texts: list[str], model: Any) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for text in texts:
        name, _, extents = text.rpartition("=")
        if name not in model.input_names:
            names = ", ".join(model.input_names)
            raise ArgumentError("onnx", f"--shape {text} names no input; they are {names}.", "")
        try:
            shapes[name] = tuple(int(n) for n in extents.split("x"))
        except ValueError:
            raise ArgumentError("onnx", f"--shape {text} is no shape; write NAME=2x3.", "") from None
    return shapes


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 10, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _show(options: argparse.Namespace) -> int:
    model = hf.onnx.load(options.file)
    if options.json:
        output.print_json({"file": options.file, "text": model.text()})
    else:
        print(model.text())
    return 0


_ACTIONS = {"check": _check, "run": _run, "show": _show}
