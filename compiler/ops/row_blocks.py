"""Row blocks: the op ``panels`` runs a graph for a few rows at a time, so that what is made takes the memory of those.

The rows are those of one axis of ``rows`` elements, for each position along the axes of ``batch``.  They need none of
each other in what ``body`` computes, but for the results that add them up.  Passes alone make such nodes, of graphs
that say the same without them (see ``passes.tile_and_fuse``): they have no derivative, and nobody maps them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.extents import required
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.results import TupleType
from hybridflow.compiler.ir.types import TensorType, product
from hybridflow.compiler.ops.lowering import RowBlocks
from hybridflow.compiler.ops.op_table import NOT_DIFFERENTIABLE, Kind, define
from hybridflow.errors import ArgumentError, ShapeError


def _canon(types: Sequence[TensorType], attrs: dict[str, Any]) -> dict[str, Any]:
    rows, block, tail = attrs["rows"], attrs["block"], attrs["tail"]
    if not 0 < block <= rows or len(tail) != (rows % block != 0):
        raise ArgumentError(
            "panels", f"{rows} rows do not go in blocks of {block} with {len(tail)} graphs for the rest."
        )
    count = len(types)
    if len(attrs["starts"]) != count or [len(s) for s in attrs["steps"]] != [len(attrs["batch"]) + 1] * count:
        raise ArgumentError(
            "panels", f"there must be a start, and a step for each batch axis and for rows, of {count}."
        )
    return attrs


def _infer(*types: TensorType, **attrs: Any) -> TupleType:
    how = RowBlocks(**attrs)
    accumulators = how.sums if how.accumulates else 0
    for graph, height in how.graphs:
        if len(graph.inputs) != 1 + len(types) + accumulators:
            raise ArgumentError("panels", f"a graph takes {len(graph.inputs)} values, and is given {len(types)} more.")
        for node in graph.outputs[: len(graph.outputs) - how.sums]:
            if node.shape[0] != height:
                raise ShapeError("panels", f"a result of {height} rows is {node.type}.")
        if _of_a_row(graph, how.sums) != _of_a_row(how.body, how.sums):
            raise ShapeError("panels", f"results of {height} rows are others than those of {how.block}.")
    for x, start, steps in zip(types, how.starts, how.steps):
        last = sum(step * (count - 1) for step, count in zip(steps, (*how.batch, how.rows)) if count != 0)
        if not required(start) or not all(map(required, steps)) or not required(product(x.shape) - 1 - start - last):
            raise ShapeError("panels", f"rows begin at {start} and go on by {steps}, which leads out of {x}.")
    result_types = [n.type for n in how.body.outputs]
    stacked = result_types[: len(result_types) - how.sums]
    return TupleType(
        (
            *(t.with_shape((*how.batch, how.rows, *t.shape[1:])) for t in stacked),
            *(t.with_shape((*how.batch, *t.shape)) for t in result_types[len(stacked) :]),
        )
    )


def _of_a_row(graph: Graph, sums: int) -> list[TensorType]:
    """The types of what a graph makes of a row, and of the sums."""
    types = [node.type for node in graph.outputs]
    rows = len(types) - sums
    return [*(t.with_shape(t.shape[1:]) for t in types[:rows]), *types[rows:]]


def _reference(run: Any, *xs: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
    how = RowBlocks(**attrs)
    stacked = len(how.body.outputs) - how.sums
    stacks = [np.zeros((*how.batch, how.rows, *run.shape(n.shape[1:])), n.dtype) for n in how.body.outputs[:stacked]]
    stacks += [np.zeros((*how.batch, *run.shape(n.shape)), n.dtype) for n in how.body.outputs[stacked:]]
    for entry in itertools.product(*map(range, how.batch)):
        for begin in range(0, how.rows, how.block):
            graph, height = how.graphs[0] if begin + how.block <= how.rows else how.graphs[-1]
            shapes = [run.shape(node.shape) for node in graph.inputs[1 : 1 + len(xs)]]
            windows = [_window(x, place, shape) for x, place, shape in zip(xs, how.offsets(entry, begin), shapes)]
            sums = [array[entry] for array in stacks[stacked:]] if how.accumulates else []
            results = run(graph, [np.asarray(begin, np.int64), *windows, *sums])
            for array, one in zip(stacks[:stacked], results):
                array[entry][begin : begin + height] = one
            for array, one in zip(stacks[stacked:], results[stacked:]):
                array[entry] = one
    return tuple(stacks)


def _window(x: np.ndarray, start: int, shape: tuple[int, ...]) -> np.ndarray:
    """An array of that shape from an element on; what lies behind the last one, which nobody reads, is 0."""
    size = int(np.prod(shape))
    part = x.ravel()[start : start + size]
    return np.concatenate([part, np.zeros(size - part.size, x.dtype)]).reshape(shape)


define(
    "panels",
    Kind.CONTROL,
    None,
    doc="""The results of a graph that is run for ``block`` rows at a time, of ``rows``, for each position in ``batch``;
    ``tail`` has a graph for fewer rows at the end, where there are.  A graph is given the number of its first row; of
    each operand, the array that begins, counted from its element ``starts``, at a multiple of ``steps`` along each
    batch axis and rows; and, where there are several panels, the ``sums`` so far.  It returns rows of results, which
    are put together, and then those sums with its own rows added.""",
    canon=_canon,
    infer=_infer,
    lower=lambda types, attrs: RowBlocks(**attrs),
    reference=_reference,
    vjp=NOT_DIFFERENTIABLE,  # passes make it, which run when derivatives have been made
    internal=True,
    samples=lambda rng, dtype: [],
    dtypes=(),
)
