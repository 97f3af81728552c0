"""Running folds along an axis: out[i] = finish(combine(state of the elements before i, lift(x[i]))).

Exclusive ones leave out element i itself: out[i] = finish(state of the elements before i).
The order is that of ``ops/order.py``: runs inside chunks, each scanned from the identity, with carries.  States have
the dtype in which the op accumulates; each output is rounded on its own.
Lines along the last axis are folded one by one, others by vectors across neighbouring lines: the order within a line,
hence the bits, is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hybridflow.compiler.codegen.emitter import Emitter
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.phases import KernelCode, kernel_parameters, one_phase
from hybridflow.compiler.codegen.structured import (
    Code,
    Ref,
    lanes_for,
    merged_extent,
)
from hybridflow.compiler.codegen.values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ops.order import SCAN_CHUNK, SCAN_RUN
from hybridflow.compiler.ops.table import OpDef

State = tuple[Val, ...]
Part = Callable[[Ref, Ref, State], State]


def emit_scan(
    module: ModuleText,
    e: Emitter,
    symbol: str,
    op: OpDef,
    dtype: np.dtype,
    shape: Sequence[Extent],
    axis: int,
    dims: Sequence[str] = (),
) -> KernelCode:
    """Add the kernel ``symbol`` of a SCAN op: inputs of ``shape``, then the output.  Units: lines along ``axis``."""
    init, lift, combine, finish = op.init, op.lift, op.combine, op.finish
    assert init and lift and combine and finish, op  # the table sees to it
    c = Code(e, dims, shape)
    inputs = [f"%a{k}" for k in range(op.arity or 0)]
    out = f"%a{len(inputs)}"
    n, inner, item = c.extent(shape[axis]), c.product(shape[axis + 1 :]), dtype.itemsize
    exclusive = bool(op.facts.get("exclusive"))
    state_dtype = dt.compute_dtype(dtype)
    width = lanes_for(e.target, state_dtype, merged_extent(shape[axis + 1 :]))
    with c.spans("%begin", "%end", inner) as (outer, first, last):
        start = c.mul(c.mul(outer, n), inner)

        def line(i: Ref, mask: Val | None) -> None:
            begin = c.add(start, i)
            identity = tuple(e.const(value, d) for value, d in init(dtype))

            def step(at: Ref, carried: State, local: State) -> State:
                position = c.add(begin, c.mul(at, inner))
                xs = [e.convert(e.load(c.at(x, position, item), dtype, mask), state_dtype) for x in inputs]
                state = tuple(combine(e, local, lift(e, *xs, e.splat(c.value(at)))))
                shown = combine(e, carried, local if exclusive else state)
                e.store(finish(e, shown, dtype), c.at(out, position, item), mask)
                return state

            def run(begin: Ref, end: Ref, carried: State) -> State:
                with c.loop(begin, end, 1, identity) as element:
                    element.next = step(element.index, carried, tuple(element.carried))
                return tuple(element.carried)

            def parts(begin: Ref, end: Ref, size: int, carried: State, part: Part) -> State:
                """``part`` of each ``size`` elements, with what those before make of ``carried``; the total of all."""
                if isinstance(begin, int) and isinstance(end, int) and end - begin <= size:
                    return part(begin, end, carried)
                with c.loop(begin, end, size, identity) as loop:
                    before = tuple(loop.carried)
                    stop = c.min(c.add(loop.index, size), end)
                    loop.next = combine(e, before, part(loop.index, stop, tuple(combine(e, carried, before))))
                return tuple(loop.carried)

            def chunk(begin: Ref, end: Ref, carried: State) -> State:
                return parts(begin, end, SCAN_RUN, carried, run)

            parts(0, n, SCAN_CHUNK, identity, chunk)

        c.vector_loop(first, last, width, line)
    e.line("ret void")
    symbol = module.function(e, symbol, kernel_parameters(len(inputs) + 1), linkage="internal")
    return one_phase(symbol, (*shape[:axis], *shape[axis + 1 :]), width)
