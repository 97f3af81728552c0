"""The passes over a row or a tile that a kernel with reductions needs.

A stage computes what only needs results of earlier stages.  A value that two stages need is computed twice when that is
cheap, else it is kept: in the node's own buffer when it has one, in scratch memory of one row otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple

from hybridflow.compiler.index.access_maps import access_maps_of
from hybridflow.compiler.index.index_expr import Index, IndexExpr
from hybridflow.compiler.index.iteration_space import Space
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.loops.kernel import IsLeaf, Kernel, accesses
from hybridflow.compiler.loops.tuning import CHEAP
from hybridflow.compiler.ops import Kind
from hybridflow.quick_dataclasses import dataclass

CostModel = Callable[[Node], int]


class KeptStatistic(NamedTuple):
    """A value that is kept for later stages, and where it is computed."""

    node: Node
    position: IndexExpr


@dataclass(frozen=True)
class ReductionStage:
    """``ready``: members with one element per row, apart from reductions and their results, that can be computed before
    the stage.  ``folds`` are its reductions, ``roots`` the results of the full space that it writes, ``kept`` what it
    keeps for later ones.  ``work`` counts the instructions of one element.
    ``line`` are the elements of a row along which all is read in even steps, where a row has several such lines: what
    is folded is then made line by line, a chunk ahead, and what is written is, so that no element needs a division."""

    ready: tuple[Node, ...]
    folds: tuple[Node, ...] = ()
    roots: tuple[Node, ...] = ()
    kept: tuple[KeptStatistic, ...] = ()
    work: int = 0
    line: int = 0


def work_of(nodes: Iterable[Node], known: Container[Node], cost: CostModel) -> int:
    """Instructions of a body that computes the nodes from what is known."""
    seen: set[Node] = set()
    stack = list(nodes)
    total = 0
    while stack:
        node = stack.pop()
        if node in seen or node in known or node.is_parameter:
            continue
        seen.add(node)
        total += cost(node)
        stack += node.inputs
    return total


def stages_of(
    kernel: Kernel, space: Space, is_leaf: IsLeaf, cost: CostModel, keeps: bool
) -> tuple[ReductionStage, ...]:
    """The stages of a kernel; the last one has nothing but what follows from the reductions of all others.  Without
    ``keeps`` every stage computes again what it needs of earlier ones."""
    first, ready, count = _order(kernel, space, is_leaf)
    of_node = accesses(kernel, space, is_leaf).of_node if keeps else {}
    # Of the nodes that are computed at a single position, which.
    only_at = {node: next(iter(positions)) for node, positions in of_node.items() if len(positions) == 1}
    rows, roots = kernel.cluster.rows, set(kernel.roots)

    def roots_of(stage: int) -> tuple[Node, ...]:
        return tuple(n for n in kernel.roots if n not in rows and first[n] == stage)

    def folds_of(stage: int) -> tuple[Node, ...]:
        return tuple(n for n in kernel.nodes if n.op.kind is Kind.REDUCE and first[n] == stage)

    def kept(stage: int) -> tuple[KeptStatistic, ...]:
        """What later stages need of this one and should not compute again.  A root is read back from its buffer."""
        stack: list[Node] = []
        for later in range(stage + 1, count):
            stack += roots_of(later)
            stack += (n for fold in folds_of(later) for n in fold.inputs)
        stack.reverse()
        wanted: dict[Node, None] = {}
        seen: set[Node] = set()
        while stack:
            node = stack.pop()
            if node in seen or node in known or node.is_parameter or node in rows:
                continue
            seen.add(node)
            if node in first and first[node] <= stage:
                if node in roots:
                    continue
                if node in only_at and work_of([node], known, cost) > CHEAP:
                    wanted.setdefault(node)
                    continue
            stack += reversed(node.inputs)
        return tuple(KeptStatistic(node, only_at[node]) for node in wanted)

    stages: list[ReductionStage] = []
    known = set(kernel.inputs)
    for stage in range(count + 1):
        later_kinds = (Kind.REDUCE, Kind.PROJECT)
        row_nodes = tuple(n for n in kernel.nodes if n in rows and n.op.kind not in later_kinds and ready[n] == stage)
        known.update(row_nodes)
        if stage == count:
            stages.append(ReductionStage(row_nodes))
            break
        folds, written = folds_of(stage), roots_of(stage)
        held = kept(stage) if keeps else ()
        work = work_of([*written, *(n for n, _ in held), *(n for fold in folds for n in fold.inputs)], known, cost)
        stages.append(ReductionStage(row_nodes, folds, written, held, work))
        known.update(folds, written, (node for node, _ in held))
    return tuple(stages)


def _order(kernel: Kernel, space: Space, is_leaf: IsLeaf) -> tuple[dict[Node, int], dict[Node, int], int]:
    """The stage in which a node of the full space can be computed, the first stage that can use a row's value, and the
    number of stages."""
    rows = kernel.cluster.rows
    first: dict[Node, int] = {}
    ready: dict[Node, int] = dict.fromkeys(kernel.inputs, 0)
    count = 0
    for node in kernel.nodes:  # in program order
        reduces = node.op.kind is Kind.REDUCE
        shape = node.inputs[0].shape if reduces else node.shape
        position = space.row if node in rows and not reduces else space.full
        reads = access_maps_of(node, Index(shape, linear=position), is_leaf)
        stage = max((ready.get(leaf, first.get(leaf, 0)) for leaf, _ in reads.leaves), default=0)
        if reduces:
            first[node], ready[node] = stage, stage + 1
        elif node in rows:
            ready[node] = stage
        else:
            first[node] = stage
        if node not in rows or reduces:
            count = max(count, stage + 1)
    return first, ready, count


def names_of(nodes: Sequence[Node]) -> str:
    return ", ".join(n.op.name for n in nodes)
