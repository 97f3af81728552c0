"""Integer arithmetic in the fewest bits that hold it: a register has four times as many bytes as numbers of 32 bits.

An op on integers that were converted from narrower ones, or are known, is computed in the narrowest dtype that holds
its inputs and its exact result (``ops/value_ranges.py``): its bits are those of the wider one. That is done where all
that reads it goes on in as few bits: what lies in memory with its full width, or is needed so, would be narrowed and
widened again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.value_ranges import bounds, of_dtype, within
from hybridflow.compiler.passes.pattern_match import splat

_RELATIONS = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}
_ARITHMETIC = {
    *("add", "subtract", "multiply", "floor_divide", "remainder", "minimum", "maximum", "where"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"),
}
_NARROWER = (dt.uint8, dt.int8, dt.uint16, dt.int16, dt.uint32, dt.int32)

Dtypes = dict[Node, dt.DType]


def narrow(graph: Graph) -> Graph:
    dtypes: Dtypes = {}
    wide: set[Node] = set()
    while True:
        dtypes = _dtypes(graph, wide)
        more = _read_wide(graph, dtypes) - wide
        if not more:
            break
        wide |= more
    if not any(_computes(node) for node in dtypes):
        return graph
    return _Narrowing(graph, dtypes).rewritten()


def _computes(node: Node) -> bool:
    return node.op.name in _ARITHMETIC or node.op.name in _RELATIONS


def _operands(node: Node) -> tuple[Node, ...]:
    """The two integers that an op computes with: all of its inputs but for a condition."""
    return node.inputs[-2:]


def _dtypes(graph: Graph, wide: set[Node]) -> Dtypes:
    """The dtypes in which nodes can be computed, or are there already: those of comparisons are their operands'."""
    result: Dtypes = {}
    for node in graph.nodes:
        if node.is_parameter or node in wide:
            continue
        if node.op.kind is Kind.VIEW and node.inputs[0] in result and dt.is_integer(node.dtype):
            result[node] = result[node.inputs[0]]
        elif node.op.name == "convert" and dt.is_integer(node.dtype):
            source = node.inputs[0]
            if dt.is_integer(source.dtype) and source.dtype.itemsize < node.dtype.itemsize and _keeps(node):
                result[node] = result.get(source, source.dtype)
        elif _computes(node):
            dtype = _computed_in(node, result)
            if dtype is not None:
                result[node] = dtype
    return result


def _keeps(conversion: Node) -> bool:
    """Whether none of the numbers that are converted wraps."""
    source = bounds(conversion.inputs[0])
    return within(source, conversion.dtype) == source


def _computed_in(node: Node, dtypes: Dtypes) -> dt.DType | None:
    values = _operands(node)
    width = values[0].dtype.itemsize
    if not dt.is_integer(values[0].dtype) or width == 1:
        return None
    sources = [dtypes[value] for value in values if value in dtypes]
    if not sources or any(value not in dtypes and splat(value) is None for value in values):
        return None
    if node.op.name in _ARITHMETIC:
        values = (*values, node)
    return _dtype_for(values, max(source.itemsize for source in sources), width)


def _dtype_for(values: Sequence[Node], least: int, below: int) -> dt.DType | None:
    """The narrowest dtype that has all these integers, of ``least`` bytes and of less than ``below``."""
    ends = [bounds(value) for value in values]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    for dtype in _NARROWER:
        first, last = of_dtype(dtype)
        if least <= dtype.itemsize < below and first <= low and high <= last:
            return dtype
    return None


def _read_wide(graph: Graph, dtypes: Dtypes) -> set[Node]:
    """Arithmetic whose result something needs in its full width."""
    needed = set(graph.results)
    for node in reversed(graph.nodes):
        needed.update(_wide_inputs(node, dtypes, needed))
    return {node for node in dtypes if node in needed and node.op.name in _ARITHMETIC}


def _wide_inputs(node: Node, dtypes: Dtypes, needed: set[Node]) -> Iterator[Node]:
    """The inputs that a node needs in their full width."""
    if node.op.name == "convert":
        source = node.inputs[0]
        fits = source in dtypes and node.dtype.itemsize <= dtypes[source].itemsize
        if dt.is_integer(node.dtype) and not fits and (node not in dtypes or node in needed):
            yield source
    elif node.op.kind is Kind.VIEW or node.op.name in _ARITHMETIC:
        if node not in dtypes or node in needed:
            yield from node.inputs
    elif node.op.kind is Kind.SCATTER:
        yield node.inputs[0]
        yield from node.inputs[2:]  # kernels look at indices in as few bits as these have
    elif node not in dtypes:
        yield from node.inputs


class _Narrowing:
    def __init__(self, graph: Graph, dtypes: Dtypes) -> None:
        self.graph, self.dtypes, self.b = graph, dtypes, GraphBuilder(TABLE)
        self.new: dict[Node, Node] = {}  # nodes that took the place of others
        self.narrowed: dict[Node, Node] = {}  # the same values in fewer bits

    def rewritten(self) -> Graph:
        for old in self.graph.nodes:
            self.b.location = old.where
            self._visit(old)
        return self.graph.rebuild(self.new, self.b.nodes)

    def _visit(self, old: Node) -> None:
        b, inputs = self.b, [self.new.get(n, n) for n in old.inputs]
        node = old if inputs == list(old.inputs) else Node(old.op, inputs, old.attrs, old.type, old.where)
        if old not in self.dtypes:
            b.nodes.append(node)
        elif old.op.kind is Kind.VIEW:
            b.nodes.append(node)
            self.narrowed[old] = b.emit(old.op, self._in_bits(old.inputs[0], self.dtypes[old]), **old.attrs)
        elif old.op.name == "convert":
            b.nodes.append(node)
            self.narrowed[old] = self.narrowed.get(old.inputs[0], inputs[0])
        else:
            dtype = self.dtypes[old]
            operands = [self._in_bits(value, dtype) for value in _operands(old)]
            narrowed = b.emit(old.op, *inputs[:-2], *operands, **old.attrs)
            if old.op.name in _ARITHMETIC:
                self.narrowed[old] = narrowed
                narrowed = b.convert(narrowed, dtype=old.dtype)
            node = narrowed
        if node is not old:
            self.new[old] = node

    def _in_bits(self, value: Node, dtype: dt.DType) -> Node:
        """A value in a narrower dtype that has it."""
        if value not in self.narrowed:
            number = splat(value)
            assert number is not None, value
            return self.b.full(int(number), TensorType(value.shape, dtype))
        value_narrowed = self.narrowed[value]
        return value_narrowed if value_narrowed.dtype == dtype else self.b.convert(value_narrowed, dtype=dtype)
