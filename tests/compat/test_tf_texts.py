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


def test_texts_have_tensorflows_attributes() -> None:
    x = tf.constant(["a"])
    assert x.dtype.name == "string" and repr(x.dtype) == "tf.string" and x.shape.as_list() == [1]
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
    assert (table.key_dtype, table.value_dtype) == (tf.string, tf.int32)


def test_python_functions_of_texts() -> None:
    def turned(x: Any) -> Any:
        return x.numpy().decode()[::-1]

    @tf.function
    def f(x: Any) -> Any:
        y = tf.py_function(turned, [x], tf.string)
        y.set_shape([])
        pair = tf.numpy_function(lambda a, b: np.array([a, b], object), [x, y], tf.TensorSpec([2], tf.string))
        return tf.strings.upper(y), tf.strings.join([y, pair])

    for word in ("abc", "xy"):
        upper, pair = f(tf.constant(word))
        assert upper.numpy() == word[::-1].upper().encode()
        assert pair.numpy().tolist() == [(word[::-1] + part).encode() for part in (word, word[::-1])]
    assert tf.py_function(turned, ["ab"], tf.string).numpy() == b"ba"
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.py_function(lambda x: 1, ["ab"], tf.string)
    files = tf.data.Dataset.from_tensor_slices(["ab", "c"]).map(lambda x: tf.py_function(turned, [x], tf.string))
    assert list(files.as_numpy_iterator()) == [b"ba", b"c"]


def test_texts_that_fill_up() -> None:
    words = tf.data.Dataset.from_tensor_slices(["a b", "c"]).map(tf.strings.split)
    (batch,) = words.padded_batch(2, padding_values="_")
    assert batch.numpy().tolist() == [[b"a", b"b"], [b"c", b"_"]]
    assert tf.pad(["a"], [[0, 1]], constant_values="q").numpy().tolist() == [b"a", b"q"]
    assert tf.zeros([1, 2], tf.string).numpy().tolist() == [[b"", b""]]
    assert tf.function(tf.zeros_like)(tf.constant(["a", "b"])).numpy().tolist() == [b"", b""]


def test_base64_and_maps_of_texts() -> None:
    assert tf.io.encode_base64(["hi?>", "x"]).numpy().tolist() == [b"aGk_Pg", b"eA"]
    assert tf.io.encode_base64("x", pad=True).numpy() == b"eA=="
    assert tf.io.decode_base64(["aGk_Pg", "eA=="]).numpy().tolist() == [b"hi?>", b"x"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="base64"):
        tf.io.decode_base64("?")
    assert tf.vectorized_map(tf.strings.length, tf.constant(["a", "bb"])).numpy().tolist() == [1, 2]


def test_texts_are_printed_as_tensorflow_does(tmp_path: Path) -> None:
    address = f"file://{tmp_path / 'out'}"
    tf.print("a", tf.constant("b"), tf.constant(["x", "\u00e9"]), output_stream=address)
    tf.function(lambda x: tf.print(x, output_stream=address))(tf.constant("alone"))
    assert (tmp_path / "out").read_text("utf-8") == 'a "b" ["x" "\u00e9"]\nalone\n'


def test_corners_of_functions_of_texts() -> None:
    """TensorFlow's answers, found by comparing random texts."""
    s, inf = tf.strings, float("inf")
    assert s.regex_replace("a \t\n\v", r"\s", "_").numpy() == b"a___\v"
    assert s.regex_replace("a \v", r"[\S]", "_").numpy() == b"_ _"
    assert s.split(["a", "a b ", " a  b c"], maxsplit=1).to_list() == [[b"a", b""], [b"a", b"b "], [b"a", b"b c"]]
    assert s.substr("hello", 1, -1).numpy() == b"ello"
    assert s.as_string([inf, -inf, 1.0], width=12, fill="0").numpy().tolist() == [
        b"         inf",
        b"        -inf",
        b"00001.000000",
    ]
    assert s.as_string([True], width=6).numpy().tolist() == [b"true"]
    assert s.as_string(["\u00e9"], width=4).numpy().tolist() == ["  \u00e9".encode()]
    assert s.upper(b"a\xff\xed\xa0\x80", encoding="utf-8").numpy() == b"A" + 4 * b"\xef\xbf\xbd"
    assert s.format("{}", tf.constant(1 / 3)).numpy() == b"0.333333343"
    assert s.format("{}", tf.constant([0.1, 1e-5])).numpy() == b"[0.1 1e-05]"
