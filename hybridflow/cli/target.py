"""The function that a command is about, ``FILE::function`` or a saved file, and the shapes of its arguments."""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compiler.ir import dtypes
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError
from hybridflow.jit.bound_method import BoundFunction
from hybridflow.jit.function import Function
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.serving import endpoint

_SHAPE = re.compile(r"(?P<extents>scalar|\d+(?:x\d+)*)(?::(?P<dtype>\w+))?(?::(?P<low>-?\d+)\.\.(?P<high>-?\d+))?")
_SEPARATORS = re.compile(r"[\[\]{},]")
_NAME = re.compile(r"\s*([^\[\]{},=:\s]+)\s*=")
_DTYPES = {**dtypes.FROM_SHORT, **{dtype.name: dtype for dtype in dtypes.ALL}}
SHAPES_HELP = (
    "one shape per argument, comma-separated: extents joined by x, 'scalar' for none, then :dtype if it is not "
    "float32, and the range of integers that are not 0 or 1, as in 32x128,64x128:f64,10:i64:0..1000; a dict is "
    "{name=shape,...}, a list [shape,...]"
)


def add_options(parser: argparse.ArgumentParser, wide: str | None = None) -> None:
    """The options of commands about one signature of one function."""
    parser.add_argument("target", metavar="FILE::function")
    parser.add_argument("--shapes", metavar="SHAPES", help=SHAPES_HELP)
    parser.add_argument("--json", action="store_true", help="print JSON")
    if wide is not None:
        parser.add_argument("--wide", action="store_true", help=f"all columns of {wide}, however long lines get")


def add_measured_options(parser: argparse.ArgumentParser, runs: str, wide: str | None = None) -> None:
    """The options of commands that run a function on random values; ``runs`` is the help of ``--runs``."""
    add_options(parser, wide)
    parser.add_argument("--runs", type=int, metavar="N", help=runs)


def measured(options: argparse.Namespace, command: str) -> tuple[Function, tuple[Any, ...]]:
    """The function that such a command is about, and random tensors as its arguments."""
    if options.runs is not None and options.runs < 1:
        raise ArgumentError(command, f"--runs is {options.runs}; give 1 or more.", "")
    function = load(options.target, command)
    return function, random_tensors(specs(function, options.shapes, command), command)


def load(target: str, stage: str) -> Function:
    """The function that ``FILE::function`` names, compiled if it is not already decorated; or that of a file which
    ``hf.saved.save`` wrote, which needs no name where there is one.

    Raises ArgumentError where there is none; whatever the file itself raises passes through.
    """
    path, separator, name = target.partition("::")
    if path and not path.endswith(".py") and os.path.isfile(path):
        return _saved(path, name, stage)
    if not separator or not path or not name:
        raise ArgumentError(stage, f"{target!r} names no function. Write FILE::function, such as train.py::step.", "")
    if not os.path.isfile(path):
        raise ArgumentError(stage, f"there is no file {path}{_alike(path)}", "")
    first, *attributes = name.split(".")
    function = _find(_run(path), path, first, stage)
    for attribute in attributes:
        function = _attribute(function, attribute, name, stage)
    return _as_function(function, name, stage)


def _saved(path: str, name: str, stage: str) -> Function:
    """A function of a saved file, or of an ONNX or Keras model."""
    with endpoint.saved_form(path) as file:
        loaded = hf.saved.load(file)
    names = list(loaded.functions)
    if not name and len(names) > 1:
        raise ArgumentError(stage, f"{path} has the functions {', '.join(names)}. Write {path}::{names[0]}.", "")
    name = name or names[0]
    if name not in names:
        raise ArgumentError(stage, f"{path} has no function {name}; it has {', '.join(names)}.", "")
    return loaded.functions[name]


def _attribute(holder: object, name: str, whole: str, stage: str) -> Any:
    """A method of an object; of a class, of an instance that is made without arguments."""
    if inspect.isclass(holder):
        try:
            inspect.signature(holder).bind()
        except TypeError:
            raise ArgumentError(
                stage,
                f"{holder.__name__}() needs arguments. Make an instance in the file and name its method.",
                "",
            ) from None
        holder = holder()
    if not hasattr(holder, name):
        raise ArgumentError(stage, f"there is no {whole}: a {type(holder).__name__} has no attribute {name}.", "")
    return getattr(holder, name)


def _alike(path: str) -> str:
    folder = os.path.dirname(path) or "."
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".py")]
    except OSError:
        return f", nor a folder {folder}."
    close = difflib.get_close_matches(os.path.basename(path), names, 1)
    return f"; did you mean {os.path.join(os.path.dirname(path), close[0])}?" if close else "."


def _run(path: str) -> ModuleType:
    """The module made by running the file, which sees its neighbours as a script does."""
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, path))
    assert spec is not None and spec.loader is not None, "a loader was given"
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    sys.modules[name] = module  # dataclasses and pickling look modules up by name
    spec.loader.exec_module(module)
    return module


def _find(module: ModuleType, path: str, name: str, stage: str) -> Any:
    result = vars(module).get(name)
    if result is None:
        callables = [n for n, value in vars(module).items() if _is_candidate(value)]
        close = difflib.get_close_matches(name, callables, 1)
        hint = f"; did you mean {close[0]}?" if close else f"; it has {', '.join(callables) or 'none'}."
        raise ArgumentError(stage, f"{path} has no function {name}{hint}", "")
    return result


def _is_candidate(value: object) -> bool:
    return isinstance(value, Function) or inspect.isfunction(value)


def _as_function(value: object, name: str, stage: str) -> Function:
    if isinstance(value, Function | BoundFunction):
        return value  # type: ignore[return-value]  # a method offers all that its function does
    if not callable(value) or inspect.isclass(value):
        raise ArgumentError(stage, f"{name} is a {type(value).__name__}, not a function.", "")
    return hf.function(value)


def specs(function: Function, shapes: str | None, stage: str) -> tuple[Any, ...]:
    """The argument types: what ``--shapes`` says, else the function's own ``input_signature``.

    Raises ArgumentError where the text is no list of shapes, or their number does not fit the function.
    """
    if shapes is not None:
        result = parse_shapes(shapes, stage)
    elif function.input_signature is not None:
        result = tuple(function.input_signature)
    else:
        result = ()
    _check_count(function.python_function, len(result), stage)
    return result


def trace_arguments(function: Function, shapes: str | None, stage: str) -> tuple[Any, ...]:
    """What to pass for looking at a signature: nothing where the function has only its own."""
    arguments = specs(function, shapes, stage)
    return arguments if function.input_signature is None else ()


class RandomSpec(TensorSpec):
    """The type of an argument, and the range from ``low`` up to, but not including, ``high`` of its integers."""

    __slots__ = ("high", "low")

    def __init__(self, shape: Sequence[int | None], dtype: DTypeLike, low: int = 0, high: int = 2) -> None:
        super().__init__(shape, dtype)
        self.low, self.high = low, high


def parse_shapes(text: str, stage: str) -> tuple[Any, ...]:
    """``32x128,{x=64x128:f64,y=64:i64:0..10}`` as specs, nested as it says.  Raises ArgumentError for other texts."""
    if not text.strip():
        return ()
    values, rest = _parse_values(text, "", stage)
    if rest:
        raise ArgumentError(stage, f"--shapes: {rest!r} is too much. Write {SHAPES_HELP}.", "")
    return tuple(values.values())


def _parse_values(text: str, closing: str, stage: str) -> tuple[dict[Any, Any], str]:
    """Values up to the bracket that closes them, by name in a dict and by position else, and the text behind it."""
    values: dict[Any, Any] = {}
    while True:
        name: object = len(values)
        if closing == "}":
            match = _NAME.match(text)
            if match is None:
                raise ArgumentError(stage, f"--shapes: {text!r} does not begin with name=. Write {SHAPES_HELP}.", "")
            name, text = match[1], text[match.end() :]
        values[name], text = _parse_value(text.lstrip(), stage)
        text = text.lstrip()
        if text.startswith(","):
            text = text[1:]
        elif text.startswith(closing):
            return values, text[len(closing) :]
        else:
            raise ArgumentError(stage, f"--shapes: {text!r} lacks a {closing!r}. Write {SHAPES_HELP}.", "")


def _parse_value(text: str, stage: str) -> tuple[Any, str]:
    """One value, and the text behind it."""
    if text.startswith("{"):
        return _parse_values(text[1:], "}", stage)
    if text.startswith("["):
        values, rest = _parse_values(text[1:], "]", stage)
        return list(values.values()), rest
    match = _SEPARATORS.search(text)
    end = len(text) if match is None else match.start()
    return _parse_shape(text[:end].strip(), stage), text[end:]


def _parse_shape(text: str, stage: str) -> RandomSpec:
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ArgumentError(stage, f"--shapes: {text!r} is no shape. Write {SHAPES_HELP}.", "")
    name = match["dtype"] or "f32"
    if name not in _DTYPES:
        close = difflib.get_close_matches(name, _DTYPES, 1)
        hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(dtypes.FROM_SHORT)}."
        raise ArgumentError(stage, f"--shapes: there is no dtype {name!r}{hint}", "")
    extents = () if match["extents"] == "scalar" else tuple(map(int, match["extents"].split("x")))
    if match["low"] is None:
        return RandomSpec(extents, _DTYPES[name])
    low, high = int(match["low"]), int(match["high"])
    if not (low < high and dtypes.is_integer(_DTYPES[name])):
        raise ArgumentError(stage, f"--shapes: {text!r} is no range of integers. Write {SHAPES_HELP}.", "")
    return RandomSpec(extents, _DTYPES[name], low, high)


def _check_count(python: Callable[..., Any], count: int, stage: str) -> None:
    signature = inspect.signature(python)
    try:
        signature.bind(*[None] * count)
    except TypeError:
        name = getattr(python, "__name__", "the function")
        raise ArgumentError(
            stage, f"{name}{signature} cannot be called with {count} tensors. Give --shapes, {SHAPES_HELP}.", ""
        ) from None


def text_of(spec: object) -> str:
    """An argument's types, nested as they are."""
    if isinstance(spec, dict):
        return "{" + ", ".join(f"{name}={text_of(part)}" for name, part in spec.items()) + "}"
    return f"[{', '.join(map(text_of, spec))}]" if isinstance(spec, (list, tuple)) else str(spec)


def random_tensors(wanted: Sequence[Any], stage: str) -> tuple[Any, ...]:
    """Tensors of those types, nested as they are, with the same random values every time: floats are normal, integers
    0 or 1 unless there is a range.

    Small integers are good class numbers and indices whatever they index.
    """
    generator = np.random.default_rng(0)

    def random_tensor(spec: TensorSpec) -> hf.Tensor:
        low, high = (spec.low, spec.high) if isinstance(spec, RandomSpec) else (0, 2)
        shape = tuple(extent for extent in spec.shape if isinstance(extent, int))
        if len(shape) < len(spec.shape):
            raise ArgumentError(stage, f"{spec} leaves an extent open; give the sizes to run with by --shapes.", "")
        is_float = dtypes.is_float(spec.dtype)
        values: object = (
            generator.standard_normal(shape, np.float32) if is_float else generator.integers(low, high, shape)
        )
        return hf.asarray(np.asarray(values).astype(spec.dtype))

    return tuple(hf.tree.map(random_tensor, list(wanted)))
