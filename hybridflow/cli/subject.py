"""The function that a command is about: ``FILE::function``, and the shapes of its arguments."""

from __future__ import annotations

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
from hybridflow.errors import ArgumentError
from hybridflow.jit.function import Function
from hybridflow.jit.tensor_spec import TensorSpec

_SHAPE = re.compile(r"(?P<extents>scalar|\d+(?:x\d+)*)(?::(?P<dtype>\w+))?")
_DTYPES = {**dtypes.FROM_SHORT, **{dtype.name: dtype for dtype in dtypes.ALL}}
SHAPES_HELP = (
    "one shape per argument, comma-separated: extents joined by x, 'scalar' for none, then :dtype if it is not "
    "float32, as in 32x128,64x128:f64,10:i64"
)


def load(target: str, stage: str) -> Function:
    """The function that ``FILE::function`` names, compiled if it is not already decorated.

    Raises ArgumentError where there is none; whatever the file itself raises passes through.
    """
    path, separator, name = target.partition("::")
    if not separator or not path or not name:
        raise ArgumentError(stage, f"{target!r} names no function. Write FILE::function, such as train.py::step.", "")
    if not os.path.isfile(path):
        raise ArgumentError(stage, f"there is no file {path}{_alike(path)}", "")
    return _as_function(_find(_run(path), path, name, stage), name, stage)


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
    if "." in name:
        raise ArgumentError(stage, f"{name} is an attribute of a class; only functions of a file can be named.", "")
    found = vars(module).get(name)
    if found is None:
        callables = [n for n, value in vars(module).items() if _is_candidate(value)]
        close = difflib.get_close_matches(name, callables, 1)
        hint = f"; did you mean {close[0]}?" if close else f"; it has {', '.join(callables) or 'none'}."
        raise ArgumentError(stage, f"{path} has no function {name}{hint}", "")
    return found


def _is_candidate(value: Any) -> bool:
    return isinstance(value, Function) or inspect.isfunction(value)


def _as_function(found: Any, name: str, stage: str) -> Function:
    if isinstance(found, Function):
        return found
    if not callable(found) or inspect.isclass(found):
        raise ArgumentError(stage, f"{name} is a {type(found).__name__}, not a function.", "")
    return hf.function(found)


def specs(function: Function, shapes: str | None, stage: str) -> tuple[TensorSpec, ...]:
    """The argument types: what ``--shapes`` says, else the function's own ``input_signature``.

    Raises ArgumentError where the text is no list of shapes, or their number does not fit the function.
    """
    if shapes is not None:
        found = parse_shapes(shapes, stage)
    elif function.input_signature is not None:
        found = tuple(function.input_signature)
    else:
        found = ()
    _check_count(function.python_function, len(found), stage)
    return found


def trace_arguments(function: Function, shapes: str | None, stage: str) -> tuple[TensorSpec, ...]:
    """What to pass for looking at a signature: nothing where the function has only its own."""
    found = specs(function, shapes, stage)
    return found if function.input_signature is None else ()


def parse_shapes(text: str, stage: str) -> tuple[TensorSpec, ...]:
    """``32x128,64x128:f64`` as specs."""
    return tuple(_parse_shape(part.strip(), stage) for part in text.split(",")) if text.strip() else ()


def _parse_shape(text: str, stage: str) -> TensorSpec:
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ArgumentError(stage, f"--shapes: {text!r} is no shape. Write {SHAPES_HELP}.", "")
    name = match["dtype"] or "f32"
    if name not in _DTYPES:
        close = difflib.get_close_matches(name, _DTYPES, 1)
        hint = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(dtypes.FROM_SHORT)}."
        raise ArgumentError(stage, f"--shapes: there is no dtype {name!r}{hint}", "")
    extents = () if match["extents"] == "scalar" else tuple(map(int, match["extents"].split("x")))
    return TensorSpec(extents, _DTYPES[name])


def _check_count(python: Callable[..., Any], given: int, stage: str) -> None:
    signature = inspect.signature(python)
    try:
        signature.bind(*[None] * given)
    except TypeError:
        name = getattr(python, "__name__", "the function")
        raise ArgumentError(
            stage, f"{name}{signature} cannot be called with {given} tensors. Give --shapes, {SHAPES_HELP}.", ""
        ) from None


def random_tensors(wanted: Sequence[TensorSpec], stage: str) -> tuple[Any, ...]:
    """Tensors of those types with the same random values every time: floats are normal, integers 0 or 1.

    Small integers are good class numbers and indices whatever they index.
    """
    generator = np.random.default_rng(0)
    made = []
    for spec in wanted:
        shape = tuple(extent for extent in spec.shape if isinstance(extent, int))
        if len(shape) < len(spec.shape):
            raise ArgumentError(stage, f"{spec} leaves an extent open; give the sizes to run with by --shapes.", "")
        is_float = dtypes.is_float(spec.dtype)
        values: Any = generator.standard_normal(shape, np.float32) if is_float else generator.integers(0, 2, shape)
        made.append(hf.asarray(np.asarray(values).astype(spec.dtype)))
    return tuple(made)
