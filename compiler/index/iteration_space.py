"""Iteration spaces: the loops that visit every element of a cluster's tensors, and which of them are reduced."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from hybridflow.compiler.index.index_expr import ZERO, Atom, IndexExpr, LoopVar, Quotient, Remainder, variable
from hybridflow.compiler.ir.types import Extent, Shape, is_static, product, static_size


@dataclass(frozen=True, eq=False)
class Space:
    """Loops in row-major order of the elements; ``reduced[i]`` says whether loop i is folded away by the reductions."""

    vars: tuple[LoopVar, ...]
    reduced: tuple[bool, ...]

    @cached_property
    def key(self) -> Hashable:
        """Equal for spaces with loops of the same names and extents, of which the same are reduced."""
        return tuple([(var.name, var.extent) for var in self.vars]), self.reduced

    @cached_property
    def full(self) -> IndexExpr:
        """The row-major position among all elements."""
        return _row_major(self.vars)

    @cached_property
    def row(self) -> IndexExpr:
        """The row-major position among the results of the reductions."""
        return _row_major(v for v, r in zip(self.vars, self.reduced) if not r)

    @cached_property
    def kept(self) -> tuple[LoopVar, ...]:
        return tuple(v for v, r in zip(self.vars, self.reduced) if not r)

    @cached_property
    def folded(self) -> tuple[LoopVar, ...]:
        return tuple(v for v, r in zip(self.vars, self.reduced) if r)

    @cached_property
    def has_reduction(self) -> bool:
        return any(self.reduced)


def _row_major(vars: Iterable[LoopVar]) -> IndexExpr:
    total = ZERO
    for var in vars:
        total = total * var.extent + variable(var)
    return total


def over(shape: Shape) -> Space:
    """A loop per axis, none reduced."""
    return Space(tuple(LoopVar(f"i{k}", n) for k, n in enumerate(shape)), (False,) * len(shape))


def flat(shape: Shape) -> Space:
    """One loop over all elements; a loop per axis where the number of elements is not known."""
    return over((static_size(shape),)) if is_static(shape) else over(shape)


def reduction(shape: Shape, axes: Sequence[int]) -> Space:
    """Loops of a reduction.  Axes of one element play no part; after that the maximal group of trailing reduced axes
    is one loop, because its order is laid down for the group as a whole (see ``codegen.nests.reduction``)."""
    loops = [(extent, k in axes) for k, extent in enumerate(shape) if extent != 1]
    first = len(loops)
    while first > 0 and loops[first - 1][1]:
        first -= 1
    tail = tuple(extent for extent, _ in loops[first:])
    loops = loops[:first]
    if tail:
        loops.append((product(tail), True))
    return _of(loops)


def _of(loops: Sequence[tuple[Extent, bool]]) -> Space:
    """Loops of the given extents; a space that reduces keeps a reduced loop, if only of one element."""
    loops = list(loops)
    if not any(reduced for _, reduced in loops):
        loops.append((1, True))
    vars = tuple(LoopVar(f"{'r' if r else 'i'}{k}", n) for k, (n, r) in enumerate(loops))
    return Space(vars, tuple(r for _, r in loops))


def signature(space: Space) -> tuple[tuple[tuple[Extent, ...], bool], ...]:
    """Runs of kept and of reduced loops with their extents merged: equal signatures visit rows alike."""
    runs: list[tuple[list[Extent], bool]] = []
    for var, reduced in zip(space.vars, space.reduced):
        if var.extent == 1:
            continue
        if not runs or runs[-1][1] != reduced:
            runs.append(([], reduced))
        run = runs[-1][0]
        if run and isinstance(run[-1], int) and isinstance(var.extent, int):
            run[-1] *= var.extent
        else:
            run.append(var.extent)
    return tuple((tuple(extents), reduced) for extents, reduced in runs)


def merged(space: Space, accesses: Iterable[IndexExpr]) -> Space:
    """The space with neighbouring loops joined wherever every access walks them as one, and loops of one element
    dropped."""
    hidden: set[LoopVar] = set()  # loops inside divisions or remainders: those must stay as they are
    strides = []
    for ix in accesses:
        strides.append(ix.strides)
        for atom in ix.atoms:
            if isinstance(atom, (Quotient, Remainder)):
                hidden.update(v for v in space.vars if atom.value.depends_on(v))
    groups: list[list[LoopVar]] = []
    kinds: list[bool] = []
    for var, reduced in zip(space.vars, space.reduced):
        if var.extent == 1 and not (reduced and space.reduced.count(True) == 1):
            continue
        if groups and kinds[-1] == reduced and _joins(groups[-1][-1], var, hidden, strides):
            groups[-1].append(var)
        else:
            groups.append([var])
            kinds.append(reduced)
    vars = tuple(
        group[0] if len(group) == 1 else LoopVar(group[-1].name, static_size(tuple(v.extent for v in group)))
        for group in groups
    )
    return Space(vars, tuple(kinds))


def _joins(outer: LoopVar, inner: LoopVar, hidden: set[LoopVar], strides: list[dict[Atom, Extent]]) -> bool:
    if outer in hidden or inner in hidden:
        return False
    if not isinstance(outer.extent, int) or not isinstance(inner.extent, int):
        return False
    return all(table.get(outer, 0) == table.get(inner, 0) * inner.extent for table in strides)
