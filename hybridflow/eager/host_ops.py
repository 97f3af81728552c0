"""Ops that are functions of the host (NumPy's LAPACK, and native code for small and for large matrices): eager mode and
programs call the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow import errors
from hybridflow.compiler.ir.dtypes import is_complex
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE, OpDef
from hybridflow.compiler.program import HostFunction
from hybridflow.core import devices
from hybridflow.eager import blocked_linalg, small_matrices


class LinAlgError(errors.LinAlgError, np.linalg.LinAlgError):
    """What code written for NumPy catches, too."""

    __module__ = errors.LinAlgError.__module__  # to people it is that one

    def __reduce__(self) -> Any:
        return _again, (self.args, self.__dict__)


def _again(args: Any, state: Any) -> Any:
    return errors.again(LinAlgError, args, state)


def call(op: OpDef, arrays: tuple[Any, ...], attrs: Mapping[str, Any], where: str | None = None) -> tuple[Any, ...]:
    """The results, as a tuple.  Raises LinAlgError where a matrix has none, DeviceError for arrays on a GPU."""
    for array in arrays:
        if not isinstance(array, np.ndarray):
            raise errors.DeviceError(
                op.name,
                f"is computed by NumPy, and a tensor lies on {devices.of(array)}. Move it with x.to_device('cpu').",
                where,
            )
    inputs = [*map(np.ascontiguousarray, arrays)]

    def by_lapack(*matrices: np.ndarray) -> Any:
        return op.reference(None, *matrices, **attrs)

    def results(*matrices: np.ndarray) -> Any:
        results_here = None if is_complex(matrices[0].dtype) else _natively(op, matrices, attrs, by_lapack)
        return by_lapack(*matrices) if results_here is None else results_here

    try:
        results_here = results(*inputs)
    except np.linalg.LinAlgError as error:
        types = ", ".join(str(TensorType(array.shape, array.dtype)) for array in arrays)
        place, reason = _first_without_result(results, inputs, error)
        raise LinAlgError(op.name, f"there is no result for {types}{place}: {reason}.", where) from None
    return tuple(results_here)


def _natively(
    op: OpDef, operands: Sequence[np.ndarray], attrs: Mapping[str, Any], by_lapack: Callable[..., Any]
) -> tuple[np.ndarray, ...] | None:
    """The results for small and for large real matrices, None for others."""
    small = small_matrices.computed(op.name, operands, lambda *matrices: by_lapack(*matrices)[0])
    return blocked_linalg.computed(op.name, operands, attrs) if small is None else (small,)


def _first_without_result(
    function: Callable[..., Any], arrays: list[np.ndarray], error: Exception
) -> tuple[str, Exception]:
    """Where in stacks the first matrix stands that has no result, in words, and why it has none."""
    front = arrays[0].shape[:-2]
    for index in np.ndindex(front) if front else ():
        try:
            function(*[x[index] for x in arrays])
        except np.linalg.LinAlgError as of_one:
            return f", at {list(index)} of the stack", of_one
    return "", error


def named(function: HostFunction, where: str | None) -> Callable[..., Any]:
    """What a program calls by a name."""
    op, attrs = TABLE[function.name], dict(function.options)

    def run(*arrays: np.ndarray) -> Any:
        results = call(op, arrays, attrs, where)
        return results if len(results) > 1 else results[0]

    return run
