"""What convolutions and pooling have in common: their arguments, and where windows lie."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from hybridflow.array.shapes import permute_dims
from hybridflow.compiler.ir.extents import Extent, holds
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import reshape_to
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError

Each = tuple[int, ...]

_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


class Images(NamedTuple):
    """Images with their channels last and one axis of examples, and what ``restored`` needs to undo that."""

    x: Tensor
    leading: tuple[Extent, ...]
    first: bool

    @property
    def axes(self) -> int:
        return self.x.ndim - 2

    @property
    def extents(self) -> tuple[Extent, ...]:
        return self.x.shape[1:-1]


def images(stage: str, x: Tensor, axes: int, data_format: str | None) -> Images:
    """``x`` with its axes in the order of ``data_format``; it may have more leading axes.

    Raises ShapeError where it has too few, and ArgumentError for a format that is none.
    """
    first = channels_first(stage, axes, data_format)
    if x.ndim < axes + 2:
        form = (_FIRST if first else _LAST)[axes]
        raise ShapeError(stage, f"the input is {x.type}. Expected {axes + 2} axes or more, {form}.")
    leading, rest = x.shape[: -axes - 1], x.shape[-axes - 1 :]
    if len(leading) > 1:
        count: Any = 1
        for extent in leading:
            count = count * extent
        x = reshape_to(x, (count, *rest))
    if first:
        x = permute_dims(x, (0, *range(2, axes + 2), 1))
    return Images(x, leading, first)


def restored(images: Images, out: Tensor) -> Tensor:
    """A result with its channels last in the form that the input had."""
    if images.first:
        out = permute_dims(out, (0, out.ndim - 1, *range(1, out.ndim - 1)))
    return reshape_to(out, (*images.leading, *out.shape[1:])) if len(images.leading) > 1 else out


def channels_first(stage: str, axes: int, data_format: str | None) -> bool:
    if data_format is None or data_format in (_LAST[axes], "channels_last"):
        return False
    if data_format in (_FIRST[axes], "channels_first"):
        return True
    raise ArgumentError(
        stage, f"data_format is {data_format!r}. Expected {_LAST[axes]!r} or {_FIRST[axes]!r} for {axes} axes."
    )


def each(stage: str, what: str, value: Any, axes: int, first: bool = False) -> Each:
    """One number >= 1 for each axis of a window: given as one for all, as one for each, or with those of the examples
    and the channels, which must be 1."""
    try:
        numbers = [operator.index(v) for v in value] if isinstance(value, (tuple, list)) else [operator.index(value)]
    except TypeError:
        raise ArgumentTypeError(stage, f"{what} is {value!r}. Expected an integer or one for each axis.") from None
    if len(numbers) == axes + 2:
        around = (numbers[0], numbers[1] if first else numbers[-1])
        if around != (1, 1):
            raise ArgumentError(stage, f"{what} is {value}. Expected 1 for the examples and the channels.")
        numbers = numbers[2:] if first else numbers[1:-1]
    if len(numbers) == 1:
        numbers *= axes
    if len(numbers) != axes or min(numbers) < 1:
        raise ArgumentError(stage, f"{what} is {value}. Expected numbers >= 1, one for all or for each of {axes} axes.")
    return tuple(numbers)


def padding_of(
    stage: str, padding: object, extents: Sequence[Extent], size: Each, step: Each, dilation: Each, first: bool = False
) -> tuple[tuple[Extent, ...], tuple[Extent, ...]]:
    """How many elements to put before and behind each axis: "VALID" none, "SAME" so many that there is a window for
    every ``step`` elements, else pairs for each axis of the window, or for each axis of the input."""
    axes = len(size)
    if isinstance(padding, str):
        kind = padding.upper()
        if kind == "VALID":
            return (0,) * axes, (0,) * axes
        if kind != "SAME":
            raise ArgumentError(stage, f"padding is {padding!r}. Expected 'SAME', 'VALID' or pairs (before, after).")
        windows = zip(extents, size, step, dilation)
        pairs = [same_padding(n, (k - 1) * d + 1, s) for n, k, s, d in windows]
    else:
        pairs = [*_pairs(stage, padding, axes, first)]
    low, high = zip(*pairs)
    return low, high


def same_padding(extent: Extent, span: int, step: int) -> tuple[Extent, Extent]:
    """Before and behind an axis; the larger half behind."""
    if span == 1:
        return 0, 0
    total: Any = (-(-extent // step) - 1) * step + span - extent
    if extent == 0 or not holds(total):
        total = 0
    before = total // 2
    return before, total - before


def _pairs(stage: str, padding: Any, axes: int, first: bool) -> list[tuple[int, int]]:
    try:
        pairs = [(operator.index(a), operator.index(b)) for a, b in padding]
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            stage, f"padding is {padding!r}. Expected 'SAME', 'VALID' or pairs (before, after)."
        ) from None
    if len(pairs) == axes + 2:
        around = [pairs[0], pairs[1] if first else pairs[-1]]
        if around != [(0, 0)] * 2:
            raise ArgumentError(stage, f"padding is {padding}. Expected (0, 0) for the examples and the channels.")
        pairs = pairs[2:] if first else pairs[1:-1]
    if len(pairs) != axes or any(n < 0 for pair in pairs for n in pair):
        raise ArgumentError(
            stage, f"padding is {padding}. Expected pairs of numbers >= 0, one for each of {axes} axes."
        )
    return pairs


def check_fits(stage: str, x: Tensor, extents: Sequence[Extent], spans: Each, low: Any, high: Any) -> None:
    """Raises ShapeError where a window takes more than there is."""
    for axis, (n, span, before, after) in enumerate(zip(extents, spans, low, high)):
        if n != 0 and not holds(n + before + after - span):
            whole = n + before + after
            raise ShapeError(
                stage,
                f"a window takes {span} elements along axis {axis} of the images, which has {whole} with its padding; "
                f"the input is {x.type}. Expected a window that is no larger. Pad the input, or use padding='SAME'.",
            )
