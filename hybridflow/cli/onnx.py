"""``hybridflow onnx check | run | show FILE``: models of ONNX files."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.cli import output
from hybridflow.errors import ArgumentError

if TYPE_CHECKING:
    from hybridflow.onnx.model import OnnxModel


def add_to(commands: Any) -> None:
    parser = commands.add_parser("onnx", help="models of ONNX files", description="What a file holds, and its results.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("check", "which nodes run here, and how"),
        ("run", "run it on arrays of a .npz file, or on random numbers: results, times"),
        ("show", "the nodes as text"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        action.add_argument("file", metavar="FILE", help="a file such as model.onnx")
        action.add_argument("--json", action="store_true", help="machine-readable output")
        if name == "run":
            action.add_argument("data", metavar="DATA", nargs="?", help="a .npz file with an array for each input")
            action.add_argument("-o", "--output", metavar="FILE", help="a .npz file for the results, by their names")
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
    if options.output is not None and not options.output.endswith(".npz"):
        raise ArgumentError("onnx", f"--output {options.output} is of no kind; end it in .npz.", "")
    if options.data is not None and options.shape:
        raise ArgumentError("onnx", f"--shape is for random numbers; arrays of {options.data} have their own.", "")
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(output.OutputFile(options.output, "onnx")) if options.output is not None else None
        return _run_into(file, options)


def _run_into(file: output.OutputFile | None, options: argparse.Namespace) -> int:
    model = hf.onnx.load(options.file)
    arguments = _random_arguments(options, model) if options.data is None else _arguments(options.data, model)
    start = time.perf_counter()
    results = model(*arguments)
    first = time.perf_counter() - start
    times = []
    for _ in range(max(options.runs, 1)):
        start = time.perf_counter()
        model(*arguments)
        times.append(time.perf_counter() - start)
    listed = results if isinstance(results, tuple) else (results,)
    if file is not None:
        file.write_arrays(dict(zip(model.output_names, listed)))
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
        print(f"{name}: {value!r}" if options.output is None else f"{options.output}: {name} {list(np.shape(value))}")
    print(f"first call {output.seconds(first)}, then {output.seconds(min(times))}")
    return 0


def _random_arguments(options: argparse.Namespace, model: OnnxModel) -> list[Any]:
    shapes = _shapes(options.shape, model)
    rng = np.random.default_rng(options.seed)
    arguments = []
    for name, spec in zip(model.input_names, model.signature):
        if spec is None:
            raise ArgumentError("onnx", f"the input {name!r} of {options.file} is no tensor of a known shape.", "")
        shape = shapes.get(name) or tuple(n if isinstance(n, int) else 1 for n in spec.shape)
        arguments.append(hf.asarray(_random(rng, shape, spec.dtype)))
    return arguments


def _arguments(path: str, model: OnnxModel) -> list[Any]:
    """The arrays of a file, one for each input by its name."""
    arrays = hf.weights.read(path)
    wanted = ", ".join(f"{name}: {spec}" for name, spec in zip(model.input_names, model.signature))
    lacking = [name for name in model.input_names if name not in arrays]
    if lacking or len(arrays) > len(model.input_names):
        raise ArgumentError("onnx", f"{path} has {', '.join(arrays) or 'nothing'}. {model.path} takes {wanted}.", "")
    return [arrays.numpy(name) for name in model.input_names]


def _shapes(texts: list[str], model: OnnxModel) -> dict[str, tuple[int, ...]]:
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
