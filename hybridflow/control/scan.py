"""Loops over the slices of tensors: ``scan``, ``foldl``, ``foldr``, ``map_fn`` and ``associative_scan``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.array.shapes import concat, expand_dims, flip, slice_axis, stack
from hybridflow.compiler.ir.types import Extent, same_extents
from hybridflow.control.eager_loops import run_for
from hybridflow.control.loop_state import Nest
from hybridflow.core import pytree
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor, reshape_to
from hybridflow.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError, entered


@entered
def scan(fn: Callable[[Any, Any], Any], elems: object, initializer: object = None, reverse: bool = False) -> Any:
    """Sequential scan: all values of ``a = fn(a, x)`` for the slices ``x`` of ``elems``, stacked.

    In a compiled function this is one loop. Results that are not read are not stored.

    Args:
        fn: ``fn(a, x)`` takes the value so far and a slice, and returns the next value.
        elems: a tensor, or nested ones of one length, whose slices along the first axes have the same structure.
        initializer: the initial ``a``, which may be nested. ``fn`` must keep its structure, dtypes and shapes. None
            takes the first slice, which is then the first result.
        reverse: whether to begin with the last slice. Results have the positions of their slices.

    Returns:
        The values of ``a``, stacked along a new first axis.

    Raises:
        ArgumentError: where there are no slices and no ``initializer``.

    >>> hf.scan(lambda a, x: a + x, hf.asarray([1.0, 2.0, 3.0, 4.0]))
    <Tensor f32[4] cpu> [ 1.  3.  6. 10.]
    """
    elements = _Elements("scan", fn, elems)
    if initializer is None:
        start, first = elements.without_first(reverse)
        _, results = elements.iterate(fn, start, reverse, stacked=True)
        rows = [expand_dims(x, axis=0) for x in first]
        pairs = zip(results, rows) if reverse else zip(rows, results)
        return start.filled([concat(list(pair)) for pair in pairs])
    start = Nest(initializer, "the accumulator")
    return start.filled(elements.iterate(fn, start, reverse, stacked=True)[1])


@entered
def foldl(fn: Callable[[Any, Any], Any], elems: object, initializer: object = None) -> Any:
    """Left fold: the last of the values that ``hf.scan`` stacks.

    Args:
        fn: ``fn(a, x)`` takes the value so far and a slice, and returns the next value.
        elems: a tensor, or nested ones of one length, whose slices along the first axes are taken in order.
        initializer: the first value; None for the first slice.

    Returns:
        The last value, of the structure, shapes and dtypes of ``initializer``.

    Raises:
        ArgumentError: where there are no slices and no ``initializer``.

    >>> hf.foldl(lambda a, x: 2 * a + x, hf.asarray([1, 2, 3]))
    <Tensor i64[] cpu> 11
    """
    return _fold("foldl", fn, elems, initializer, reverse=False)


@entered
def foldr(fn: Callable[[Any, Any], Any], elems: object, initializer: object = None) -> Any:
    """Right fold: as ``hf.foldl``, from the last slice to the first.

    Args:
        fn: ``fn(a, x)`` takes the value so far and a slice, and returns the next value.
        elems: a tensor, or nested ones of one length, whose slices along the first axes are taken backwards.
        initializer: the first value; None for the last slice.

    Returns:
        The last value, of the structure, shapes and dtypes of ``initializer``.

    Raises:
        ArgumentError: where there are no slices and no ``initializer``.

    >>> hf.foldr(lambda a, x: 2 * a + x, hf.asarray([1, 2, 3]))
    <Tensor i64[] cpu> 17
    """
    return _fold("foldr", fn, elems, initializer, reverse=True)


def _fold(stage: str, fn: Callable[[Any, Any], Any], elems: object, initializer: object, reverse: bool) -> Any:
    elements = _Elements(stage, fn, elems)
    if initializer is None:
        start, _ = elements.without_first(reverse)
    else:
        start = Nest(initializer, "the accumulator")
    return start.filled(elements.iterate(fn, start, reverse, stacked=False)[0])


@entered
def map_fn(fn: Callable[[Any], Any], elems: object) -> Any:
    """Map a function over the slices of tensors along their first axes, one after the other.

    An op that takes the whole tensor is faster where there is one, and so is ``hf.vmap``.

    Args:
        fn: ``fn(x)`` takes a slice, of the structure of ``elems``; what it returns may be nested.
        elems: a tensor, or nested ones of one length.

    Returns:
        The results, stacked along a new first axis.

    >>> hf.map_fn(lambda x: (hf.sum(x), x[0]), hf.asarray([[1, 2], [3, 4]]))
    (<Tensor i64[2] cpu> [3 7], <Tensor i64[2] cpu> [1 3])
    """
    elements = _Elements("map_fn", fn, elems)
    nests: list[Nest] = []

    def iteration(_: Sequence[Any], slices: Sequence[Tensor]) -> tuple[list[Any], list[Any]]:
        nest = Nest(fn(elements.nest.filled(slices)), "the result")
        if nests:
            nests[0].check_like("map_fn", nest, "for one slice", "for the next")
        nests.append(nest)
        return [], nest.values

    _, stacks = run_for("map_fn", elements.length, iteration, [], elements.tensors, [])
    if not nests:
        raise ArgumentError("map_fn", "there are no slices, and the function cannot be traced to see what it returns.")
    return nests[0].filled(stacks)


class _Elements:
    """What is walked over."""

    def __init__(self, stage: str, fn: object, elems: object) -> None:
        if not callable(fn):
            raise ArgumentTypeError(stage, f"{fn!r:.60} is no function; the function comes first.")
        self.stage, self.nest = stage, Nest(elems, "elems")
        self.tensors = [as_tensor(x, stage) for x in self.nest.values]
        if not self.tensors:
            raise ArgumentError(stage, "elems hold no tensor. Expected one, or nested ones of one length.")
        for name, x in zip(self.nest.names, self.tensors):
            if not x.shape:
                raise ShapeError(
                    stage, f"{name} is {x.type}. Expected at least one axis, whose slices are walked over."
                )
            if not same_extents(x.shape[:1], self.tensors[0].shape[:1]):
                raise ShapeError(
                    stage,
                    f"{self.nest.names[0]} is {self.tensors[0].type} and {name} is {x.type}. Expected one length of "
                    "their first axes.",
                )

    @property
    def length(self) -> Extent:
        return self.tensors[0].shape[0]

    def without_first(self, reverse: bool) -> tuple[Nest, list[Tensor]]:
        """Take the first slice away: as an accumulator, and as it is."""
        if self.length == 0:
            raise ArgumentError(self.stage, "there are no slices, and no initializer. Give the value to begin with.")
        length = self.length
        first = [x[-1 if reverse else 0] for x in self.tensors]
        begin, end = (0, length - 1) if reverse else (1, length)
        self.tensors = [slice_axis(x, 0, begin, end) for x in self.tensors]
        return Nest(self.nest.filled(first), "the accumulator"), first

    def iterate(
        self, fn: Callable[[Any, Any], Any], start: Nest, reverse: bool, stacked: bool
    ) -> tuple[list[Tensor], list[Tensor]]:
        def iteration(values: Sequence[Any], slices: Sequence[Tensor]) -> tuple[list[Any], list[Any] | None]:
            nest = Nest(fn(start.filled(values), self.nest.filled(slices)), "the accumulator")
            start.check_like(self.stage, nest, "before an iteration", "after it")
            return nest.values, None if stacked else []

        return run_for(self.stage, self.length, iteration, start.values, self.tensors, start.names, reverse)


@entered
def associative_scan(fn: Callable[[Any, Any], Any], elems: object, reverse: bool = False, axis: int = 0) -> Any:
    """Parallel prefix scan along an axis by an associative function.

    The k-th result is ``fn`` of the first k + 1 slices, in their order. n slices take about log2(n) steps, each over
    many of them at once.

    Args:
        fn: ``fn(a, b)`` takes and returns whole tensors (or nested ones), and combines them slice by slice. It must be
            associative.
        elems: a tensor, or nested ones of one length.
        reverse: whether slices come from the last to the first.
        axis: the axis along which slices are taken.

    Returns:
        Tensors of the structure, shapes and dtypes of ``elems``.

    >>> hf.associative_scan(hf.maximum, hf.asarray([1, 3, 2, 5, 4]))
    <Tensor i64[5] cpu> [1 3 3 5 5]
    """
    stage = "associative_scan"
    elements = _Elements(stage, fn, elems)
    tensors = elements.tensors
    if not all(-x.ndim <= axis < x.ndim for x in tensors):
        raise AxisError(stage, f"axis {axis} is none of {', '.join(str(x.type) for x in tensors)}.")
    extents = {x.shape[axis] for x in tensors}
    if len(extents) != 1:
        raise ShapeError(stage, f"elems have the extents {sorted(map(str, extents))} along axis {axis}. Expected one.")
    axes = [axis % x.ndim for x in tensors]
    inputs = [flip(x, axis=k) for x, k in zip(tensors, axes)] if reverse else tensors

    def combined(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        result = fn(elements.nest.filled(left), elements.nest.filled(right))
        structure = pytree.flatten(result)[1]
        if not structure.same_entries(elements.nest.structure):
            raise ArgumentTypeError(stage, f"fn returns {structure!r} for {elements.nest.structure!r}. Expected these.")
        return Nest(result, "the result").values

    results = _prefixes(combined, inputs, axes, int(extents.pop()))
    return elements.nest.filled([flip(x, axis=k) for x, k in zip(results, axes)] if reverse else results)


def _prefixes(combined: Any, tensors: list[Tensor], axes: list[int], n: int) -> list[Tensor]:
    """Results for pairs give every second one; those between follow in one step more."""
    if n < 2:
        return tensors

    def part(xs: list[Tensor], begin: int, end: int, step: int = 1) -> list[Tensor]:
        return [slice_axis(x, k, begin, end, step) for x, k in zip(xs, axes)]

    pairs = combined(part(tensors, 0, n - 1, 2), part(tensors, 1, n, 2))
    odd = _prefixes(combined, pairs, axes, n // 2)
    count = (n - 1) // 2
    firsts = part(tensors, 0, 1)
    if count:
        between = combined(part(odd, 0, count), part(tensors, 2, n, 2))
        even = [concat([x, y], axis=k) for x, y, k in zip(firsts, between, axes)]
    else:
        even = firsts
    return [_interleaved(x, y, k, n) for x, y, k in zip(even, odd, axes)]


def _interleaved(x: Tensor, y: Tensor, axis: int, n: int) -> Tensor:
    """x[0], y[0], x[1], y[1] and so on: n slices along ``axis``."""
    half = n // 2
    both = stack([slice_axis(x, axis, 0, half), y], axis=axis + 1)
    joined = reshape_to(both, (*y.shape[:axis], 2 * half, *y.shape[axis + 1 :]))
    return joined if n == 2 * half else concat([joined, slice_axis(x, axis, half, half + 1)], axis=axis)
