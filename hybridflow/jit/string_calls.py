"""Calls of functions with tensors of texts among their arguments or results: programs work with the codes of texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridflow.compiler.ir.dtypes import int64
from hybridflow.core import pytree
from hybridflow.core.context import now
from hybridflow.core.string_tensor import (
    StringTensor,
    as_strings,
    holds_texts,
    is_string,
    of_codes,
    running,
    trace_codes,
)
from hybridflow.core.tensor import Tensor
from hybridflow.jit.python_wrappers import PythonWrapper
from hybridflow.jit.tensor_spec import TensorSpec


@dataclass(frozen=True)
class Codes:
    """What stands for a tensor of texts among the arguments and results of a program."""

    codes: Tensor


def as_codes(value: object) -> Any:
    """A nested value with codes in the place of texts.  Raises ArgumentError for what contains itself."""
    try:
        return _as_codes(value)
    except RecursionError:
        raise pytree.endless(value) from None


def _as_codes(value: object) -> Any:
    if type(value) is StringTensor:
        return Codes(trace_codes(value) if now().trace is not None else value.codes)
    if isinstance(value, np.ndarray) and value.dtype.kind in "USO" and holds_texts(value):
        return Codes(as_strings(value, "function").codes)
    if isinstance(value, TensorSpec) and is_string(value.dtype):
        return Codes(TensorSpec(value.shape, int64, value.name))  # type: ignore[arg-type]
    return _each(_as_codes, value)


def _each(function: Callable[[Any], Any], value: object) -> Any:
    """A nested value with ``function`` of its parts; itself where these stay."""
    parts = pytree.parts_of(value)
    if parts is None:
        return value
    children = list(parts[1])
    converted = [function(child) for child in children]
    if all(new is old for new, old in zip(converted, children)):
        return value
    structure = pytree.structure_of(value, parts[0], [pytree.LEAF] * len(converted))
    return pytree.unflatten(structure, converted)


def as_texts(value: object) -> Any:
    """A nested value with texts in the place of codes."""
    if type(value) is Codes:
        return of_codes(value.codes)
    return _each(as_texts, value)


class OfCodes(PythonWrapper):
    """A function of the user's as one of codes."""

    def __call__(self, *args: object, **kwargs: object) -> Any:
        trace: Any = now().trace
        if trace is not None:
            trace.keeps_codes = True
        return as_codes(self._python(*as_texts(args), **as_texts(kwargs)))


class StringCalls:
    """A route of calls: with codes in the place of texts.  ``run`` is the function of codes, which is traced and
    compiled."""

    __slots__ = ("run",)
    means = "have texts"

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of ``run`` for such a call."""
        return as_codes(args), as_codes(kwargs)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with running():
            args, kwargs = self.arguments(args, kwargs)
            return as_texts(self.run(*args, **kwargs))

    def concrete(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteStrings:
        """The concrete function for such arguments."""
        run: Any = self.run
        args, kwargs = self.arguments(args, kwargs)
        return ConcreteStrings(run.get_concrete_function(*args, **kwargs))


class ConcreteStrings:
    """A concrete function of codes, which is called with texts."""

    def __init__(self, of_codes: Any) -> None:
        self._of_codes = of_codes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return StringCalls(self._of_codes)(args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_of_codes"], name)

    def __repr__(self) -> str:
        return repr(self._of_codes)
