"""Functions of texts against Python's own, eagerly and compiled: values, and errors for what is no text."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import strings

WORDS = [
    b"",
    b"a",
    b"Hello World",
    "h\u00e9\u0419 \U0001f600".encode(),
    b"\xff\xfe",
    b"a\xe2\x82z",
    b" \t x\n",
    b"a,b,,c",
]
SHAPES = [(len(WORDS),), (0,), (1,), (2, 4), (2, 0), ()]


EACH: dict[str, tuple[Any, Any]] = {
    "lower": (strings.lower, bytes.lower),
    "upper": (strings.upper, bytes.upper),
    "strip": (strings.strip, lambda x: x.strip(b" \t\n\v\f\r")),
    "length": (strings.length, len),
    "characters": (lambda x: strings.length(x, "UTF8_CHAR"), lambda x: sum(byte & 0xC0 != 0x80 for byte in x)),
    "substr": (lambda x: strings.substr(x, 0, 3), lambda x: x[:3]),
    "join": (lambda x: strings.join([x, "-", x]), lambda x: x + b"-" + x),
    "add": (lambda x: "<" + x + ">", lambda x: b"<" + x + b">"),
    "equal": (lambda x: x == "a", lambda x: x == b"a"),
    "not_equal": (lambda x: x != "a", lambda x: x != b"a"),
    "regex_replace": (lambda x: strings.regex_replace(x, "[a-z]", "_"), lambda x: re.sub(b"[a-z]", b"_", x)),
    "full_match": (lambda x: strings.regex_full_match(x, "a.*"), lambda x: x.startswith(b"a")),
    "where": (lambda x: hf.where(x == "", "none", x), lambda x: x or b"none"),
}  # fmt: skip


def arrays(shape: tuple[int, ...]) -> np.ndarray:
    result: Any = np.empty(int(np.prod(shape)), object)
    result[:] = WORDS[: result.size]
    return result.reshape(shape)


@pytest.mark.parametrize("name", EACH)
def test_each_text(name: str) -> None:
    function, expected = EACH[name]
    compiled = hf.function(function)
    for shape in SHAPES:
        array = arrays(shape)
        wanted = [expected(text) for text in array.ravel().tolist()]
        for call in (function, compiled):
            answer = call(strings.constant(array))
            assert answer.shape == shape
            assert np.asarray(answer).ravel().tolist() == wanted, (name, shape, call)


def test_what_moves_elements() -> None:
    def moved(x: Any) -> list[Any]:
        return [
            *(x[0], x[:, 1], x[::-1], x.T, hf.reshape(x, (-1,)), hf.concat([x, x], axis=1), hf.stack([x, x])),
            *(hf.tile(x, (1, 2)), hf.roll(x, 1, axis=0), hf.flip(x), hf.take(x, hf.asarray([1, 0]), axis=0)),
            *(hf.repeat(x, 2), hf.broadcast_to(x[:1], (3, 4)), hf.expand_dims(x, 0), hf.pad(x, [(0, 1), (0, 0)])),
        ]

    array = arrays((2, 4))
    wanted = [
        *(array[0], array[:, 1], array[::-1], array.T, array.ravel(), np.concatenate([array, array], 1)),
        *(np.stack([array, array]), np.tile(array, (1, 2)), np.roll(array, 1, 0), np.flip(array), array[[1, 0]]),
        *(np.repeat(array, 2), np.broadcast_to(array[:1], (3, 4)), array[None]),
        np.concatenate([array, np.full((1, 4), b"", object)]),
    ]
    for call in (moved, hf.function(moved)):
        for answer, expected in zip(call(strings.constant(array)), wanted, strict=True):
            assert answer.tolist() == expected.tolist()
    flags = hf.asarray([[True, False, False, True], [False] * 4])
    assert strings.constant(array)[flags].tolist() == [array[0, 0], array[0, 3]]


@pytest.mark.parametrize("words", [["a b  c", "", "d"], [""], []])
def test_rows_of_parts(words: list[str]) -> None:
    def parts(x: Any) -> Any:
        pieces = strings.split(x)
        return pieces.values, pieces.row_lengths(), strings.bytes_split(x).values, strings.reduce_join(pieces, axis=1)

    x = strings.constant(np.array(words, object))
    split = [word.encode().split() for word in words]
    wanted = [
        *([part for row in split for part in row], [len(row) for row in split]),
        *([bytes([byte]) for word in words for byte in word.encode()], [b"".join(row) for row in split]),
    ]
    for call in (parts, hf.function(parts)):
        assert [answer.tolist() for answer in call(x)] == wanted


@pytest.mark.parametrize("errors", ["replace", "ignore"])
def test_bytes_that_are_no_utf8(errors: str) -> None:
    """Python's decoder finds the same characters where it puts one for each byte that is none."""

    def decoded(x: Any) -> Any:
        return strings.unicode_decode(x, "UTF-8", errors=errors).values

    for text in WORDS:
        wanted = [ord(character) for character in text.decode("utf-8", errors)]
        for call in (decoded, hf.function(decoded)):
            assert call(strings.constant([text])).tolist() == wanted, text
        if b"\xff" in text:
            with pytest.raises(hf.errors.ArgumentError, match="Invalid formatting"):
                hf.function(lambda x: strings.unicode_decode(x, "UTF-8", errors="strict").values)([text])


def test_numbers_and_texts() -> None:
    integers, floats = np.array([-(2**63), -1, 0, 2**63 - 1]), np.array([0.0, -0.0, 1e-30, np.inf, -np.inf, 1.5])

    def there_and_back(x: Any) -> Any:
        return strings.to_number(strings.as_string(x, shortest=True), x.dtype)

    for call in (there_and_back, hf.function(there_and_back)):
        assert call(hf.asarray(floats)).tolist() == floats.tolist()
        assert np.isnan(call(hf.asarray(np.array([np.nan]))).item())
    for call in (strings.as_string, hf.function(strings.as_string)):
        assert call(hf.asarray(integers)).tolist() == [str(n).encode() for n in integers.tolist()]
    for text in ("", "x", "1.5", "1_0", str(2**63)):
        for call in (strings.to_number, hf.function(lambda x, out_type: strings.to_number(x, "int64"))):
            with pytest.raises(hf.errors.ArgumentError, match="could not correctly convert"):
                call(strings.constant(text), "int64")


def test_what_is_refused() -> None:
    x = strings.constant(["a"])
    for call in (operator.mul, operator.lt, operator.sub, hf.matmul, hf.maximum):
        with pytest.raises(hf.errors.DTypeError):
            call(x, x)
        with pytest.raises(hf.errors.DTypeError):
            hf.function(call)(x, x)
    for value in (1, [1], ["a", 1], None, {"a": 1}):
        with pytest.raises((hf.errors.ArgumentTypeError, hf.errors.DTypeError)):
            strings.constant(value)
    with pytest.raises(hf.errors.ArgumentError, match="ragged"):
        strings.constant([["a"], ["b", "c"]])
    with pytest.raises(hf.errors.DTypeError, match="holds numbers"):
        strings.upper(hf.ones(1))
    with pytest.raises(hf.errors.DTypeError, match="to_number"):
        hf.astype(x, "float32")
    with pytest.raises(hf.errors.DTypeError, match="as_string"):
        hf.astype(hf.ones(1), "string")
    with pytest.raises(hf.errors.IndexRangeError):
        hf.function(lambda x: strings.substr(x, 5, 1))(x)
    with pytest.raises(hf.errors.InvalidArgumentError, match="does not hold"):
        hf.debugging.assert_equal(x[0], "b")


def test_python_functions_of_texts() -> None:
    @hf.function
    def f(x: Any) -> Any:
        turned = hf.py_function(lambda y: y.numpy()[::-1], [x], hf.TensorSpec((), "string"))
        return strings.join([x, turned])

    assert [f(strings.constant(word)).numpy() for word in ("ab", "xyz")] == [b"abba", b"xyzzyx"]
