"""Patterns of a traced graph that are one operator of ONNX: activations, normalisations, pooling, means, products.

A pattern is looked for where its last node is written.  What it is made of is written too, and left out at the end
where nobody reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.graph import Node


class Composite(NamedTuple):
    """An operator, its operands (None is one that is left out) and its attributes.

    Of those ``channels_first`` the first operand and the result have their last axis behind the first one.
    """

    op: str
    operands: tuple[Node | np.ndarray | None, ...]
    attributes: dict[str, Any]
    since: int = 1  # the opset
    channels_first: bool = False


def _plain(node: Node) -> Node:
    """What a value is a view of with the same elements: behind reshapes, broadcasts and stopped gradients."""
    while node.op.name in ("reshape", "broadcast", "stop_gradient"):
        (node,) = node.inputs
    return node


def _is_number(node: Node, value: float) -> bool:
    node = _plain(node)
    if node.op.name != "constant":
        return False
    array = node.attrs["value"].array
    return array.size == 1 and array.reshape(()) == np.asarray(value, array.dtype)


def _factors(node: Node, value: float) -> Node | None:
    """x, where the node is x times a number."""
    if node.op.name != "multiply":
        return None
    a, b = node.inputs
    if _is_number(b, value):
        return a
    return b if _is_number(a, value) else None


def softmax(node: Node) -> Composite | None:
    """exp(x - max(x)) / sum of it, along one axis."""
    above, below = node.inputs
    total = _plain(below)
    if (
        above.op.name != "exp"
        or total.op.name != "sum"
        or total.inputs[0] is not above
        or len(total.attrs["axes"]) != 1
    ):
        return None
    (moved,) = above.inputs
    if moved.op.name != "subtract":
        return None
    x, largest = moved.inputs[0], _plain(moved.inputs[1])
    if largest.op.name != "max" or largest.inputs[0] is not x or largest.attrs["axes"] != total.attrs["axes"]:
        return None
    (axis,) = total.attrs["axes"]
    kept = tuple(k for k in range(len(x.shape)) if k != axis)
    if any(not _is_along(view, kept) for view in (below, moved.inputs[1])):
        return None
    return Composite("Softmax", (x,), {"axis": axis}, 13)


def _is_along(view: Node, kept: tuple[int, ...]) -> bool:
    """Whether the last broadcast puts the axes back to where they were."""
    return view.op.name == "broadcast" and tuple(view.attrs["axes"]) == kept


def gelu(node: Node) -> Composite | None:
    """x / 2 * (1 + erf(x / sqrt(2)))"""
    for half, rest in (node.inputs, node.inputs[::-1]):
        x = _factors(half, 0.5)
        if x is None or rest.op.name != "add":
            continue
        for error, one in (rest.inputs, rest.inputs[::-1]):
            if error.op.name == "erf" and _is_number(one, 1.0) and _factors(error.inputs[0], 2**-0.5) is x:
                return Composite("Gelu", (x,), {}, 20)
    return None


def _number(node: Node) -> float | None:
    """The value of a constant of one element."""
    node = _plain(node)
    if node.op.name != "constant" or node.attrs["value"].array.size != 1:
        return None
    return float(node.attrs["value"].array.reshape(()))


def _with_number(node: Node) -> Iterator[tuple[Node, float]]:
    """The other operand and the number, where one of two is a number."""
    a, b = node.inputs
    for operand, other in ((a, b), (b, a)):
        value = _number(other)
        if value is not None:
            yield operand, value


def clipped(node: Node) -> Composite | None:
    """max(x, 0), and what is at most a number besides."""
    for x, value in _with_number(node):
        if node.op.name == "maximum":
            return Composite("Relu", (x,), {}) if value == 0 and node.dtype in _FLOATS else None
        if x.op.name == "maximum":
            for inner, least in _with_number(x):
                bounds = (np.asarray(bound, node.dtype) for bound in (least, value))
                return Composite("Clip", (inner, *bounds), {}) if least <= value and node.dtype in _FLOATS else None
    return None


def _along_last(node: Node, ndim: int) -> Node | None:
    """The vector that is broadcast along the last of so many axes."""
    if node.op.name != "broadcast" or tuple(node.attrs["axes"]) != (ndim - 1,):
        return None
    vector = _plain(node)
    return vector if len(vector.shape) == 1 and vector.shape == node.shape[-1:] else None


def _scaled(node: Node) -> tuple[Node, Node | None, Node | None]:
    """x, scale and shift, where the node is x * scale + shift along the last axis; either may be missing."""
    ndim, scale, shift = len(node.shape), None, None
    if node.op.name == "add":
        shift = _along_last(node.inputs[1], ndim)
        node = node if shift is None else node.inputs[0]
    if node.op.name == "multiply":
        scale = _along_last(node.inputs[1], ndim)
        node = node if scale is None else node.inputs[0]
    return node, scale, shift


def _added_number(node: Node) -> tuple[Node, float] | None:
    """x and a number, where the node is their sum."""
    return next(_with_number(node), None) if node.op.name == "add" else None


def batch_normalization(node: Node) -> Composite | None:
    """(x - mean) * (rsqrt(variance + epsilon) * gamma) + beta, along the last axis."""
    ndim, beta = len(node.shape), None
    if ndim < 2 or node.dtype not in _OF_NORMS:
        return None
    if node.op.name == "add":
        beta = _along_last(node.inputs[1], ndim)
        node = node.inputs[0]
        if beta is None:
            return None
    if node.op.name != "multiply" or node.inputs[0].op.name != "subtract":
        return None
    factor = node.inputs[1]
    if factor.op.name != "broadcast" or tuple(factor.attrs["axes"]) != (ndim - 1,):
        return None
    factor = _plain(factor)
    x, mean = node.inputs[0].inputs
    mean_ = _along_last(mean, ndim)
    gamma = None
    if factor.op.name == "multiply":
        gamma, factor = _plain(factor.inputs[1]), factor.inputs[0]
    total = _added_number(factor.inputs[0]) if factor.op.name == "rsqrt" else None
    if mean_ is None or total is None:
        return None
    variance, count = _plain(total[0]), node.shape[-1]
    if any(one is not None and one.shape != (count,) for one in (gamma, variance)) or not isinstance(count, int):
        return None
    ones, zeros = np.ones(count, node.dtype), np.zeros(count, node.dtype)
    operands = (x, ones if gamma is None else gamma, zeros if beta is None else beta, mean_, variance)
    return Composite("BatchNormalization", operands, {"epsilon": total[1]}, 1, True)


def layer_normalization(node: Node) -> Composite | None:
    """(x - mean(x)) * rsqrt(mean of its square + epsilon) * gamma + beta, along the last axis."""
    ndim, result = len(node.shape), node
    if ndim < 2 or node.dtype not in _OF_NORMS:
        return None
    node, gamma, beta = _scaled(node)
    if node.op.name != "multiply" or node.inputs[0].op.name != "subtract":
        return None
    moved, factor = node.inputs
    x, mean_view = moved.inputs
    kept = tuple(range(ndim - 1))
    if not _is_along(factor, kept) or not _is_along(mean_view, kept):
        return None
    factor = _plain(factor)
    total = _added_number(factor.inputs[0]) if factor.op.name == "rsqrt" else None
    count = node.shape[-1]
    if total is None or _mean(_plain(mean_view)) != (x, (ndim - 1,)) or not isinstance(count, int):
        return None
    match = _mean(_plain(total[0]))
    if match is None or match[1] != (ndim - 1,) or match[0].op.name != "square" or match[0].inputs[0] is not moved:
        return None
    scale = np.ones(count, result.dtype) if gamma is None else gamma
    return Composite("LayerNormalization", (x, scale, beta), {"axis": -1, "epsilon": total[1]}, 17)


def _mean(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """x and axes, where the node is the mean of x over these."""
    if node.op.name != "divide":
        return None
    total = node.inputs[0]
    while total.op.name == "reshape" and all(n == 1 for n in set(total.shape) ^ set(total.inputs[0].shape)):
        total = total.inputs[0]
    if total.op.name != "sum" or total.dtype not in _FLOATS:
        return None
    (x,), axes = total.inputs, tuple(total.attrs["axes"])
    extents = [x.shape[axis] for axis in axes]
    is_whole = all(isinstance(n, int) for n in extents) and x.dtype == total.dtype
    return (x, axes) if is_whole and _is_number(node.inputs[1], float(math.prod(extents))) else None


def mean(node: Node) -> Composite | None:
    """The sum over some axes, divided by how many elements it has."""
    match = _mean(node)
    if match is None or match[0].op.name == "square" or node.inputs[0].op.name != "sum":
        return None
    return Composite("ReduceMean", match[:1], {"axes": match[1]})


def product(node: Node) -> Composite | None:
    """a @ b + c of matrices and a vector."""
    a, b = node.inputs
    bias = _along_last(b, len(node.shape))
    if bias is None or a.op.name != "matmul" or len(a.shape) != 2 or a.dtype not in _FLOATS:
        return None
    if any(len(x.shape) != 2 or x.dtype != a.dtype for x in a.inputs):
        return None
    turned = {"transA": int(a.attrs["transpose_a"]), "transB": int(a.attrs["transpose_b"])}
    return Composite("Gemm", (*a.inputs, bias), {name: 1 for name, value in turned.items() if value})


class _Window(NamedTuple):
    """What is folded over windows along one axis: of ``width`` elements, the next of which begins ``step`` later."""

    source: Node
    axis: int
    width: int
    step: int


def _window(node: Node, op: str) -> _Window | None:
    """op(op(x[0::step], x[1::step]), x[2::step])... along one axis: slices begin one behind another."""
    slices: list[Node] = []
    while node.op.name == op and node.inputs[1].op.name == "slice":
        slices.append(node.inputs[1])
        node = node.inputs[0]
    slices.append(node)
    slices.reverse()
    first = slices[0]
    if len(slices) < 2 or first.op.name != "slice":
        return None
    (source,) = first.inputs
    ndim = len(source.shape)
    moving = [k for k in range(ndim) if slices[1].attrs["start"][k] != first.attrs["start"][k]]
    if len(moving) != 1 or moving[0] in (0, ndim - 1):
        return None
    (axis,) = moving
    step = first.attrs["step"][axis]
    for place, one in enumerate(slices):
        starts = tuple(place if k == axis else 0 for k in range(ndim))
        steps = tuple(step if k == axis else 1 for k in range(ndim))
        attrs = one.attrs
        is_whole = all(attrs["stop"][k] == source.shape[k] for k in range(ndim) if k != axis)
        if one.inputs[0] is not source or (*attrs["start"],) != starts or (*attrs["step"],) != steps or not is_whole:
            return None
    if (source.shape[axis] - len(slices)) // step + 1 != first.shape[axis]:
        return None  # elements are left over at the end
    return _Window(source, axis, len(slices), step)


def _windows(node: Node, op: str) -> tuple[Node, list[int], list[int]] | None:
    """The source, widths and steps along its inner axes, of windows that are folded axis by axis."""
    widths, steps = [1] * (len(node.shape) - 2), [1] * (len(node.shape) - 2)
    axes: set[int] = set()
    while (window := _window(node, op)) is not None and window.axis not in axes:
        axes.add(window.axis)
        widths[window.axis - 1], steps[window.axis - 1] = window.width, window.step
        node = window.source
    return (node, widths, steps) if axes else None


def max_pool(node: Node) -> Composite | None:
    """The largest element of windows, of what may have -inf around it."""
    match = _windows(node, "maximum") if node.dtype in _FLOATS and 3 <= len(node.shape) <= 5 else None
    if match is None:
        return None
    source, widths, steps = match
    attributes: dict[str, Any] = {"kernel_shape": widths, "strides": steps}
    if source.op.name == "pad" and not any(source.attrs["interior"]):
        low, high = source.attrs["low"], source.attrs["high"]
        value = source.attrs["value"]
        around = [*low[1:-1], *high[1:-1]]
        is_small = all(isinstance(n, int) and 0 <= n < w for n, w in zip(around, [*widths, *widths]))
        is_inner = low[0] == high[0] == low[-1] == high[-1] == 0
        if is_small and is_inner and float(getattr(value, "array", value)) == -math.inf:
            attributes["pads"] = around
            (source,) = source.inputs
    return Composite("MaxPool", (source,), attributes, 1, True)


def average_pool(node: Node) -> Composite | None:
    """The mean of windows."""
    match = _windows(node.inputs[0], "add") if node.dtype in _FLOATS and 3 <= len(node.shape) <= 5 else None
    if match is None or not _is_number(node.inputs[1], float(math.prod(match[1]))):
        return None
    return Composite("AveragePool", match[:1], {"kernel_shape": match[1], "strides": match[2]}, 1, True)


_OF_NORMS = (dtypes.float16, dtypes.float32)  # float32 is what ONNX holds an epsilon as
_FLOATS = (*_OF_NORMS, dtypes.float64)
PATTERNS: dict[str, tuple[Callable[[Node], Composite | None], ...]] = {
    "divide": (softmax, average_pool, mean),
    "multiply": (gelu, batch_normalization, layer_normalization),
    "add": (batch_normalization, layer_normalization, product),
    "maximum": (max_pool, clipped),
    "minimum": (clipped,),
}


def composite_of(node: Node, opset: int) -> Composite | None:
    """The operator of an opset that has the node's value, where a pattern fits."""
    for pattern in PATTERNS.get(node.op.name, ()):
        composite = pattern(node)
        if composite is not None and composite.since <= opset:
            return composite
    return None
