"""Schedules: how a kernel's loops run, decided before a line of code is written.

``schedule`` is a pure function of the kernel, its loops and the target; what it returns is frozen data that the loop
nests of ``codegen`` obey, that ``f.kernels()`` prints and that golden files pin.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from enum import Enum

from hybridflow.compiler.index.index_expr import (
    ComputedAtom,
    IndexExpr,
    LoopVar,
    Quotient,
    Remainder,
    is_contiguous_along,
)
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir.dtypes import DType, is_narrow_float
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.results import parts_of
from hybridflow.compiler.ir.types import Extent, is_static, product, static_size
from hybridflow.compiler.loops.interleaved_concat import InterleavedRows, interleaved_rows_of
from hybridflow.compiler.loops.kernel import Accesses, IsLeaf, Kernel, accesses, base
from hybridflow.compiler.loops.reduction_stages import CostModel, ReductionStage, names_of, stages_of, work_of
from hybridflow.compiler.loops.tuning import (
    ACCUMULATORS,
    BLOCK_BYTES,
    BUSY,
    CALL,
    CELLS,
    COLUMN_STRIP,
    ENOUGH,
    ENOUGH_GROUPS,
    ENOUGH_ON_GPU,
    GROUP_SHARED_BYTES,
    LIGHT,
    LONG,
    MAX_ELEMENTS_PER_THREAD,
    MAX_OUTER_VECTORIZED_WORK,
    MAX_STRIDED_STORE,
    MAX_TERMS,
    MAX_VECTORS,
    MAX_WARPS,
    MIN_GROUP_ROW,
    MIN_OUTER_LANES,
    MIN_SPLIT_SIZE,
    SHORT_LOOP,
    SMALL,
    SPLIT_AMONG_GROUPS,
    SPLIT_ON_GPU,
    SPLIT_REDUCTION,
    TERMS_WORK,
    TILE,
    TRANSPOSE_GROUP,
    VECTOR_BYTES,
    VECTORS_ON_GPU,
    WARP,
)
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.evaluation_order import CHUNK, LANES, SUPERCHUNK, TERMS
from hybridflow.compiler.ops.fold_rules import FoldRules
from hybridflow.compiler.target import Target
from hybridflow.quick_dataclasses import dataclass

LEVELS = 3  # of a cascade of partial results (see ``ops.evaluation_order``), which a column may keep at once


class Form(Enum):
    """MAP: nothing is reduced, vectors run along the last loop.  TURNED: the same in square tiles, because something is
    read across.  TEAM_TILES: that on a GPU.  ROWS: the last loop is reduced, vectors run along the row.  COLUMNS: the
    last loop is kept, vectors run across columns.  SPLIT: the same in two phases, partial results of pieces first,
    which are then folded in the order that is laid down for all of them.  SEGMENTS: a nest for each part of the output,
    all of which the loops are over.  DEALT_SEGMENTS: on a GPU, units of one part after another.  WOVEN: all parts of
    its short rows at once, vectors run along the rows.  ACROSS: the last loop is short, or another that what is read
    lies along; it is unrolled within vectors along a longer one."""

    MAP = "map"
    TRANSPOSED_MAP = "turned map"
    SHARED_MEMORY_TRANSPOSE = "map turned by teams"
    INNER_REDUCTION = "rows"
    SPLIT_INNER_REDUCTION = "rows in pieces"
    OUTER_REDUCTION = "columns"
    SPLIT_OUTER_REDUCTION = "columns in pieces"
    CONCAT = "segments"
    GROUP_CONCAT = "segments one after another"
    INTERLEAVED_CONCAT = "woven segments"
    OUTER_VECTORIZED = "across"


@dataclass(frozen=True)
class TransposedReads:
    """Reads to be turned: (input, position) of each, and the loop along which their neighbours lie."""

    reads: tuple[tuple[Node, IndexExpr], ...]
    vector_loop: LoopVar


@dataclass(frozen=True)
class Schedule:
    """``parallel`` are the loops whose turns, as one row-major range of units, may be cut at multiples of ``grain`` and
    run in any order.  ``lanes`` are the elements of a vector, ``vectors`` those that a turn of the inner loop handles.
    ``tile`` are the columns whose accumulators are kept together; ``terms`` those of a column that an iteration folds
    where that is all it does; ``runs`` the groups of terms of a few columns that are folded at once; ``piece`` the
    elements of a row, or the terms of a column, that make a partial result. ``lane`` is the loop along which vectors
    run across the loop ``inner``, ``interleaving`` the rows of a join. ``flat`` are vectors of neighbours in memory,
    whichever turns of the inner loop these belong to. ``sequential`` is how a single thread of a CPU does the same
    where others work in pieces: it has no use for these. On a GPU units are not cut: each has ``grain`` turns of the
    last parallel loop, and a ``team`` of threads runs it, most often just one; a larger one is a warp, or a block of
    several.  ``finish`` is the team that puts the pieces of a row together."""

    form: Form
    lanes: int
    parallel: tuple[LoopVar, ...] = ()
    grain: int = 1
    vectors: int = 1
    tile: int = 1
    terms: int = 1
    accumulators: int = 1
    split_size: int = 0
    vector_loop: LoopVar | None = None
    unrolled_loop: LoopVar | None = None
    contiguous: bool = False
    transposed: TransposedReads | None = None
    interleaving: InterleavedRows | None = None
    stages: tuple[ReductionStage, ...] = ()
    sequential: Schedule | None = None
    group_size: int = 1
    finish_group_size: int = 1

    @property
    def single_threaded(self) -> Schedule:
        """How a thread runs all units, one after the other."""
        if self.form is Form.SHARED_MEMORY_TRANSPOSE:
            return replace(self, form=Form.MAP, transposed=None, group_size=1)
        return replace(self.sequential or self, group_size=1, finish_group_size=1)

    @property
    def warp_level(self) -> Schedule:
        """How threads of a GPU run it for which a barrier of a block has another meaning: alone, or as a warp."""
        if self.form is Form.SHARED_MEMORY_TRANSPOSE:
            return self.single_threaded
        return replace(self, group_size=min(self.group_size, WARP), finish_group_size=min(self.finish_group_size, WARP))

    @property
    def shared_memory_bytes(self) -> int:
        """Memory of a block: for a tile of what is turned, or the lanes of a chunk from each warp of a team."""
        if self.transposed is not None:
            return _tile_bytes(self.transposed)
        warps = max(self.group_size, self.finish_group_size) // WARP
        return warps * LANES * max(map(_state_bytes, self.stages), default=0) if warps > 1 else 0

    @property
    def units(self) -> tuple[Extent, ...]:
        return tuple(v.extent for v in self.parallel)

    @property
    def written_last(self) -> tuple[Node, ...]:
        """Results of the last pass, which no other one reads."""
        return self.stages[-2].roots if len(self.stages) > 1 else ()

    def light(self, stage: ReductionStage) -> bool:
        """Whether a fold's body may be repeated for each of the vectors of its 64 lanes."""
        return self.lanes > 1 and stage.work <= LIGHT

    def vectors_of(self, stage: ReductionStage) -> int:
        """How many vectors of a row a turn of a fold handles whose body is not repeated as often as that takes."""
        heavy = stage.folds and not (self.light(stage) or stage.line)
        return _vectors(LANES, self.lanes, stage.work) if heavy else 1

    def terms_per_iteration(self, stage: ReductionStage) -> int:
        """Of a column, that are folded before its accumulators are stored again."""
        return self.terms if stage.folds and not stage.roots else 1

    def __str__(self) -> str:
        """One line for people."""
        units = "*".join(map(str, self.units)) or "1"
        parts = [f"{units} units" + (f" by {self.grain}" if self.grain > 1 else "")]
        if self.lanes > 1:
            parts.append(f"{self.lanes} lanes" + (f" x {self.vectors}" if self.vectors > 1 else ""))
        if self.vector_loop is not None and self.unrolled_loop is not None:
            parts.append(
                f"{self.unrolled_loop.extent} turns of {self.unrolled_loop.name} across {self.vector_loop.name}"
            )
            parts += ["as they lie"] if self.contiguous else []
        if self.interleaving is not None:
            parts.append(f"rows of {self.interleaving.along.extent}")
        if self.transposed is not None:
            parts.append(f"{len(self.transposed.reads)} reads turned along {self.transposed.vector_loop.name}")
        if self.split_size:
            parts.append(f"pieces of {self.split_size}" + (", none for one thread" if self.sequential else ""))
        if self.tile > 1:
            parts.append(f"tiles of {self.tile}" + (f", {self.terms} terms a turn" if self.terms > 1 else ""))
            parts += [f"{self.accumulators} runs at once"] if self.accumulators > 1 else []
        if self.group_size > 1:
            finish = f", rows finished by {self.finish_group_size}" if self.finish_group_size > 1 else ""
            parts.append(f"teams of {self.group_size}{finish}")
        for number, stage in enumerate(self.stages):
            does = [f"fold {names_of(stage.folds)}"] if stage.folds else []
            does += [f"keep {names_of([k.node for k in stage.kept])}"] if stage.kept else []
            does += [f"write {names_of(stage.roots)}"] if stage.roots else []
            if stage.folds and self.form in (Form.INNER_REDUCTION, Form.SPLIT_INNER_REDUCTION):
                vectors = self.vectors_of(stage)
                does += ["light"] if self.light(stage) else [f"{vectors} vectors a turn"] if vectors > 1 else []
            does += [f"in lines of {stage.line}"] if stage.line else []
            if does:
                parts.append(f"pass {number + 1}: {', '.join(does)}")
        return f"{self.form.value}, {'; '.join(parts)}"


def schedule(kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: CostModel) -> Schedule:
    """How the loops ``space`` of a kernel run.  ``cost(node)`` counts the instructions of one element of a node."""
    if kernel.cluster.kind is Kind.SEGMENT:
        chosen = _segments(kernel, space, target, is_leaf, cost)
    elif (across := _outer_vectorized(kernel, space, target, is_leaf, cost)) is not None:
        chosen = across
    else:
        chosen = _innermost_vectorized(kernel, space, target, is_leaf, cost)
    return _for_gpu(chosen, kernel, space, is_leaf, cost) if target.kind == "cuda" else chosen


def _innermost_vectorized(kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: CostModel) -> Schedule:
    """With vectors along the last loop, or along rows that are folded."""
    if not space.has_reduction:
        return _map(kernel, space, target, is_leaf, cost)
    return (_rows if space.reduced[-1] else _columns)(kernel, space, target, is_leaf, cost)


@dataclass(frozen=True)
class LoopFacts:
    """A kernel and its loops: what its schedules are a function of, as text that is the same in every program."""

    kernel: Kernel
    space: Space
    is_leaf: IsLeaf

    def __str__(self) -> str:
        space, kernel = self.space, self.kernel
        loops = ", ".join(f"{v.name}{' folded' * r} {v.extent}" for v, r in zip(space.vars, space.reduced))
        names = "_".join(dict.fromkeys(n.op.name for n in kernel.nodes))
        read = accesses(kernel, space, self.is_leaf).of_input
        numbers = {node: k for k, node in enumerate((*kernel.inputs, *kernel.nodes))}
        lines = [f"{n.type} at {sorted(map(repr, read.get(n, ())))}" for n in kernel.inputs]
        for node in kernel.nodes:
            inputs = [numbers.get(base(n), -1) for n in node.inputs]
            lines.append(f"{node.op.name} {inputs} {node.type} {node in kernel.roots}")
        digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=12).hexdigest()
        return f"loops {loops}: {names[:60]} {digest}"


def schedules(kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: CostModel) -> Iterator[Schedule]:
    """How the loops of a kernel may run: as ``schedule`` says, then other ways on a CPU, all of the same bits."""
    usual = schedule(kernel, space, target, is_leaf, cost)
    yield usual
    if target.kind == "cuda" or kernel.cluster.kind is Kind.SEGMENT:
        return
    plain = usual
    if usual.form is Form.OUTER_VECTORIZED:
        plain = _innermost_vectorized(kernel, space, target, is_leaf, cost)
        yield plain
    if plain.form is Form.TRANSPOSED_MAP:
        plain = _map(kernel, space, target, is_leaf, cost, transposes=False)
        yield plain
    if plain.form is Form.MAP:
        yield from _unrolled(plain, space)
    elif plain.form is Form.OUTER_REDUCTION:
        yield from _tiled(plain, space)
    elif plain.sequential is not None:
        yield plain.sequential
        pieces = (CHUNK, SUPERCHUNK) if plain.form is Form.SPLIT_INNER_REDUCTION else (TERMS, TERMS**2)
        yield from (replace(plain, split_size=piece) for piece in pieces if _is_piece(plain, space, piece))


def _unrolled(schedule: Schedule, space: Space) -> Iterator[Schedule]:
    """A map with other numbers of vectors an iteration."""
    if schedule.lanes == 1 or not space.vars:
        return
    last = space.vars[-1]
    for vectors in (1, 2, MAX_VECTORS):
        if not (isinstance(last.extent, int) and vectors * schedule.lanes > last.extent):
            yield replace(schedule, vectors=vectors, grain=schedule.lanes * vectors if last in schedule.parallel else 1)


def _tiled(schedule: Schedule, space: Space) -> Iterator[Schedule]:
    """Columns with smaller tiles, and with fewer terms an iteration.  Several runs at once are of all columns."""
    least = max(schedule.lanes, space.vars[-1].extent) if schedule.accumulators > 1 else schedule.lanes
    for terms in (schedule.terms, *(n for n in (1, 2) if n < schedule.terms)):
        for share in (1, 2, 4, 8):
            tile = schedule.tile // share
            if tile % schedule.lanes == 0 and tile >= least:
                yield replace(schedule, tile=tile, terms=terms)


def _is_piece(schedule: Schedule, space: Space, piece: int) -> bool:
    """Whether folds may be cut into such pieces: there are several."""
    folded = product(tuple(v.extent for v in space.folded))
    return schedule.accumulators == 1 and (not isinstance(folded, int) or folded > piece)


def overwritten_inputs(how: Schedule, kernel: Kernel, space: Space, is_leaf: IsLeaf) -> set[Node]:
    """Inputs of a kernel that folds rows whose memory its results of the full space may take: each element is read for
    the last time just before the one in its place is written, by those who have read all of the row before."""
    passes = [stage for stage in how.stages if stage.folds or stage.roots]
    if how.form is not Form.INNER_REDUCTION or any(stage.roots or stage.kept for stage in passes[:-1]):
        return set()
    read = accesses(kernel, space, is_leaf).of_input
    return {leaf for leaf, positions in read.items() if positions == {space.full}}


def _segments(kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: CostModel) -> Schedule:
    interleaved = _interleaved(kernel, target, is_leaf, cost)
    if interleaved is not None:
        return interleaved
    if target.kind == "cuda":  # where parts overlap a thread asks which one its element is of, and writes it once
        return _map(kernel, space, target, is_leaf, cost) if _overlap(kernel) else Schedule(Form.GROUP_CONCAT, 1)
    parallel, lanes = _parallel(space.vars), target.lanes(32)
    grain = COLUMN_STRIP if len(parallel) == len(space.vars) else 1
    work = 1 + work_of(kernel.cluster.anchor.inputs, set(kernel.inputs), cost)
    one_by_one = any(n.op.kind in (Kind.GATHER, Kind.SEARCH, Kind.SPARSE) for n in kernel.nodes)
    vectors = 1 if one_by_one else _vectors(COLUMN_STRIP, lanes, work)
    return Schedule(Form.CONCAT, lanes, parallel, grain, vectors)


def _overlap(kernel: Kernel) -> bool:
    """Whether all elements are filled before others are laid over them."""
    node = kernel.cluster.anchor
    assert node.op.segments is not None
    parts = list(node.op.segments(tuple(n.type for n in node.inputs), node.type, **node.attrs))
    return len(parts) > 1 and any(source is None and shape == node.shape for source, shape, *_ in parts)


def _interleaved(kernel: Kernel, target: Target, is_leaf: IsLeaf, cost: CostModel) -> Schedule | None:
    lanes = target.lanes(32)
    weave = (
        interleaved_rows_of(kernel, is_leaf, cost, lanes) if target.kind == "cpu" and lanes >= MIN_OUTER_LANES else None
    )
    return None if weave is None else Schedule(Form.INTERLEAVED_CONCAT, lanes, weave.loops, lanes, interleaving=weave)


def _for_gpu(schedule: Schedule, kernel: Kernel, space: Space, is_leaf: IsLeaf, cost: CostModel) -> Schedule:
    """A unit for each result of all kept loops, or for each vector of a map.  Rows are folded by teams, unless they are
    short."""
    schedule = replace(schedule, parallel=space.kept, grain=1, sequential=None)
    if schedule.form is Form.MAP and space.vars:
        reads = {} if _reads_partly(kernel) else accesses(kernel, space, is_leaf).of_input
        transposed = transposed_reads(space, reads, WARP)
        if transposed is not None and _tile_bytes(transposed) <= BLOCK_BYTES:
            return replace(
                schedule, form=Form.SHARED_MEMORY_TRANSPOSE, transposed=transposed, group_size=TRANSPOSE_GROUP
            )
        lanes = _elements_per_thread(kernel, space, is_leaf, cost)
        return replace(schedule, lanes=lanes, grain=lanes)
    if schedule.form not in (Form.INNER_REDUCTION, Form.SPLIT_INNER_REDUCTION):
        return schedule
    row = space.vars[-1].extent
    if isinstance(row, int) and row < MIN_GROUP_ROW:
        return schedule
    group = _thread_group(schedule.split_size or row, schedule.stages)
    finish = _thread_group(SUPERCHUNK, schedule.stages) if schedule.split_size == CHUNK and row != CHUNK else 1
    return replace(schedule, group_size=group, finish_group_size=finish)


def _tile_bytes(transposed: TransposedReads) -> int:
    """Memory for a tile of each turned read."""
    return WARP * (WARP + 1) * sum(node.dtype.itemsize for node, _ in transposed.reads)


def _elements_per_thread(kernel: Kernel, space: Space, is_leaf: IsLeaf, cost: CostModel) -> int:
    """Neighbours that a thread computes at once: of what it reads and writes the widest elements are as many as it can
    move at once.  One alone where something else than neighbours is read, or lines do not begin at multiples."""
    last, elements = space.vars[-1], product(tuple(v.extent for v in space.vars))
    if isinstance(elements, int) and elements < VECTORS_ON_GPU:
        return 1
    if any(ix.coefficient(last) not in (0, 1) for ix in accesses(kernel, space, is_leaf).positions):
        return 1
    lanes = min(VECTOR_BYTES // max(n.dtype.itemsize for n in (*kernel.inputs, *kernel.roots)), MAX_ELEMENTS_PER_THREAD)
    if len(space.vars) > 1 and not (isinstance(last.extent, int) and last.extent % lanes == 0):
        return 1
    work = work_of(kernel.roots, set(kernel.inputs), cost)
    while lanes > 1 and lanes * work > LONG:
        lanes //= 2
    return lanes


def _thread_group(run: Extent, stages: Sequence[ReductionStage]) -> int:
    """Threads for runs of so many elements."""
    return group_of_rows(run, max(map(_state_bytes, stages), default=0))


def group_of_rows(run: Extent, state: int) -> int:
    """Threads for runs of so many elements whose states have ``state`` bytes: a warp for each chunk, one where it is
    not known how many there are."""
    chunks = -(-run // CHUNK) if isinstance(run, int) else 1
    warps = 1
    while warps < min(chunks, MAX_WARPS) and 2 * warps * LANES * state <= GROUP_SHARED_BYTES:
        warps *= 2
    return warps * WARP


def _state_bytes(stage: ReductionStage) -> int:
    """Bytes of the states of a stage's folds."""
    identities = (FoldRules(n.op, [x.type for x in n.inputs], n.attrs).identity for n in stage.folds)
    return sum(dtype.itemsize for identity in identities for _, dtype in identity)


def _outer_vectorized(
    kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: CostModel
) -> Schedule | None:
    """A schedule with a short loop unrolled across a longer one, where there are two such and nothing is read or
    written with gaps; else None."""
    pairs = _outer_vector_loops(space)
    if not pairs or target.kind == "cuda" or _reads_partly(kernel):
        return None
    reads = accesses(kernel, space, is_leaf)
    work = work_of([*kernel.roots, *kernel.cluster.rows], set(kernel.inputs), cost)
    for inner, lane in pairs:
        short = static_size((inner.extent,))
        flat = inner is space.vars[-1] and _stays_contiguous(kernel, space, reads, inner, lane)
        lanes = _lanes_along(kernel, lane, target, _widest(kernel, space) if flat else 4)
        if lanes < MIN_OUTER_LANES or short * work > MAX_OUTER_VECTORIZED_WORK:
            continue
        strides = _strides(reads, inner, lane, MAX_STRIDED_STORE if flat else 1)
        transposed = _transposed_along(space, reads, inner, strides) if strides else None
        if strides and transposed is None:
            continue
        outer = [v for v in space.kept if v not in (lane, inner)]
        if inner is space.vars[-1] and _as_good_along(kernel, inner, short, lanes, space, reads, flat):
            continue
        if inner not in space.folded and space.folded and not _fills(outer, lane, lanes):
            continue
        if inner is not space.vars[-1] and not _lies_along(reads, inner, lane):
            continue
        parallel = _parallel([*outer, lane], [v for v in space.vars if v not in outer and v is not lane])
        grain = lanes if lane in parallel else 1
        stages = stages_of(kernel, space, is_leaf, cost, keeps=False)
        result = Schedule(
            Form.OUTER_VECTORIZED, lanes, parallel, grain, vector_loop=lane, unrolled_loop=inner, contiguous=flat
        )
        return replace(result, transposed=transposed, stages=stages)
    return None


def _reads_partly(kernel: Kernel) -> bool:
    """Whether there are turns in which something is not read: what is read together with neighbours is always."""
    return any(node.op.kind is Kind.SEGMENT for node in kernel.nodes)


def _outer_vector_loops(space: Space) -> list[tuple[LoopVar, LoopVar]]:
    """Pairs of a short loop and one along which vectors may run instead, the best first."""

    def short(var: LoopVar) -> bool:
        return isinstance(var.extent, int) and 2 <= var.extent <= SHORT_LOOP

    if not space.vars:
        return []
    last, others = space.vars[-1], [v for v in reversed(space.kept) if v is not space.vars[-1]]
    if last in space.folded:
        return [(last, others[0])] if short(last) and space.folded == (last,) and others else []
    pairs = [(last, lane) for lane in others if not short(lane)] if short(last) else []
    if not space.folded and not short(last):
        pairs += [(inner, last) for inner in others if short(inner)]
    return pairs


def _stays_contiguous(kernel: Kernel, space: Space, reads: Accesses, inner: LoopVar, lane: LoopVar) -> bool:
    """Whether results lie side by side, and are made of elements of their own turns: no element needs others, nothing
    is looked up, and memory is read in even steps."""
    if space.folded or not is_contiguous_along(space.full, inner, lane):
        return False
    sequential = all(n.op.kind in (Kind.ELEMENTWISE, Kind.VIEW) or not n.inputs for n in kernel.nodes)
    loops = inner, lane
    return sequential and all(ix.is_affine and None not in map(ix.coefficient, loops) for ix in reads.positions)


def _widest(kernel: Kernel, space: Space) -> int:
    """Bytes of the widest elements that differ from turn to turn of all loops."""
    elements = product(tuple(v.extent for v in space.vars))
    return max(n.dtype.itemsize for n in (*kernel.nodes, *kernel.inputs) if product(n.shape) == elements)


def _as_good_along(
    kernel: Kernel, inner: LoopVar, short: int, lanes: int, space: Space, reads: Accesses, flat: bool
) -> bool:
    """Whether vectors along the short loop, the last one, serve as well: they are full, or more than half full where
    others have to be put together; or they are full, of neighbours, and there is little to do with their one sum."""
    if inner in space.kept:
        return short % lanes == 0 if flat else short > lanes // 2
    if short % lanes or any(ix.coefficient(inner) not in (0, 1, None) for ix in reads.positions):
        return False
    return len(kernel.roots) == 1 and kernel.roots[0].op.kind is Kind.REDUCE


def _strides(reads: Accesses, inner: LoopVar, lane: LoopVar, apart: int) -> list[IndexExpr]:
    """Positions with gaps along the lane, more than ``apart`` elements from one to the next; but for those that the
    inner loop fills, or that are looked up anyway; each in rows that are no whole vectors."""
    count = static_size((inner.extent,))

    def gap(ix: IndexExpr) -> bool:
        if any(isinstance(atom, ComputedAtom) for atom in ix.atoms):
            divided = any(isinstance(atom, (Quotient, Remainder)) for atom in ix.atoms)
            return divided or ix.strides.get(inner, 0) not in (0, 1) or count & (count - 1) == 0
        along = ix.coefficient(lane)
        return (along is None or not 0 <= along <= apart) and not is_contiguous_along(ix, inner, lane)

    return [ix for ix in reads.positions if gap(ix)]


def _transposed_along(
    space: Space, accesses_known: Accesses, inner: LoopVar, strides: Sequence[IndexExpr]
) -> TransposedReads | None:
    """The positions as reads that can be turned in blocks along the innermost folded loop, one element after another
    or those of the inner loop together; None where one cannot."""
    if inner in space.folded or not space.folded:
        return None
    along = space.folded[-1]
    for ix in strides:
        step = inner.extent if ix.depends_on(inner) else 1
        if not ix.is_affine or ix.coefficient(along) != step or ix.coefficient(inner) != (step != 1):
            return None
    reads = tuple(
        (node, ix) for node, positions in accesses_known.of_input.items() for ix in positions if ix in strides
    )
    if {ix for _, ix in reads} != set(strides):
        return None
    return TransposedReads(tuple(sorted(reads, key=lambda read: repr(read[1]))), along)


def _lies_along(reads_of_kernel: Accesses, inner: LoopVar, lane: LoopVar) -> bool:
    """Whether something is read of which turns of ``inner`` are neighbours, and turns of ``lane`` are not."""
    reads = (ix for positions in reads_of_kernel.of_input.values() for ix in positions)
    return any(is_contiguous_along(ix, inner, lane) for ix in reads)


def _fills(outer: Sequence[LoopVar], lane: LoopVar, lanes: int) -> bool:
    """Whether vectors along the lane leave units enough, so that nothing needs to be folded in pieces."""
    extents = tuple(v.extent for v in (*outer, lane))
    return not is_static(extents) or static_size(extents) >= lanes * ENOUGH // 4


def _rows(kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: CostModel) -> Schedule:
    # On a GPU memory for a row of every thread would cost more than computing again.
    stages = stages_of(kernel, space, is_leaf, cost, keeps=target.kind != "cuda")
    lanes = _lanes(kernel, space, target)
    if target.kind != "cuda" and lanes > 1:
        stages = _with_lines(kernel, space, is_leaf, lanes, stages)
    whole = Schedule(Form.INNER_REDUCTION, lanes, _parallel(space.kept, space.folded), stages=stages)
    piece = _row_split_size(space, stages, target)
    if not piece:
        return whole
    return Schedule(Form.SPLIT_INNER_REDUCTION, lanes, space.kept, split_size=piece, stages=stages, sequential=whole)


def _with_lines(
    kernel: Kernel, space: Space, is_leaf: IsLeaf, lanes: int, stages: Sequence[ReductionStage]
) -> tuple[ReductionStage, ...]:
    """The stages, those in lines that read something with other steps than even ones along whole rows: several axes are
    folded as one, and something is read that does not have them all."""
    with_line: list[ReductionStage] = []
    known: set[Node] = set()
    for stage in stages:
        known.update(stage.ready)
        folded = folded_by(stage)
        wanted = (*folded, *stage.roots)
        line = _line(kernel, space, is_leaf, lanes, wanted, known) if wanted and not stage.kept else 0
        if sum(node.dtype.itemsize for node in folded) > CELLS // CHUNK:
            line = 0  # a chunk of what is folded has no room on the stack
        with_line.append(replace(stage, line=line))
        known.update(stage.folds, stage.roots, (node for node, _ in stage.kept))
    return tuple(with_line)


def _line(
    kernel: Kernel, space: Space, is_leaf: IsLeaf, lanes: int, wanted: Sequence[Node], known: Container[Node]
) -> int:
    """The longest run within rows along which all is read in even steps that makes what is wanted of what is known.
    0 where that is a whole row, and where there is none."""
    row = space.vars[-1]
    if not isinstance(row.extent, int) or row.extent <= LANES:
        return 0

    def divisors(space: Space) -> set[Extent]:
        reads = accesses(kernel, space, is_leaf, [(node, space.full) for node in wanted], known)
        return {d for position in reads.positions for d in _divisors(position, space.vars[-1])}

    for divisor in sorted((d for d in divisors(space) if isinstance(d, int)), reverse=True):
        if lanes <= divisor and row.extent % divisor == 0 and not divisors(line_by_line(space, divisor)):
            return divisor
    return 0


def folded_by(stage: ReductionStage) -> tuple[Node, ...]:
    """The values that a stage folds."""
    return tuple(dict.fromkeys(n for fold in stage.folds for n in fold.inputs))


def line_by_line(space: Space, line: int) -> Space:
    """The loops with the last one cut in two, the inner one of ``line`` turns."""
    *outer, row = space.vars
    cut = LoopVar(f"{row.name}o", static_size((row.extent,)) // line), LoopVar(row.name, line)
    return Space((*outer, *cut), (*space.reduced, space.reduced[-1]))


def _divisors(position: IndexExpr, var: LoopVar) -> set[Extent]:
    """What is divided by where a position depends on a loop in uneven steps."""
    result: set[Extent] = set()
    for atom in position.atoms:
        if isinstance(atom, (Quotient, Remainder)) and atom.value.depends_on(var):
            result |= {atom.divisor, *_divisors(atom.value, var)}
    return result


def _columns(kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: CostModel) -> Schedule:
    stages = stages_of(kernel, space, is_leaf, cost, keeps=False)
    lanes, tile = _lanes(kernel, space, target), _tile(kernel, space, target, _lanes(kernel, space, target))
    parallel = _parallel(space.kept, space.folded)
    grain = COLUMN_STRIP if space.vars[-1] in parallel else 1
    terms = 1 if target.kind == "cuda" else _terms(space, stages)
    whole = Schedule(Form.OUTER_REDUCTION, lanes, parallel, grain, tile=tile, terms=terms, stages=stages)
    runs = _interleaved_accumulators(kernel, space, target, is_leaf, lanes, tile)
    if runs > 1:
        *outer, column = space.kept
        parallel = _parallel(outer, (column, *space.folded))
        whole = replace(whole, parallel=parallel, grain=1, accumulators=runs)
    piece = _column_split_size(space, target, runs)
    if not piece:
        return whole
    split = replace(whole, form=Form.SPLIT_OUTER_REDUCTION, split_size=piece)
    if runs == 1:
        split = replace(split, parallel=space.kept, grain=COLUMN_STRIP)
    return replace(split, sequential=whole)


def _interleaved_accumulators(
    kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, lanes: int, tile: int
) -> int:
    """How many runs of terms are folded at once: of columns that fill a vector or two each add waits for the one
    before.  Lanes behind the last column read what lies there, and must not fail."""
    column, rows = space.vars[-1], space.folded[-1].extent
    few = isinstance(column.extent, int) and lanes > 1 and column.extent <= min(2 * lanes, tile)
    if (
        target.kind != "cpu"
        or not few
        or len(space.folded) > 1
        or not isinstance(rows, int)
        or rows <= ACCUMULATORS * TERMS
    ):
        return 1
    if any(node.may_raise or node.op.kind is Kind.SEGMENT for node in kernel.nodes):
        return 1
    if not all(_row_behind_row(ix, column, space.folded[-1]) for ix in accesses(kernel, space, is_leaf).positions):
        return 1
    return ACCUMULATORS if static_size((column.extent,)) <= lanes else ACCUMULATORS // 2


def _row_behind_row(ix: IndexExpr, column: LoopVar, row: LoopVar) -> bool:
    """Whether a position is the same for all columns, or theirs are neighbours, and so are rows, if these differ."""
    if not ix.is_affine or not ix.depends_on(column):
        return ix.is_affine
    return ix.coefficient(column) == 1 and ix.coefficient(row) in (0, column.extent)


def _parallel(loops: Sequence[LoopVar], inner: Sequence[LoopVar] = ()) -> tuple[LoopVar, ...]:
    """The outermost of the loops, which have ``inner`` ones within: as few as make enough units, or small ones.  Of an
    extent that is not known it is known that it is 2 or more."""
    units = 1
    for k, var in enumerate(loops):
        rest = tuple(v.extent for v in (*loops[k:], *inner))
        if units >= ENOUGH or (k and is_static(rest) and static_size(rest) <= SMALL):
            return tuple(loops[:k])
        units *= var.extent if isinstance(var.extent, int) else 2
    return tuple(loops)


def _row_split_size(space: Space, stages: Sequence[ReductionStage], target: Target) -> int:
    """How many neighbouring elements of a row fold into one partial result: all, a superchunk or a chunk, as many as
    leave enough pieces to share out.  0 where rows themselves are enough, or the work is little."""
    run, lines = space.vars[-1].extent, product(tuple(v.extent for v in space.vars[:-1]))
    enough = ENOUGH_GROUPS if target.kind == "cuda" else ENOUGH
    if not _pays(space, target, enough) or any(stage.kept for stage in stages):
        return 0
    if not isinstance(run, int) or not isinstance(lines, int):
        return CHUNK if len(space.folded) == 1 else 0
    if run < MIN_SPLIT_SIZE or (target.kind == "cuda" and len(space.folded) == 1 and run < SPLIT_AMONG_GROUPS):
        return 0
    for piece in (run, SUPERCHUNK, CHUNK):
        if piece <= run and lines * -(-run // piece) >= enough:
            return piece
    return min(run, CHUNK)


def _column_split_size(space: Space, target: Target, runs: int) -> int:
    """How many terms of the columns' folds make one partial result; 0 where columns themselves are enough, or the work
    is little."""
    terms, columns = (product(tuple(v.extent for v in vars)) for vars in (space.folded, space.kept))
    enough = ENOUGH_ON_GPU if target.kind == "cuda" else ENOUGH
    if not _pays(space, target, enough) or (isinstance(terms, int) and terms <= TERMS):
        return 0
    if not isinstance(terms, int) or not isinstance(columns, int):
        return TERMS
    if runs > 1:
        return TERMS**2 if terms >= 2 * TERMS**2 else 0
    strips = columns if target.kind == "cuda" else columns // COLUMN_STRIP
    return TERMS * TERMS if strips * -(-terms // TERMS**2) >= enough else TERMS


def _pays(space: Space, target: Target, enough: int) -> bool:
    """Whether to fold in two phases: there are fewer results than are ``enough``, and each is of much, or may be."""
    kept, elements = (product(tuple(v.extent for v in vars)) for vars in (space.kept, space.vars))
    strip = COLUMN_STRIP if target.kind == "cpu" and not space.reduced[-1] else 1
    if not isinstance(kept, int) or kept >= enough * strip:
        return False
    return not isinstance(elements, int) or elements >= (SPLIT_ON_GPU if target.kind == "cuda" else SPLIT_REDUCTION)


def _lanes(kernel: Kernel, space: Space, target: Target) -> int:
    widest = _widest_folded(kernel) if space.has_reduction and target.kind == "cpu" else 4
    return _lanes_along(kernel, space.vars[-1] if space.vars else LoopVar("none", 1), target, widest)


def _widest_folded(kernel: Kernel) -> int:
    """Bytes of the widest elements and states of a kernel that folds; floats are computed in 4 at least."""
    types = [part for n in (*kernel.nodes, *kernel.inputs) for part in parts_of(n.type)]
    widths = [4 if is_narrow_float(type.dtype) else type.dtype.itemsize for type in types if type.shape]
    folds = (n for n in kernel.nodes if n.op.kind is Kind.REDUCE)
    states = (FoldRules(n.op, [x.type for x in n.inputs], n.attrs).identity for n in folds)
    return max((*widths, *(dtype.itemsize for state in states for _, dtype in state)))


def _lanes_along(kernel: Kernel, var: LoopVar, target: Target, widest: int = 4) -> int:
    """Lanes: those of four-byte elements unless everything is wider, or the ``widest`` are narrower, and no more than
    the loop has."""
    types = [part for n in (*kernel.nodes, *kernel.inputs) for part in parts_of(n.type)]
    bits = 64 if all(type.dtype.itemsize == 8 for type in types) else 8 * min(widest, 4)
    lanes = target.lanes(bits)
    while isinstance(var.extent, int) and lanes > 1 and lanes // 2 >= var.extent:
        lanes //= 2
    return lanes


def _map(
    kernel: Kernel, space: Space, target: Target, is_leaf: IsLeaf, cost: CostModel, transposes: bool = True
) -> Schedule:
    lanes = 1 if any(map(_is_sparse_vector, kernel.nodes)) else _lanes(kernel, space, target)
    if not space.vars:
        return Schedule(Form.MAP, lanes)
    reads = {} if _reads_partly(kernel) else accesses(kernel, space, is_leaf).of_input
    transposed = transposed_reads(space, reads, lanes, backwards=True) if transposes else None
    if transposed is not None:
        outer = [v for v in space.vars[:-1] if v is not transposed.vector_loop]
        parallel = _parallel([*outer, transposed.vector_loop], space.vars[-1:])
        return Schedule(
            Form.TRANSPOSED_MAP,
            lanes,
            parallel,
            lanes if transposed.vector_loop in parallel else 1,
            transposed=transposed,
        )
    last = space.vars[-1]
    vectors = _vectors(last.extent, lanes, work_of(kernel.roots, set(kernel.inputs), _written_once(cost)))
    parallel = _parallel(space.vars)
    return Schedule(Form.MAP, lanes, parallel, lanes * vectors if last in parallel else 1, vectors)


def _is_sparse_vector(node: Node) -> bool:
    """Whether it is a product whose lanes would each have another row of a sparse matrix."""
    return node.op.kind is Kind.SPARSE and product(node.shape[1:]) == 1


def _written_once(cost: CostModel) -> CostModel:
    """The instructions of a body in which long ops are written once for all nodes that have them.  (Short ones, and
    functions of which only a part is shared, are of no account.)"""
    seen: set[tuple[str, DType]] = set()

    def of(node: Node) -> int:
        key, work = (node.op.name, node.dtype), cost(node)
        if work < BUSY or node.op.kind is not Kind.ELEMENTWISE:
            return work
        again = key in seen
        seen.add(key)
        return CALL if again else work

    return of


def _vectors(extent: Extent, lanes: int, work: int) -> int:
    """How many vectors a turn of a map handles: instructions of one element wait for each other, those of several
    vectors overlap.  Fewer where the body is long, since code generation takes time in proportion."""
    if lanes == 1:
        return 1
    if not isinstance(extent, int):
        return 2 if BUSY <= work <= LONG // 2 else 1
    vectors = 1
    while vectors < MAX_VECTORS and 2 * vectors * work <= LONG and 2 * vectors * lanes <= extent:
        vectors *= 2
    return vectors


def _tile(kernel: Kernel, space: Space, target: Target, lanes: int) -> int:
    """Columns whose accumulators stay in the first-level cache together, and whose statistics fit on the stack."""
    if target.kind == "cuda":
        return 1
    each = 0  # bytes of a column
    for node in kernel.cluster.rows:
        each += sum(part.dtype.itemsize for part in parts_of(node.type))
        if node.op.kind is Kind.REDUCE:
            state = FoldRules(node.op, [n.type for n in node.inputs], node.attrs).identity
            each += LEVELS * sum(dtype.itemsize for _, dtype in state)
    tile = min(TILE, max(CELLS // each // lanes, 1) * lanes)
    extent = space.vars[-1].extent
    return min(tile, max(1, -(-extent // lanes)) * lanes) if isinstance(extent, int) else tile


def _terms(space: Space, stages: Sequence[ReductionStage]) -> int:
    """How many terms of its columns a turn folds: a divisor of those after which levels of the folds are full, which
    the innermost loop does not begin or end between."""
    last, work = space.folded[-1].extent, max(stage.work + len(stage.folds) for stage in stages)
    terms = 1
    while 2 * terms <= MAX_TERMS and 2 * terms * work <= TERMS_WORK:
        terms *= 2
    whole = len(space.folded) == 1 or (isinstance(last, int) and last % terms == 0)
    return terms if whole and not (isinstance(last, int) and last < terms) else 1


def transposed_reads(
    space: Space, reads: dict[Node, set[IndexExpr]], lanes: int, backwards: bool = False
) -> TransposedReads | None:
    """The reads of a map that are worth turning, all along one loop, ``backwards`` too; None when there are none."""
    if lanes == 1 or len(space.vars) < 2:
        return None
    last = space.vars[-1]

    def long(var: LoopVar) -> bool:
        return isinstance(var.extent, int) and var.extent >= lanes

    def lies_across(position: IndexExpr, across: LoopVar) -> bool:
        step, gap = position.coefficient(across), position.coefficient(last) or 0
        if backwards:
            step, gap = abs(step or 0), abs(gap)
        return position.is_affine and step == 1 and gap > 1

    for across in space.vars[:-1]:
        transposed = tuple(
            (node, position)
            for node, positions in reads.items()
            for position in positions
            if lies_across(position, across)
        )
        if transposed and long(across) and long(last):
            return TransposedReads(tuple(sorted(transposed, key=lambda read: repr(read[1]))), across)
    return None
