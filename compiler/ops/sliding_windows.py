"""Sliding windows as a view: with padding before and a contraction or a reduction behind they are convolution and
pooling, and take no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import type_rules
from hybridflow.compiler.ops.batching_rules import broadcast_batched
from hybridflow.compiler.ops.op_table import Kind, define
from hybridflow.compiler.ops.views import view_samples
from hybridflow.errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from hybridflow.compiler.ir.build import Builder, Cotangent, Value


Each = tuple[int, ...]


def _canon(types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    """Windowed axes ascend, with their sizes, steps and dilations."""
    x = types[0]
    axes = tuple(type_rules.axis("windows", x, a) for a in attrs["axes"])
    count = len(axes)
    by_option: dict[str, Any] = {"axes": axes}
    for what in ("size", "step", "dilation"):
        values = tuple(type_rules.integer("windows", what, v) for v in attrs.get(what) or (1,) * count)
        if len(values) != count or min(values, default=1) < 1:
            raise ArgumentError("windows", f"{what} is {values} for the axes {axes}. Expected a number >= 1 for each.")
        by_option[what] = values
    if len(set(axes)) < count or not axes:
        raise ArgumentError("windows", f"axes are {axes}. Expected one or more, each once.")
    order = sorted(range(count), key=axes.__getitem__)
    return {name: tuple(values[k] for k in order) for name, values in by_option.items()}


def _infer(x: TensorType, axes: Each, size: Each, step: Each, dilation: Each) -> TensorType:
    shape = list(x.shape)
    for a, k, s, d in zip(axes, size, step, dilation):
        extent, span = shape[a], (k - 1) * d + 1
        if isinstance(extent, Dim):
            if span > 1 or s > 1:
                raise type_rules.symbolic("windows", f"windows run along axis {a} of {x}")
            continue
        if extent < span:
            raise ShapeError("windows", f"a window takes {span} elements along axis {a} of {x}, which has fewer.")
        shape[a] = (extent - span) // s + 1
    behind = axes[-1] + 1
    return x.with_shape((*shape[:behind], *size, *shape[behind:]))


def _element(g: Any, index: tuple[Any, ...], axes: Each, size: Each, step: Each, dilation: Each) -> Any:
    behind, count = axes[-1] + 1, len(axes)
    inside = index[behind : behind + count]
    position = [*index[:behind], *index[behind + count :]]
    for a, i, s, d in zip(axes, inside, step, dilation):
        position[a] = position[a] * s + i * d
    return g.load(0, tuple(position))


def _reference(x: np.ndarray, axes: Each, size: Each, step: Each, dilation: Each) -> np.ndarray:
    spans = tuple((k - 1) * d + 1 for k, d in zip(size, dilation))
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    every = [slice(None)] * x.ndim
    for a, s in zip(axes, step):
        every[a] = slice(None, None, s)
    windows = windows[(*every, *(slice(None, None, d) for d in dilation))]
    behind = axes[-1] + 1
    return np.moveaxis(windows, range(x.ndim, windows.ndim), range(behind, behind + len(axes)))


def _vjp(
    b: Builder, g: Value, out: Value, x: Value, axes: Each, size: Each, step: Each, dilation: Each
) -> tuple[Cotangent, ...]:
    """Axis by axis, from the last: what an element gave to any window, summed."""
    behind = axes[-1] + 1
    for number in reversed(range(len(axes))):
        a = axes[number]
        g = _gathered(b, g, a, behind + number, x.type.shape[a], step[number], dilation[number])
    return (g,)


def _gathered(b: Any, g: Any, a: int, inside: int, extent: Any, s: int, d: int) -> Value:
    """The cotangents of one windowed axis: element h of an axis of ``extent`` is element i of the window o where
    ``o * s + i * d = h``, for each i.

    ``g`` has the windows along axis ``a`` and their elements along axis ``inside``, which goes.  The windows are spread
    ``s`` apart, with zeros around; then the element sought for i lies ``size - 1 - i`` dilations behind h.
    """
    count, size, ndim = g.type.shape[a], g.type.shape[inside], g.type.ndim
    if size == 1 and s == 1:
        return b.reshape(g, shape=(*g.type.shape[:inside], *g.type.shape[inside + 1 :]))
    reach = (size - 1) * d

    def at(axis: int, value: int) -> tuple[int, ...]:
        return tuple(value if k == axis else 0 for k in range(ndim))

    high = extent - 1 - (count - 1) * s
    spread = b.pad(g, low=at(a, reach), high=at(a, high), interior=at(a, s - 1), value=0)
    moved = b.windows(spread, axes=(a,), size=(size,), step=(1,), dilation=(d,))
    j, i = a + 1, inside + 1
    kept = [k for k in range(ndim + 1) if k not in (j, i)]
    pairs = b.transpose(moved, perm=(*kept, j, i))
    shape = tuple(pairs.type.shape[:-2])
    flat = b.reshape(pairs, shape=(*shape, size * size))
    # Of the pairs (j, i) those with j = size - 1 - i.
    start, stop = (0,) * len(shape), shape
    first, between = (size - 1, size - 1) if size > 1 else (0, 1)
    diagonal = b.slice(
        flat,
        start=(*start, first),
        stop=(*stop, first + (size - 1) * between + 1),
        step=(*(1,) * len(shape), between),
    )
    return b.sum(diagonal, axes=(len(shape),))


define(
    "windows",
    Kind.VIEW,
    1,
    doc="""The windows of ``size`` elements, ``dilation`` apart, that start every ``step`` elements along some axes.  In
    the result these axes count the windows, and behind the last of them come as many axes with a window's elements.""",
    canon=_canon,
    infer=_infer,
    reference=_reference,
    element=_element,
    vjp=_vjp,
    batch=broadcast_batched(lambda n, a: {**a, "axes": tuple(k + 1 for k in a["axes"])}),
    samples=view_samples(
        ((7,), {"axes": (0,), "size": (3,), "step": (2,), "dilation": (1,)}),
        ((5, 6), {"axes": (0, 1), "size": (2, 3), "step": (1, 2), "dilation": (2, 1)}),
        ((2, 5, 4, 3), {"axes": (1, 2), "size": (3, 2), "step": (1, 1), "dilation": (1, 1)}),
        ((4,), {"axes": (0,), "size": (4,), "step": (3,), "dilation": (1,)}),
        ((3, 9), {"axes": (1,), "size": (1,), "step": (4,), "dilation": (1,)}),
        ((3, 2), {"axes": (0,), "size": (1,), "step": (1,), "dilation": (1,)}),
        ((0, 3), {"axes": (1,), "size": (2,), "step": (1,), "dilation": (2,)}),
    ),
    dtypes=dt.REAL,
    facts={"exact": True},
)
