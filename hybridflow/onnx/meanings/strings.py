"""Operators of strings, which are arrays of NumPy and never tensors: models that take strings are not compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hybridflow.array import elementwise as ew, reductions, shapes
from hybridflow.array.creation import asarray
from hybridflow.array.indexing import take
from hybridflow.compiler.ir import dtypes
from hybridflow.onnx.operators import ML, operator
from hybridflow.onnx.running import Call
from hybridflow.strings.regex import compiled


def text(call: Call, value: object) -> np.ndarray:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "U":
        raise call.fault("its operand is no tensor of strings.")
    return value


@operator("StringConcat", since=20, raw=(0, 1))
def concat(call: Call, a: object, b: object) -> np.ndarray:
    return np.asarray(np.strings.add(text(call, a), text(call, b)))


@operator("StringSplit", since=20, raw=(0,))
def split(
    call: Call, x: object, *, delimiter: str | None = None, maxsplit: int | None = None
) -> tuple[np.ndarray, Any]:
    """The parts along a new last axis, and how many each has."""
    array = text(call, x)
    most = -1 if maxsplit is None else maxsplit
    parts = [str(each).split(delimiter or None, most) for each in array.flat]
    widest = max(map(len, parts), default=0)
    rows = np.array([row + [""] * (widest - len(row)) for row in parts], str).reshape(*array.shape, widest)
    return rows, asarray(np.array([len(row) for row in parts], np.int64).reshape(array.shape))


@operator("RegexFullMatch", since=20, raw=(0,))
def full_match(call: Call, x: object, *, pattern: str) -> Any:
    """Whether each string matches, by RE2's rules."""
    array = text(call, x)
    match = compiled(pattern.encode()).fullmatch
    return asarray(np.array([match(str(each)) is not None for each in array.flat], np.bool_).reshape(array.shape))


_CASES: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}


@operator("StringNormalizer", since=10, raw=(0,))
def normalize(
    call: Call,
    x: object,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Iterable[Any] | None = None,
) -> np.ndarray:
    array = text(call, x)
    if array.ndim > 2 or (array.ndim == 2 and array.shape[0] != 1):
        raise call.fault(f"its operand has the shape {array.shape}. Expected [n] or [1, n].")
    key = str if is_case_sensitive else str.lower
    left_out = {key(word) for word in stopwords or ()}
    kept = [_CASES[case_change_action](str(word)) for word in array.flat if key(str(word)) not in left_out]
    result = np.array(kept or [""], str)
    return result if array.ndim == 1 else result.reshape(1, -1)


def _list_attribute(attributes: dict[str, Any], name: str) -> Any:
    for kind in ("tensor", "int64s", "floats", "strings"):
        value = attributes.get(f"{name}_{kind}")
        if value is not None:
            dtype = {"int64s": np.int64, "floats": np.float32, "strings": str}.get(kind)
            return np.asarray(value, dtype)
    return None


@operator("LabelEncoder", domain=ML, since=2, raw=(0,))
def label_encoder(
    call: Call,
    x: object,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Any = None,
    keys_floats: object = None,
    keys_int64s: object = None,
    keys_strings: object = None,
    keys_tensor: object = None,
    values_floats: object = None,
    values_int64s: object = None,
    values_strings: object = None,
    values_tensor: object = None,
) -> Any:
    """Values by keys; the default where there is none."""
    keys, values = _list_attribute(call.node.attributes, "keys"), _list_attribute(call.node.attributes, "values")
    if keys is None or values is None or keys.shape != values.shape:
        raise call.fault("it has no keys, or not as many values.")
    keys, values = keys.reshape(-1), values.reshape(-1)
    if default_tensor is not None:
        default: Any = default_tensor.reshape(-1)[0]
    else:
        default = {"U": default_string, "i": default_int64}.get(values.dtype.kind, default_float)
    if keys.dtype.kind == "U" or values.dtype.kind == "U":
        array = text(call, x) if keys.dtype.kind == "U" else call.numbers(x)
        known = dict(zip(keys.tolist(), values.tolist()))
        labels = np.array([known.get(each, default) for each in array.reshape(-1).tolist()], values.dtype.type)
        labels = labels.reshape(array.shape)
        return labels if labels.dtype.kind == "U" else asarray(labels)
    tensor = call.tensor(x)
    same = ew.equal(shapes.expand_dims(tensor, axis=tensor.ndim), asarray(keys.astype(tensor.dtype)))
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        same = ew.logical_or(
            same, ew.logical_and(ew.isnan(shapes.expand_dims(tensor, axis=-1)), asarray(np.isnan(keys)))
        )
    place = reductions.argmax(ew.astype(same, dtypes.int32), axis=-1)
    chosen = take(asarray(np.append(values, np.asarray(default, values.dtype))), place, axis=0)
    return ew.where(reductions.any(same, axis=-1), chosen, asarray(np.asarray(default, values.dtype)))
