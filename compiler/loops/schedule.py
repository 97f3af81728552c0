"""Schedules: how a kernel's loops run, decided before a line of code is written.

``schedule`` is a pure function of the kernel, its loops and the target; what it returns is frozen data that the loop
nests of ``codegen`` obey, that ``f.kernels()`` prints and that golden files pin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import Extent
from hybridflow.compiler.loops.index import Ix, LoopVar
from hybridflow.compiler.loops.kernel import IsLeaf, Kernel, accesses
from hybridflow.compiler.loops.limits import BUSY, CELLS, LIGHT, LONG, MOST_VECTORS, TILE
from hybridflow.compiler.loops.space import Space
from hybridflow.compiler.loops.stages import Cost, Stage, names_of, stages_of, work_of
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.folding import Folding
from hybridflow.compiler.target import Target

LEVELS = 3  # of a cascade of partial results (see ``ops.order``), which a column may keep at once


class Form(Enum):
    """MAP: nothing is reduced, vectors run along the last loop.  TURNED: the same in square tiles, because something is
    read across.  ROWS: the last loop is reduced, vectors run along the row.  COLUMNS: the last loop is kept, vectors
    run across columns."""

    MAP = "map"
    TURNED = "turned map"
    ROWS = "rows"
    COLUMNS = "columns"


@dataclass(frozen=True)
class Turned:
    """Reads to be turned: (input, position) of each, and the loop along which their neighbours lie."""

    reads: tuple[tuple[Node, Ix], ...]
    across: LoopVar


@dataclass(frozen=True)
class Schedule:
    """``parallel`` are the loops whose turns, as one row-major range of units, may be cut at multiples of ``grain`` and
    run in any order.  ``lanes`` are the elements of a vector, ``vectors`` those that a turn of the inner loop handles.
    ``tile`` are the columns whose accumulators are kept together.  A GPU runs each unit as a thread of its own."""

    form: Form
    lanes: int
    parallel: tuple[LoopVar, ...] = ()
    grain: int = 1
    vectors: int = 1
    tile: int = 1
    turned: Turned | None = None
    stages: tuple[Stage, ...] = ()

    @property
    def units(self) -> tuple[Extent, ...]:
        return tuple(v.extent for v in self.parallel)

    def light(self, stage: Stage) -> bool:
        """Whether a fold's body may be repeated for each of the vectors of its 64 lanes."""
        return self.lanes > 1 and stage.work <= LIGHT

    def __str__(self) -> str:
        """One line for people."""
        units = "*".join(map(str, self.units)) or "1"
        parts = [f"{units} units" + (f" by {self.grain}" if self.grain > 1 else "")]
        if self.lanes > 1:
            parts.append(f"{self.lanes} lanes" + (f" x {self.vectors}" if self.vectors > 1 else ""))
        if self.turned is not None:
            parts.append(f"{len(self.turned.reads)} reads turned along {self.turned.across.name}")
        if self.tile > 1:
            parts.append(f"tiles of {self.tile}")
        for number, stage in enumerate(self.stages):
            does = [f"fold {names_of(stage.folds)}"] if stage.folds else []
            does += [f"keep {names_of([k.node for k in stage.kept])}"] if stage.kept else []
            does += [f"write {names_of(stage.roots)}"] if stage.roots else []
            does += ["light"] if stage.folds and self.light(stage) and self.form is Form.ROWS else []
            if does:
                parts.append(f"pass {number + 1}: {', '.join(does)}")
        return f"{self.form.value}, {'; '.join(parts)}"


def schedule(kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: Cost) -> Schedule:
    """How the loops ``space`` of a kernel run.  ``cost(node)`` counts the instructions of one element of a node."""
    if not space.has_reduction:
        found = _map(kernel, space, target, is_leaf, cost)
    else:
        stages = stages_of(kernel, space, is_leaf, cost, keeps=target.kind != "cuda" and space.reduced[-1])
        lanes = _lanes(kernel, space, target)
        if space.reduced[-1]:
            found = Schedule(Form.ROWS, lanes, space.kept[:1], stages=stages)
        else:
            tile = _tile(kernel, space, target, lanes)
            grain = tile if len(space.kept) == 1 else 1
            found = Schedule(Form.COLUMNS, lanes, space.kept[:1], grain, tile=tile, stages=stages)
    if target.kind == "cuda":  # memory for a row of every thread would cost more than computing again
        return replace(found, parallel=space.kept, grain=1)
    return found


def _lanes(kernel: Kernel, space: Space, target: Target) -> int:
    """Lanes: those of four-byte elements unless everything is wider, and no more than the last loop has."""
    bits = 64 if all(n.dtype.itemsize == 8 for n in (*kernel.nodes, *kernel.inputs)) else 32
    lanes = target.lanes(bits)
    last = space.vars[-1].extent if space.vars else 1
    while isinstance(last, int) and lanes > 1 and lanes // 2 >= last:
        lanes //= 2
    return lanes


def _map(kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: Cost) -> Schedule:
    lanes = _lanes(kernel, space, target)
    if not space.vars:
        return Schedule(Form.MAP, lanes)
    grain = lanes if len(space.vars) == 1 else 1
    turned = turned_reads(space, accesses(kernel, space, is_leaf).of_input, lanes)
    if turned is not None:
        return Schedule(Form.TURNED, lanes, space.kept[:1], grain, turned=turned)
    work = work_of(kernel.roots, set(kernel.inputs), cost)
    return Schedule(Form.MAP, lanes, space.kept[:1], grain, _vectors(space.vars[-1].extent, lanes, work))


def _vectors(extent: Extent, lanes: int, work: int) -> int:
    """How many vectors a turn of a map handles: instructions of one element wait for each other, those of several
    vectors overlap.  Fewer where the body is long, since code generation takes time in proportion."""
    if lanes == 1:
        return 1
    if not isinstance(extent, int):
        return 2 if BUSY <= work <= LONG // 2 else 1
    vectors = 1
    while vectors < MOST_VECTORS and 2 * vectors * work <= LONG and 2 * vectors * lanes <= extent:
        vectors *= 2
    return vectors


def _tile(kernel: Kernel, space: Space, target: Target, lanes: int) -> int:
    """Columns whose accumulators stay in the first-level cache together, and whose statistics fit on the stack."""
    if target.kind == "cuda":
        return 1
    each = 0  # bytes of a column
    for node in kernel.cluster.rows:
        each += node.dtype.itemsize
        if node.op.kind is Kind.REDUCE:
            state = Folding(node.op, [n.type for n in node.inputs], node.attrs).identity
            each += LEVELS * sum(dtype.itemsize for _, dtype in state)
    tile = min(TILE, max(CELLS // each // lanes, 1) * lanes)
    extent = space.vars[-1].extent
    return min(tile, max(1, -(-extent // lanes)) * lanes) if isinstance(extent, int) else tile


def turned_reads(space: Space, reads: dict[Node, set[Ix]], lanes: int) -> Turned | None:
    """The reads of a map that are worth turning, all along one loop; None when there are none."""
    if lanes == 1 or len(space.vars) < 2:
        return None
    last = space.vars[-1]

    def long(var: LoopVar) -> bool:
        return isinstance(var.extent, int) and var.extent >= lanes

    for across in space.vars[:-1]:
        found = tuple(
            (node, position)
            for node, positions in reads.items()
            for position in positions
            if position.is_affine and position.coefficient(across) == 1 and (position.coefficient(last) or 0) > 1
        )
        if found and long(across) and long(last):
            return Turned(tuple(sorted(found, key=lambda read: repr(read[1]))), across)
    return None
