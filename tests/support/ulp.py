"""Errors of the elementary functions in units in the last place, against wider references."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from hybridflow.compiler.ops import elementary
from tests.support.jit_helper import Compiled, compile_loop

mpmath = pytest.importorskip("mpmath", reason="the references need mpmath")

Longer = np.longdouble
BINARY = ("atan2", "hypot", "logaddexp", "pow")


def _erf(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.float64:
        return np.fromiter(map(math.erf, x.tolist()), np.float64, x.size)
    with mpmath.workprec(120):
        texts = [mpmath.nstr(mpmath.erf(float(v)), 30) if np.isfinite(v) else str(np.sign(v)) for v in x]
    return np.copysign(np.array([Longer(text) for text in texts]), x)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, 1) / (1 + z)


REFERENCE: dict[str, Callable[..., np.ndarray]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": _erf,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "hypot": np.hypot,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "logaddexp": np.logaddexp,
    "pow": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": _sigmoid,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}


def compiled(name: str, dtype: np.dtype, **options: object) -> Compiled:
    """The function as machine code over arrays."""
    function = getattr(elementary, name)
    arity = 2 if name in BINARY else 1
    return compile_loop(lambda e, *x: function(e, *x), [dtype] * arity, **options)  # type: ignore[arg-type]


def reference(name: str, *arguments: np.ndarray) -> np.ndarray:
    """The value in float64 for float32 arguments, in the longer double for float64."""
    wide = np.float64 if arguments[0].dtype == np.float32 else Longer
    with np.errstate(all="ignore"):
        return REFERENCE[name](*(x.astype(wide) for x in arguments))


def errors(got: np.ndarray, exact: np.ndarray, scale: np.ndarray | None = None) -> np.ndarray:
    """|got - exact| in units in the last place that ``got``'s dtype has at ``exact`` (at ``scale`` where given).

    Infinite for a wrong NaN, a wrong infinity, or a zero of the wrong sign.
    """
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.abs(exact if scale is None else np.maximum(np.abs(scale), np.abs(exact))))
        unit = np.ldexp(exact.dtype.type(1), np.maximum(exponent - 1, info.minexp) - info.nmant)
        error = np.abs(got.astype(exact.dtype) - exact) / unit
        overflow = (np.abs(exact) >= np.ldexp(exact.dtype.type(2) - info.eps / 2, info.maxexp - 1)) & np.isinf(got)
        same_sign = np.signbit(got) == np.signbit(exact)
        right = ((got == exact) | overflow) & same_sign | (np.isnan(got) & np.isnan(exact))
        wrong = np.isnan(error) | ((exact == 0) & ~same_sign)
    return np.where(right, 0.0, np.where(wrong, np.inf, error)).astype(np.float64)


def measured(name: str, got: np.ndarray, *arguments: np.ndarray) -> np.ndarray:
    """The errors of results for arguments; logaddexp's relative to the larger of its two parts."""
    exact, scale = reference(name, *arguments), None
    if name == "logaddexp":
        with np.errstate(all="ignore"):
            larger = np.maximum(*arguments).astype(exact.dtype)
            scale = np.fmax(np.abs(larger), np.abs(exact - larger))
    return errors(got, exact, scale)
