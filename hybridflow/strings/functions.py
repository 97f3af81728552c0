"""Functions of tensors of texts, with the names and arguments of ``tf.strings``."""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.array.shapes import reshape
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.dtypes import int32, int64
from hybridflow.compiler.ir.extents import known as known_extents
from hybridflow.compiler.ir.types import TensorType, broadcast_shapes
from hybridflow.core.promotion import to_dtype
from hybridflow.core.string_tensor import StringTensor, as_bytes, as_strings, holds_texts, is_string, of_texts, string
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike, ShapeLike
from hybridflow.eager import string_ops
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, IndexRangeError, ShapeError, entered
from hybridflow.ragged import Ragged, made as made_ragged
from hybridflow.strings import encodings, hashing, regex
from hybridflow.strings.host import extent, known, mapped, step


@entered
def constant(value: ArrayLike | str | bytes, shape: ShapeLike | None = None) -> StringTensor:
    """Tensor of texts: each is kept as bytes, a ``str`` in UTF-8.

    Args:
        value: texts: one, a nested list or an array of them.
        shape: the shape of the result.

    Returns:
        A tensor of texts.

    Raises:
        ArgumentTypeError: for what is no text.

    Example:
        >>> hf.strings.constant(["ann", "bob"])
        <Tensor string[2] cpu> [b'ann' b'bob']
    """
    outcome = as_strings(value, "strings.constant")
    return outcome if shape is None else reshape(outcome, shape)  # type: ignore[return-value]


def _ascii(name: str) -> Callable[[bytes, str], bytes]:
    def change(text: bytes, encoding: str) -> bytes:
        if not encoding:
            return getattr(text, name)()
        if encoding.lower() != "utf-8":
            raise ArgumentError(f"strings.{name}", f"only utf-8 or '' (no encoding) is supported, not {encoding!r}.")
        changed: str = getattr(text.decode("utf-8", "replace"), name)()
        return changed.encode()

    return change


_lower, _upper = _ascii("lower"), _ascii("upper")


@entered
def lower(input: object, encoding: str = "", name: str | None = None) -> Any:
    """Lower case: letters of ASCII, or with ``encoding="utf-8"`` of Unicode.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        encoding: "" or "utf-8".
        name: ignored.

    Returns:
        Texts of the shape of ``input``.

    Raises:
        ArgumentError: for another encoding.

    Example:
        >>> hf.strings.lower("One TWO").numpy()
        b'one two'
    """
    return mapped("strings.lower", lambda text: _lower(text, encoding), input)


@entered
def upper(input: object, encoding: str = "", name: str | None = None) -> Any:
    """Upper case: letters of ASCII, or with ``encoding="utf-8"`` of Unicode.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        encoding: "" or "utf-8".
        name: ignored.

    Returns:
        Texts of the shape of ``input``.

    Raises:
        ArgumentError: for another encoding.

    Example:
        >>> hf.strings.upper("One two").numpy()
        b'ONE TWO'
    """
    return mapped("strings.upper", lambda text: _upper(text, encoding), input)


@entered
def strip(input: object, name: str | None = None) -> Any:
    """White space at both ends is taken off.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        name: ignored.

    Returns:
        Texts of the shape of ``input``.

    Raises:
        ArgumentTypeError: for what is no text.

    Example:
        >>> hf.strings.strip(" a b ").numpy()
        b'a b'
    """
    return mapped("strings.strip", lambda text: text.strip(b" \t\n\v\f\r"), input)


@entered
def length(input: object, unit: str = "BYTE", name: str | None = None) -> Any:
    r"""Length of each text, in bytes or characters.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        unit: "BYTE" or "UTF8_CHAR".
        name: ignored.

    Returns:
        An int32 tensor of the shape of ``input``.

    Raises:
        ArgumentError: for another unit.

    Example:
        >>> hf.strings.length("th\u00e9").item(), hf.strings.length("th\u00e9", "UTF8_CHAR").item()
        (4, 3)
    """
    _check_unit("strings.length", unit)
    count = len if unit == "BYTE" else lambda text: sum([1 for byte in text if byte & 0xC0 != 0x80])
    return mapped("strings.length", count, input, int32)


def _check_unit(stage: str, unit: object) -> None:
    if unit not in ("BYTE", "UTF8_CHAR"):
        raise ArgumentError(stage, f"unit is {unit!r}. Expected 'BYTE' or 'UTF8_CHAR'.")


@entered
def substr(input: object, pos: object, len: object, unit: str = "BYTE", name: str | None = None) -> Any:
    """Part of each text: ``len`` bytes or characters from ``pos`` on, which counts from the end where it is negative.
    All that follow are in it where ``len`` is negative.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        pos: integers, which broadcast with the texts.
        len: integers, likewise.
        unit: "BYTE" or "UTF8_CHAR".
        name: ignored.

    Returns:
        Texts of the common shape.

    Raises:
        IndexRangeError: for a position outside of a text.
        ShapeError: where shapes do not broadcast.

    Example:
        >>> hf.strings.substr(["hello", "world"], 1, 3)
        <Tensor string[2] cpu> [b'ell' b'orl']
    """
    stage = "strings.substr"
    _check_unit(stage, unit)
    if isinstance(input, Ragged):
        return input.with_values(substr(input.values, pos, len, unit))
    x, start, count = as_strings(input, stage), as_tensor(pos, stage), as_tensor(len, stage)
    try:
        shape = broadcast_shapes(broadcast_shapes(x.shape, start.shape), count.shape)
    except ValueError as error:
        raise ShapeError(stage, f"{error}.") from None

    def run(texts: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> Any:
        texts, starts, counts = np.broadcast_arrays(texts, starts, counts)
        rows = zip(texts.ravel().tolist(), starts.ravel().tolist(), counts.ravel().tolist())
        outcome = [_part(text, at, n, unit, k) for k, (text, at, n) in enumerate(rows)]
        result: np.ndarray = np.empty(builtins.len(outcome), object)
        result[:] = outcome
        return result.reshape(texts.shape)

    return step(run, [x, start, count], [TensorType(shape, string)])[0]


def _part(text: bytes, at: int, count: int, unit: str, number: int) -> bytes:
    if unit == "BYTE":
        places = range(len_(text) + 1)
    else:
        places = [*[k for k, byte in enumerate(text) if byte & 0xC0 != 0x80], len_(text)]  # type: ignore[assignment]
    total = len_(places) - 1
    if at > total or at < -total:
        raise IndexRangeError("strings.substr", f"pos {at} out of range for string at index {number}.")
    start = at if at >= 0 else total + at
    end = min(start + count, total) if count >= 0 else total
    return text[places[start] : places[end]]


len_ = len


@entered
def join(inputs: object, separator: object = "", name: str | None = None) -> Any:
    """Texts of several tensors put together, element by element.

    Args:
        inputs: a list of tensors of one shape; single texts go with all.
        separator: what stands between them.
        name: ignored.

    Returns:
        Texts of that shape.

    Raises:
        ShapeError: where shapes differ.
        ArgumentTypeError: for what is no list.

    Example:
        >>> hf.strings.join([["a", "b"], "c"], separator="-")
        <Tensor string[2] cpu> [b'a-c' b'b-c']
    """
    stage = "strings.join"
    if isinstance(inputs, (str, bytes)) or not isinstance(inputs, (list, tuple, Tensor)):
        raise ArgumentTypeError(stage, f"inputs are {inputs!r:.60}. Expected a list of tensors of texts.")
    between = as_bytes(separator, stage)
    ragged = next((x for x in inputs if isinstance(x, Ragged)), None)
    if ragged is not None:
        values = [x.values if isinstance(x, Ragged) else x for x in inputs]
        return ragged.with_values(join(values, separator))
    parts = [as_strings(x, stage) for x in inputs]
    if not parts:
        return of_texts(_scalar(b""))
    shapes = {tuple(x.shape) for x in parts if x.ndim}
    if len(shapes) > 1:
        raise ShapeError(stage, f"the tensors differ in shape: {', '.join(str(x.type) for x in parts)}.")
    shape = shapes.pop() if shapes else ()

    def run(*texts: np.ndarray) -> Any:
        columns = [array.ravel().tolist() for array in np.broadcast_arrays(*texts)]
        outcome = [between.join(row) for row in zip(*columns)]
        result: np.ndarray = np.empty(len(outcome), object)
        result[:] = outcome
        return result.reshape(np.broadcast_shapes(*[a.shape for a in texts]))

    return step(run, parts, [TensorType(shape, string)])[0]


string_ops.joins[:] = [join]


def _scalar(text: bytes) -> np.ndarray:
    result: np.ndarray = np.empty((), object)
    result[()] = text
    return result


@entered
def reduce_join(
    inputs: ArrayLike | str | bytes,
    axis: Any = None,
    keepdims: bool = False,
    separator: object = "",
    name: str | None = None,
) -> Any:
    """Texts along axes put together.

    Args:
        inputs: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        axis: an axis or several; None for all.
        keepdims: whether the axes stay, with extent 1.
        separator: what stands between texts.
        name: ignored.

    Returns:
        Texts without these axes.

    Raises:
        ArgumentError: for an axis that is not there.

    Example:
        >>> hf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1)
        <Tensor string[2] cpu> [b'ab' b'cd']
    """
    stage = "strings.reduce_join"
    between = as_bytes(separator, stage)
    if isinstance(inputs, Ragged):
        if axis not in (-1, 1) or inputs.values.ndim != 1:
            raise ArgumentError(stage, f"axis is {axis!r}; of a ragged tensor it is that of the rows: -1.")

        def rows(texts: np.ndarray, splits: np.ndarray) -> Any:
            listed = texts.tolist()
            outcome: np.ndarray = np.empty(len(splits) - 1, object)
            outcome[:] = [between.join(listed[a:b]) for a, b in itertools.pairwise(splits)]
            return outcome[:, None] if keepdims else outcome

        count = inputs.row_splits.shape[0] - 1
        shape = (count, 1) if keepdims else (count,)
        return step(rows, [as_strings(inputs.values, stage), inputs.row_splits], [TensorType(shape, string)])[0]
    x = as_strings(inputs, stage)
    supplied = (
        list(range(x.ndim))[::-1] if axis is None else [axis] if isinstance(axis, int) else [int(a) for a in axis]
    )
    for a in supplied:
        if not -x.ndim <= a < x.ndim:
            raise ArgumentError(stage, f"Invalid reduction dimension {a} for input with {x.ndim} dimension(s).")
    order = [a % x.ndim for a in supplied][::-1]  # along the first one that is named elements are neighbours
    rest = [a for a in range(x.ndim) if a not in order]
    reduced = tuple([1 if a in order else n for a, n in enumerate(x.shape) if keepdims or a not in order])

    def run(texts: np.ndarray) -> Any:
        kept = [texts.shape[a] for a in rest]
        table = texts.transpose([*rest, *order]).reshape(int(np.prod(kept, dtype=np.int64)), -1) if texts.size else None
        count = int(np.prod(kept, dtype=np.int64))
        outcome: np.ndarray = np.empty(count, object)
        outcome[:] = [b""] * count if table is None else [between.join(row) for row in table.tolist()]
        return outcome.reshape(
            [1 if a in order else n for a, n in enumerate(texts.shape) if keepdims or a not in order]
        )

    return step(run, [x], [TensorType(reduced, string)])[0] if supplied else x


def _text(value: object, stage: str) -> bytes:
    if isinstance(value, StringTensor):
        if not known(value):
            raise ArgumentError(stage, "a pattern has to be known while a function is traced.")
        return value.texts.item()
    return as_bytes(value, stage)


@entered
def regex_replace(
    input: object, pattern: object, rewrite: object, replace_global: bool = True, name: str | None = None
) -> Any:
    r"""What matches a regular expression of RE2's is replaced.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        pattern: the expression.
        rewrite: what a match becomes; ``\1`` is its first group.
        replace_global: whether all matches are replaced, or the first.
        name: ignored.

    Returns:
        Texts of the shape of ``input``.

    Raises:
        ArgumentError: for what is no regular expression.

    Example:
        >>> hf.strings.regex_replace("a1b22", "[0-9]+", "#").numpy()
        b'a#b#'
    """
    stage = "strings.regex_replace"
    wanted, converted = _text(pattern, stage), _text(rewrite, stage)
    regex.compiled(wanted)
    return mapped(stage, lambda text: regex.replaced(text, wanted, converted, bool(replace_global)), input)


@entered
def regex_full_match(input: object, pattern: object, name: str | None = None) -> Any:
    """Whether all of a text matches a regular expression of RE2's.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        pattern: the expression.
        name: ignored.

    Returns:
        A bool tensor of the shape of ``input``.

    Raises:
        ArgumentError: for what is no regular expression.

    Example:
        >>> hf.strings.regex_full_match(["a1", "b"], "[a-z][0-9]").tolist()
        [True, False]
    """
    stage = "strings.regex_full_match"
    search = regex.compiled(_text(pattern, stage))
    return mapped(stage, lambda text: search.fullmatch(regex.text_of(text)) is not None, input, dtypes.bool_)


def _ragged_rows(
    stage: str, x: StringTensor, parts: Callable[[bytes], Sequence[Any]], kinds: Sequence[Any]
) -> list[Any]:
    """Rows of what ``parts`` makes of each text: of several tensors where it gives tuples of ``kinds``."""
    count = x.shape[0]

    def total(texts: np.ndarray) -> Any:
        return np.int64(sum([len_(parts(text)) for text in texts.tolist()]))

    def run(texts: np.ndarray) -> Any:
        rows = [parts(text) for text in texts.tolist()]
        splits = np.zeros(len_(rows) + 1, np.int64)
        splits[1:] = np.cumsum([len_(row) for row in rows], dtype=np.int64)
        flat = [part for row in rows for part in row]
        return (splits, *_columns(flat, kinds))

    if known(x):
        outcome = run(x.texts)
        size = len_(outcome[1])
    else:
        outcome, size = None, extent(total, [x])
    types = [TensorType((count + 1,), int64), *[TensorType((size,), kind) for kind in kinds]]
    results = step((lambda texts: outcome) if outcome is not None else run, [x], types)
    return [made_ragged(values, results[0]) for values in results[1:]]


def _columns(flat: list[Any], kinds: Sequence[Any]) -> list[np.ndarray]:
    columns = [flat] if len_(kinds) == 1 else list(zip(*flat)) or [()] * len_(kinds)
    result = []
    for column, kind in zip(columns, kinds):
        array: np.ndarray = np.empty(len_(column), object if is_string(kind) else kind)
        array[:] = list(column)
        result.append(array)
    return result


def _split_rows(stage: str, input: object, parts: Callable[[bytes], Sequence[Any]], kinds: Sequence[Any]) -> list[Any]:
    """Of a single text a row, of a list of texts ragged rows."""
    if isinstance(input, Ragged):
        raise ShapeError(stage, "the rows of ragged tensors would be ragged themselves. Give its values.")
    x = as_strings(input, stage)
    if x.ndim == 0:
        rows = _ragged_rows(stage, reshape(x, (1,)), parts, kinds)  # type: ignore[arg-type]
        return [row.values for row in rows]
    if x.ndim > 1:
        raise ShapeError(stage, f"{x.type} has {x.ndim} axes. Expected a text or a list of texts; reshape it.")
    return _ragged_rows(stage, x, parts, kinds)


@entered
def split(input: object, sep: object = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Texts split at a separator, or at white space: the parts of one text, or ragged rows of those of several.

    Args:
        input: a text, or texts along one axis.
        sep: the separator; None or "" for white space.
        maxsplit: how often a text is split; -1 for always.
        name: ignored.

    Returns:
        A tensor of texts, or a ragged one.

    Raises:
        ShapeError: for texts of more axes.

    Example:
        >>> hf.strings.split(["a b", "c"]).to_list()
        [[b'a', b'b'], [b'c']]
    """
    stage = "strings.split"
    between = b"" if sep is None else _text(sep, stage)
    most = -1 if maxsplit is None else int(maxsplit)

    def parts(text: bytes) -> list[bytes]:
        return text.split(between, most) if between else _words(text, most)

    return _split_rows(stage, input, parts, [string])[0]


def _words(text: bytes, most: int) -> list[bytes]:
    """A text split at white space; with ``most`` above 0 so often, and then the rest, though it be empty."""
    if most <= 0:
        return text.split()
    parts = text.split(None, most)
    rest = parts.pop() if len_(parts) > most else b""
    return [*parts, rest] if len_(parts) == most else parts


@entered
def bytes_split(input: object, name: str | None = None) -> Any:
    """Bytes of each text: those of one text, or ragged rows of those of several.

    Args:
        input: a text, or texts along one axis.
        name: ignored.

    Returns:
        A tensor of texts, or a ragged one.

    Raises:
        ShapeError: for texts of more axes.

    Example:
        >>> hf.strings.bytes_split("abc")
        <Tensor string[3] cpu> [b'a' b'b' b'c']
    """
    return _split_rows(
        "strings.bytes_split", input, lambda text: [text[k : k + 1] for k in range(len_(text))], [string]
    )[0]


def _unicode(
    stage: str, input: object, input_encoding: object, errors: Any, replacement_char: Any, controls: Any
) -> Any:
    if errors not in ("replace", "strict", "ignore"):
        raise ArgumentError(stage, f"errors is {errors!r}. Expected 'strict', 'replace' or 'ignore'.")
    encoding = encodings.codec(input_encoding, stage)
    if isinstance(replacement_char, (str, bytes)):
        replacement_char = ord(replacement_char)
    return lambda text: encodings.points(text, encoding, errors, int(replacement_char), bool(controls))


@entered
def unicode_decode(
    input: object, input_encoding: str, errors: str = "replace", replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    r"""Characters of each text as code points.

    Args:
        input: a text, or texts along one axis.
        input_encoding: the encoding, such as "UTF-8".
        errors: "replace", "ignore" or "strict".
        replacement_char: the code point in the place of what is no character.
        replace_control_characters: whether control characters are replaced, too.
        name: ignored.

    Returns:
        An int32 tensor, or a ragged one.

    Raises:
        ArgumentError: for an unknown encoding, or texts that are none where ``errors`` is "strict".

    Example:
        >>> hf.strings.unicode_decode("th\u00e9", "UTF-8").tolist()
        [116, 104, 233]
    """
    stage = "strings.unicode_decode"
    points = _unicode(stage, input, input_encoding, errors, replacement_char, replace_control_characters)
    return _split_rows(stage, input, lambda text: [code for code, _ in points(text)], [int32])[0]


@entered
def unicode_decode_with_offsets(
    input: object, input_encoding: str, errors: str = "replace", replacement_char: int = 0xFFFD,
    replace_control_characters: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    r"""Characters of each text as code points, and the bytes where they begin.

    Args:
        input: a text, or texts along one axis.
        input_encoding: the encoding, such as "UTF-8".
        errors: "replace", "ignore" or "strict".
        replacement_char: the code point in the place of what is no character.
        replace_control_characters: whether control characters are replaced, too.
        name: ignored.

    Returns:
        Two tensors: int32 and int64, or ragged ones.

    Raises:
        ArgumentError: for an unknown encoding, or texts that are none where ``errors`` is "strict".

    Example:
        >>> codes, starts = hf.strings.unicode_decode_with_offsets("\u00e9a", "UTF-8")
        >>> codes.tolist(), starts.tolist()
        ([233, 97], [0, 2])
    """
    stage = "strings.unicode_decode_with_offsets"
    points = _unicode(stage, input, input_encoding, errors, replacement_char, replace_control_characters)
    return tuple(_split_rows(stage, input, points, [int32, int64]))


def _characters(points: Any, input_encoding: object, stage: str) -> Callable[[bytes], list[tuple[bytes, int]]]:
    encoding = encodings.codec(input_encoding, stage)
    return lambda text: [(encodings.encoded([code], encoding, "replace", 0xFFFD), at) for code, at in points(text)]


@entered
def unicode_split(
    input: object, input_encoding: str, errors: str = "replace", replacement_char: int = 0xFFFD, name: str | None = None
) -> Any:
    """Characters of each text, as texts.

    Args:
        input: a text, or texts along one axis.
        input_encoding: the encoding, such as "UTF-8".
        errors: "replace", "ignore" or "strict".
        replacement_char: the code point in the place of what is no character.
        name: ignored.

    Returns:
        A tensor of texts, or a ragged one.

    Raises:
        ArgumentError: for an unknown encoding, or texts that are none where ``errors`` is "strict".

    Example:
        >>> hf.strings.unicode_split("abc", "UTF-8")
        <Tensor string[3] cpu> [b'a' b'b' b'c']
    """
    stage = "strings.unicode_split"
    points = _unicode(stage, input, input_encoding, errors, replacement_char, False)
    parts = _characters(points, input_encoding, stage)
    return _split_rows(stage, input, lambda text: [part for part, _ in parts(text)], [string])[0]


@entered
def unicode_split_with_offsets(
    input: object, input_encoding: str, errors: str = "replace", replacement_char: int = 0xFFFD, name: str | None = None
) -> Any:
    r"""Characters of each text, as texts, and the bytes where they begin.

    Args:
        input: a text, or texts along one axis.
        input_encoding: the encoding, such as "UTF-8".
        errors: "replace", "ignore" or "strict".
        replacement_char: the code point in the place of what is no character.
        name: ignored.

    Returns:
        Texts and an int64 tensor, or ragged ones.

    Raises:
        ArgumentError: for an unknown encoding, or texts that are none where ``errors`` is "strict".

    Example:
        >>> _, starts = hf.strings.unicode_split_with_offsets("\u00e9a", "UTF-8")
        >>> starts.tolist()
        [0, 2]
    """
    stage = "strings.unicode_split_with_offsets"
    points = _unicode(stage, input, input_encoding, errors, replacement_char, False)
    return tuple(_split_rows(stage, input, _characters(points, input_encoding, stage), [string, int64]))


@entered
def unicode_encode(
    input: object, output_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
) -> Any:
    """Code points along the last axis, or in ragged rows, as texts.

    Args:
        input: integers: a tensor or a ragged one.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: "replace", "ignore" or "strict".
        replacement_char: the code point in the place of what is no character.
        name: ignored.

    Returns:
        Texts without the last axis.

    Raises:
        ArgumentError: for an unknown encoding, or what is no character where ``errors`` is "strict".
        DTypeError: for what are no integers.

    Example:
        >>> hf.strings.unicode_encode([104, 105], "UTF-8").numpy()
        b'hi'
    """
    stage = "strings.unicode_encode"
    if errors not in ("replace", "strict", "ignore"):
        raise ArgumentError(stage, f"errors is {errors!r}. Expected 'strict', 'replace' or 'ignore'.")
    if output_encoding not in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        raise ArgumentError(
            stage, f"output_encoding is {output_encoding!r}. Expected 'UTF-8', 'UTF-16-BE' or 'UTF-32-BE'."
        )
    encoding = encodings.codec(output_encoding, stage)

    def text(codes: np.ndarray) -> bytes:
        return encodings.encoded([int(code) for code in codes], encoding, errors, int(replacement_char))

    if isinstance(input, Ragged):

        def rows(codes: np.ndarray, splits: np.ndarray) -> Any:
            outcome: np.ndarray = np.empty(len_(splits) - 1, object)
            outcome[:] = [text(codes[a:b]) for a, b in itertools.pairwise(splits)]
            return outcome

        kind = TensorType((input.row_splits.shape[0] - 1,), string)
        return step(rows, [input.values, input.row_splits], [kind])[0]
    x = as_tensor(input, stage)
    if not dtypes.is_integer(x.dtype):
        raise DTypeError(stage, f"code points are {x.type}. Expected integers.")
    if not x.ndim:
        raise ShapeError(stage, f"code points are {x.type}. Expected an axis.")

    def run(codes: np.ndarray) -> Any:
        outcome: np.ndarray = np.empty(codes.shape[:-1], object)
        for place in np.ndindex(codes.shape[:-1]):
            outcome[place] = text(codes[place])
        return outcome

    return step(run, [x], [TensorType(tuple(x.shape[:-1]), string)])[0]


@entered
def unicode_transcode(
    input: object, input_encoding: str, output_encoding: str, errors: str = "replace", replacement_char: int = 65533,
    replace_control_characters: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    r"""Texts of one encoding in another one.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        input_encoding: the encoding of the texts.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: "replace", "ignore" or "strict".
        replacement_char: the code point in the place of what is no character.
        replace_control_characters: whether control characters are replaced, too.
        name: ignored.

    Returns:
        Texts of the shape of ``input``.

    Raises:
        ArgumentError: for an unknown encoding, or texts that are none where ``errors`` is "strict".

    Example:
        >>> hf.strings.unicode_transcode("ab", "UTF-8", "UTF-16-BE").numpy()
        b'\x00a\x00b'
    """
    stage = "strings.unicode_transcode"
    points = _unicode(stage, input, input_encoding, errors, replacement_char, replace_control_characters)
    encoding = encodings.codec(output_encoding, stage, any_input=False)
    return mapped(
        stage, lambda text: encodings.encoded([code for code, _ in points(text)], encoding, "replace", 0xFFFD), input
    )


@entered
def to_number(input: object, out_type: object = dtypes.float32, name: str | None = None) -> Any:
    """Texts as numbers.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        out_type: float32, float64, int32, int64, uint32 or uint64.
        name: ignored.

    Returns:
        A tensor of that dtype, of the shape of ``input``.

    Raises:
        ArgumentError: for a text that is no such number.
        DTypeError: for another dtype.

    Example:
        >>> hf.strings.to_number(["1.5", "2"])
        <Tensor f32[2] cpu> [1.5 2. ]
    """
    stage = "strings.to_number"
    dtype = to_dtype(getattr(out_type, "dtype", out_type), stage)
    if dtype not in (dtypes.float32, dtypes.float64, int32, int64, dtypes.uint32, dtypes.uint64):
        raise DTypeError(stage, f"out_type is {dtype}. Expected float32, float64, int32, int64, uint32 or uint64.")

    def number(text: bytes) -> Any:
        try:
            if b"_" in text:
                raise ValueError
            if dtypes.is_float(dtype):
                stripped = text.strip()
                return float.fromhex(stripped.decode()) if b"0x" in stripped.lower() else float(stripped)
            outcome = int(text)
            low, high = dtypes.limits(dtype)
            if low <= outcome <= high:
                return outcome
        except ValueError:
            pass
        raise ArgumentError(stage, f"StringToNumberOp could not correctly convert string: {regex.text_of(text)}")

    return mapped(stage, number, input, dtype)


@entered
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Any:
    """Numbers as texts.

    Args:
        input: a tensor of numbers or bools, or a ragged one.
        precision: digits behind the point of floats; -1 for the usual ones.
        scientific: whether floats have an exponent.
        shortest: whether floats have the shorter one of both forms.
        width: the least width; -1 for any.
        fill: what fills up at the left, one letter; spaces by default.
        name: ignored.

    Returns:
        Texts of the shape of ``input``.

    Raises:
        ArgumentError: for forms of floats where there are none.

    Example:
        >>> hf.strings.as_string([1.5, 2.0], precision=1)
        <Tensor string[2] cpu> [b'1.5' b'2.0']
    """
    stage = "strings.as_string"
    if isinstance(input, Ragged):
        return input.with_values(as_string(input.values, precision, scientific, shortest, width, fill))
    if scientific and shortest:
        raise ArgumentError(stage, "Cannot select both scientific and shortest notation.")
    if len_(fill) > 1:
        raise ArgumentError(stage, f"Fill string must be one or fewer characters, not {fill!r}.")
    if holds_texts(input):
        x: Any = as_strings(input, stage)
        return mapped(stage, lambda text: text.ljust(width) if fill == "-" else text.rjust(width), x)
    x = as_tensor(input, stage)
    how = "e" if scientific else "g" if shortest else "f"

    def number(value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, complex):
            return f"({one(value.real)},{one(value.imag)})"
        return one(value)

    def one(value: Any) -> str:
        flag, size = fill if fill in "0-+ " else "", f"{width}" if width > 0 else ""
        if flag == "0" and not math.isfinite(value):
            flag = ""  # as printf has it
        if isinstance(value, int):
            return f"%{flag}{size}d" % value
        digits = f".{precision}" if precision > -1 else ""
        return f"%{flag}{size}{digits}{how}" % value

    if dtypes.is_integer(x.dtype) and (precision > -1 or scientific or shortest):
        raise ArgumentError(stage, "scientific, shortest and precision are of floats.")

    def run(values: np.ndarray) -> Any:
        if values.dtype.kind not in "iubfc":
            values = values.astype(np.float32)
        outcome: np.ndarray = np.empty(values.size, object)
        outcome[:] = [number(value).encode() for value in values.ravel().tolist()]
        return outcome.reshape(values.shape)

    return step(run, [x], [TensorType(tuple(x.shape), string)])[0]


def _hash_buckets(stage: str, function: Callable[[bytes], int], input: Any, num_buckets: Any) -> Any:
    count = int(num_buckets)
    if count < 1:
        raise ArgumentError(stage, f"num_buckets is {count}. Expected at least 1.")
    return mapped(stage, lambda text: function(text) % count, input, int64)


@entered
def to_hash_bucket(input: object, num_buckets: int, name: str | None = None) -> Any:
    """Hash of each text, of MurmurHash, as the number of one of ``num_buckets`` buckets.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        num_buckets: the number of buckets.
        name: ignored.

    Returns:
        An int64 tensor of the shape of ``input``.

    Raises:
        ArgumentError: for no bucket.

    Example:
        >>> hf.strings.to_hash_bucket(["a", "b"], 3).shape
        (2,)
    """
    return _hash_buckets("strings.to_hash_bucket", hashing.murmur64, input, num_buckets)


@entered
def to_hash_bucket_fast(input: object, num_buckets: int, name: str | None = None) -> Any:
    """Hash of each text, FarmHash's fingerprint, as the number of one of ``num_buckets`` buckets.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        num_buckets: the number of buckets.
        name: ignored.

    Returns:
        An int64 tensor of the shape of ``input``.

    Raises:
        ArgumentError: for no bucket.

    Example:
        >>> hf.strings.to_hash_bucket_fast(["Hello", "TensorFlow"], 3).tolist()
        [0, 2]
    """
    return _hash_buckets("strings.to_hash_bucket_fast", hashing.fingerprint64, input, num_buckets)


@entered
def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Any:
    """Hash of each text, of SipHash with a key, as the number of one of ``num_buckets`` buckets.

    Args:
        input: a tensor of texts, texts of Python or NumPy, or a ragged tensor of texts.
        num_buckets: the number of buckets.
        key: two numbers.
        name: ignored.

    Returns:
        An int64 tensor of the shape of ``input``.

    Raises:
        ArgumentError: for no bucket, or another number of numbers in the key.

    Example:
        >>> hf.strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2]).tolist()
        [2, 0]
    """
    stage = "strings.to_hash_bucket_strong"
    numbers = [int(k) for k in key]
    if len_(numbers) != 2:
        raise ArgumentError(stage, f"key has {len_(numbers)} numbers. Expected 2.")
    return _hash_buckets(stage, lambda text: hashing.siphash(text, (numbers[0], numbers[1])), input, num_buckets)


@entered
def format(
    template: object, inputs: object, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Any:
    """Text with tensors in the places of ``placeholder``.

    Args:
        template: the text.
        inputs: a tensor, or a list of them.
        placeholder: what a tensor stands for.
        summarize: how many elements at each end of an axis are shown; -1 for all.
        name: ignored.

    Returns:
        One text.

    Raises:
        ArgumentError: where there are not as many tensors as places.

    Example:
        >>> hf.strings.format("x is {}", hf.asarray([1, 2])).numpy()
        b'x is [1 2]'
    """
    stage = "strings.format"
    pattern, mark = as_bytes(template, stage), as_bytes(placeholder, stage)
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    count = pattern.count(mark)
    if count != len_(values):
        raise ArgumentError(stage, f"{count} placeholder(s) in template does not match {len_(values)} tensor(s).")
    tensors = [
        as_strings(v, stage) if isinstance(v, (str, bytes, StringTensor)) else as_tensor(v, stage) for v in values
    ]

    def run(*arrays: np.ndarray) -> Any:
        parts = pattern.split(mark)
        shown = [_summary_of(array, summarize).encode() for array in arrays]
        return _scalar(b"".join([p for pair in zip(parts, [*shown, b""]) for p in pair]))

    if not tensors:
        return of_texts(_scalar(pattern))
    return step(run, tensors, [TensorType((), string)])[0]


def _number_text(number: np.ndarray) -> str:
    """A float with few digits if these say what it is, else with as many as it takes."""
    value, digits = number.item(), (15, 17) if number.dtype == np.float64 else (6, 9)
    text = f"{value:.{digits[0]}g}"
    return text if number.dtype.type(text) == number or value != value else f"{value:.{digits[1]}g}"


def _summary_of(array: np.ndarray, most: int) -> str:
    """An array as TensorFlow's runtime prints it."""
    if not array.ndim:
        value = array.item()
        if isinstance(value, bytes):
            return f'"{regex.text_of(value)}"'
        if isinstance(value, bool):
            return "1" if value else "0"
        return _number_text(array) if isinstance(value, float) else str(value)
    rows = [_summary_of(row if isinstance(row, np.ndarray) else np.asarray(row, array.dtype), most) for row in array]
    if most >= 0 and len_(rows) > 2 * most:
        rows = [*rows[:most], "...", *rows[len_(rows) - most :]]
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " "
    return f"[{between.join(rows)}]"


@entered
def ngrams(
    data: ArrayLike, ngram_width: Any, separator: object = " ", pad_values: Any = None, padding_width: Any = None,
    preserve_short_sequences: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """N-grams of the texts of each row: neighbours put together.

    Args:
        data: texts along the last axis, or ragged rows of them.
        ngram_width: how many texts go together, or several such numbers.
        separator: what stands between texts.
        pad_values: what stands before and after a row: a text or two; None for nothing.
        padding_width: how many of these at most.
        preserve_short_sequences: whether a row that is too short is one n-gram.
        name: ignored.

    Returns:
        Texts along the last axis, or ragged rows of them.

    Raises:
        ArgumentError: for a width below 1.

    Example:
        >>> hf.strings.ngrams(["a", "b", "c"], 2)
        <Tensor string[2] cpu> [b'a b' b'b c']
    """
    stage = "strings.ngrams"
    widths = [ngram_width] if isinstance(ngram_width, int) else [int(w) for w in ngram_width]
    if any(w < 1 for w in widths):
        raise ArgumentError(stage, f"All ngram_widths must be greater than 0. Got {ngram_width!r}.")
    between = as_bytes(separator, stage)
    if pad_values is None:
        if padding_width is not None:
            raise ArgumentError(stage, "pad_values must be provided if padding_width is set.")
        left = right = b""
    else:
        pair = (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else pad_values
        left, right = (as_bytes(p, stage) for p in pair)
    most = 0 if pad_values is None else max(widths) - 1 if padding_width is None else int(padding_width)

    def of_row(row: list[bytes]) -> list[bytes]:
        outcome = []
        for width in widths:
            pad = min(most, width - 1)
            padded = [left] * pad + row + [right] * pad
            outcome += [between.join(padded[k : k + width]) for k in range(len_(padded) - width + 1)]
        if preserve_short_sequences and not outcome and row:
            outcome = [between.join([left] * most + row + [right] * most)]
        return outcome

    return _of_rows(stage, data, of_row)


def _of_rows(stage: str, data: object, of_row: Callable[[list[bytes]], list[bytes]]) -> Any:
    if isinstance(data, Ragged):
        values, splits = as_strings(data.values, stage), data.row_splits
        if values.ndim != 1:
            raise ShapeError(stage, f"rows of {values.type} are no texts.")

        def run(texts: np.ndarray, ends: np.ndarray) -> Any:
            listed = texts.tolist()
            rows = [of_row(listed[a:b]) for a, b in itertools.pairwise(ends)]
            new = np.zeros(len_(rows) + 1, np.int64)
            new[1:] = np.cumsum([len_(r) for r in rows], dtype=np.int64)
            return (new, *_columns([t for r in rows for t in r], [string]))

        size = extent(lambda texts, ends: np.int64(run(texts, ends)[0][-1]), [values, splits])
        new, outcome = step(run, [values, splits], [TensorType(splits.shape, int64), TensorType((size,), string)])
        return made_ragged(outcome, new)
    x = as_strings(data, stage)
    if not x.ndim:
        raise ShapeError(stage, f"{x.type} has no axis.")
    width = known_extents(x.shape)[-1]
    if not isinstance(width, int):
        raise ShapeError(stage, f"the last extent of {x.type} is not known. Give a ragged tensor.")
    count = len_(of_row([b""] * width))

    def run_dense(texts: np.ndarray) -> Any:
        rows = [of_row(row) for row in texts.reshape(-1, texts.shape[-1]).tolist()] if texts.shape[-1] else []
        outcome: np.ndarray = np.empty(len_(rows) * count, object)
        outcome[:] = [t for row in rows for t in row]
        return outcome.reshape(*texts.shape[:-1], count)

    return step(run_dense, [x], [TensorType((*x.shape[:-1], count), string)])[0]
