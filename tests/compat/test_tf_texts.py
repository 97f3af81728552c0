"""Calls on texts, look-ups and layers of texts, with the answers that TensorFlow 2.21 gives to them.

The answers are in ``tests/data/texts/calls.json``: values, dtypes, shapes and types, and of errors the class.
"""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybridflow.compat import tf

CALLS: list[list[Any]] = json.loads((Path(__file__).parents[1] / "data" / "texts" / "calls.json").read_text("utf-8"))


def adapted(layer: Any, data: Any) -> Any:
    layer.adapt(data)
    return layer


def record() -> bytes:
    features = {
        "i": tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2])),
        "f": tf.train.Feature(float_list=tf.train.FloatList(value=[0.5])),
        "s": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"text"])),
        "v": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"b"])),
    }
    serialized: bytes = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    return serialized


def traced(function: Any, *args: Any) -> Any:
    return tf.function(function)(*args)


def plain(value: Any) -> Any:
    """A value in JSON's words."""
    if isinstance(value, bytes):
        return {"b": value.hex()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (str, bool, int, type(None))):
        return value
    if isinstance(value, (float, complex)):
        return repr(value)
    if hasattr(value, "row_splits"):
        return {"ragged": plain(value.to_list()), "dtype": tf.as_dtype(value.dtype).name}
    if hasattr(value, "dense_shape"):
        parts = value.indices, value.values
        return {"sparse": [*[plain(np.asarray(part)) for part in parts], [int(n) for n in value.dense_shape]]}
    if isinstance(value, dict):
        return {"dict": {key: plain(part) for key, part in sorted(value.items())}}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return {
        "t": plain(value.numpy()),
        "dtype": tf.as_dtype(value.dtype).name,
        "shape": [int(extent) for extent in value.shape],
    }


def alike(one: Any, other: Any) -> bool:
    """Whether two values in JSON are equal but for the last digits of floats."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, str) and isinstance(other, str) and one != other:
        return float(one) == pytest.approx(float(other), rel=1e-5)
    return bool(one == other)


@pytest.mark.parametrize("first", range(0, len(CALLS), 50))
def test_calls_answer_as_tensorflow(first: int) -> None:
    names = {"tf": tf, "np": np, "adapted": adapted, "record": record, "traced": traced}
    for call, wanted in CALLS[first : first + 50]:
        if isinstance(wanted, dict) and "error" in wanted:
            kind = getattr(tf.errors, wanted["error"], None) or getattr(builtins, wanted["error"])
            with pytest.raises(kind):
                eval(call, names)
            continue
        found = plain(eval(call, names))
        assert alike(found, wanted), (call, found, wanted)
