"""Random well-typed programs from the op table, for the fuzzer.

An op brings its own examples (``OpDef.samples``): a program grows by taking an example of a random op and feeding it
values that the program already has, bent into the example's types by views and conversions.  Every op of the table
takes part, new ones too, and the bending exercises the rewrites of views.  Programs never raise: what would raise on
the chosen arguments is not added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Literal, Node, Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.arrays import convert
from hybridflow.compiler.ops.samples import edges
from hybridflow.compiler.ops.table import Kind, OpDef
from hybridflow.compiler.passes.dce import dce
from hybridflow.errors import HybridflowError

MAX_ELEMENTS = 2000  # larger values are not reused: they would only cost time
PLAIN_NUMBERS = (0.0, -0.0, 1.0, 2.0, 0.5)  # what algebraic rewrites look for


class RandomProgram(NamedTuple):
    graph: Graph
    arrays: list[np.ndarray]  # one per input


Allowed = Callable[[OpDef, Any], bool]


def random_program(seed: int, steps: int = 8, allowed: Allowed = lambda op, dtype: True) -> RandomProgram:
    """A program of ``steps`` ops, and the views between them, out of those that are ``allowed`` for a dtype."""
    return _Generator(seed, allowed).generate(steps)


class _Generator:
    def __init__(self, seed: int, allowed: Allowed) -> None:
        self.rng = np.random.default_rng(seed)
        self.b = GraphBuilder(TABLE, f"random{seed}")
        self.values: dict[Node, np.ndarray] = {}
        self.arrays: list[np.ndarray] = []
        self.choices = [(op, dtype) for op in TABLE.values() for dtype in op.dtypes if allowed(op, dtype)]
        # Few dtypes per program, so that values meet.
        kinds = {dtype for _, dtype in self.choices}
        self.dtypes = {self.pick([d for d in dt.ALL if d in kinds]) for _ in range(3)}

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self.rng.integers(len(items))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def generate(self, steps: int) -> RandomProgram:
        choices = [c for c in self.choices if c[1] in self.dtypes]
        for step in range(steps):
            self.b.location = f"program.py:{step + 1}"
            if self.chance(0.3):
                self.algebra([c for c in choices if c[0].kind is Kind.ELEMENTWISE])
            else:
                self.step(*self.pick(choices))
        share = self.pick((0.1, 0.5))  # few results leave more to fusion and dead code, many hide less
        results = [n for n in (*self.b.inputs, *self.b.nodes) if self.chance(share)]
        graph = self.b.finish([*results, *self.b.nodes[-1:]], self.updates())
        return RandomProgram(graph, self.arrays)

    def updates(self) -> dict[int, Node]:
        states = [i for i, n in enumerate(self.b.inputs) if n.attrs["role"] is Role.STATE]
        found = {}
        for i in states:
            fitting = [n for n in self.b.nodes if n.type == self.b.inputs[i].type]
            if fitting and self.chance(0.8):
                found[i] = self.pick(fitting)
        return found

    def step(self, op: OpDef, dtype: Any) -> None:
        examples = op.samples(self.rng, dtype)
        arrays, attrs = self.pick(examples)
        attrs = op.canon(tuple(map(_type, arrays)), dict(attrs)) if op.canon else attrs
        may_raise = op.may_raise(tuple(map(_type, arrays)), attrs)
        types = [_type(x) for x in arrays]
        if op.kind is Kind.ELEMENTWISE and self.b.nodes and self.chance(0.6):  # any shape will do: take one there is
            shape = self.pick(self.b.nodes).shape
            if not may_raise and 0 < np.prod(shape) <= MAX_ELEMENTS:
                types = [t.with_shape(shape) for t in types]
        inputs = []
        for array, type in zip(arrays, types):
            # Integers of an op that may raise are indices or divisors: only the example's own are known to be right.
            own = may_raise and not dt.is_float(type.dtype)
            inputs.append(self.parameter(array) if own else self.value(array, type))
        if may_raise and self.raises(op, inputs, attrs):
            return
        self.emit(op, *inputs, **attrs)

    def algebra(self, choices: list[tuple[OpDef, Any]]) -> None:
        """What rewrites look for: an op on one value twice, or on a value and a plain number; and the same op again."""
        known = [n for n, x in self.values.items() if 0 < x.size <= MAX_ELEMENTS]
        if not known:
            return
        x = self.pick(known)
        fitting = [op for op, dtype in choices if dtype == x.dtype and op.name != "where"]
        if not fitting:
            return
        op = self.pick(fitting)
        attrs = self.pick(op.samples(self.rng, x.dtype))[1]
        for _ in range(self.pick((1, 1, 2))):
            inputs = [x, *(x if self.chance(0.3) else self.constant(x.type) for _ in range(op.arity - 1))]
            if self.chance(0.3):
                inputs.reverse()
            if self.raises(op, inputs, attrs):
                return
            result = self.emit(op, *inputs, **attrs)
            x = result if result.dtype == x.dtype else x

    def raises(self, op: OpDef, inputs: Sequence[Node], attrs: dict[str, Any]) -> bool:
        try:
            op.reference(*(self.values[n] for n in inputs), **attrs)
        except HybridflowError:
            return True
        return False

    def emit(self, op: OpDef, *inputs: Node, **attrs: Any) -> Node:
        node = self.b.emit(op, *inputs, **attrs)
        self.values[node] = op.reference(*(self.values[n] for n in inputs), **node.attrs)
        return node

    def view(self, name: str, x: Node, **attrs: Any) -> Node:
        return self.emit(TABLE[name], x, **attrs)

    def parameter(self, array: np.ndarray) -> Node:
        role = Role.STATE if self.chance(0.2) else Role.ARGUMENT
        node = self.b.parameter(_type(array), role=role)
        self.arrays.append(array)
        self.values[node] = array
        return node

    def value(self, example: np.ndarray, type: TensorType) -> Node:
        """Something of this type: known to the program, a constant, or new."""
        if self.chance(0.2):
            return self.constant(type)
        known = [n for n, x in self.values.items() if x.size <= MAX_ELEMENTS and n.dtype == type.dtype]
        equal = [n for n in known if n.type == type]
        if equal and self.chance(0.7):
            return self.pick(equal)
        if known and self.chance(0.7):
            return self.bend(self.pick(known), type)
        if self.values and self.chance(0.2):
            source = self.pick(list(self.values))
            if source.type.size <= MAX_ELEMENTS:
                return self.bend(self.emit(TABLE["convert"], source, dtype=type.dtype), type)
        return self.bend(self.parameter(self.with_edges(example)), type)

    def with_edges(self, array: np.ndarray) -> np.ndarray:
        """``array`` with the dtype's edge values (signed zeros, infinities, NaN ...) here and there."""
        hard = edges(array.dtype)
        return np.where(self.rng.random(array.shape) < 0.3, self.rng.choice(hard, array.shape), array)

    def constant(self, type: TensorType) -> Node:
        plain = [convert(np.asarray(n), type.dtype)[()] for n in PLAIN_NUMBERS]
        numbers = plain if self.chance(0.7) else edges(type.dtype)
        scalar = self.emit(TABLE["constant"], value=Literal.of(np.asarray(self.pick(numbers), type.dtype)))
        return self.view("broadcast", scalar, shape=type.shape, axes=()) if type.shape else scalar

    def bend(self, x: Node, type: TensorType) -> Node:
        """``x`` in the shape of ``type``, through views chosen at random."""
        if self.chance(0.3):
            x = self.detour(x)
        if x.shape == type.shape:
            return x
        # Axes that x lacks are repeated, if its own are the last of the wanted ones, or the first.
        extra = type.ndim - x.type.ndim
        if extra > 0 and type.shape[extra:] == x.shape:
            return self.view("broadcast", x, shape=type.shape, axes=tuple(range(extra, type.ndim)))
        if extra > 0 and type.shape[: x.type.ndim] == x.shape:
            return self.view("broadcast", x, shape=type.shape, axes=tuple(range(x.type.ndim)))
        if x.type.size < type.size:
            flat = self.view("reshape", x, shape=(x.type.size,))
            missing = type.size - x.type.size
            if x.type.size and self.chance(0.5):
                times = -(-type.size // x.type.size)
                tiled = self.view("broadcast", flat, shape=(times, x.type.size), axes=(1,))
                return self.bend(tiled, type)
            low = int(self.rng.integers(missing + 1))
            x = self.view("pad", flat, low=(low,), high=(missing - low,), interior=(0,), value=0)
        elif x.type.size > type.size:
            flat = self.view("reshape", x, shape=(x.type.size,))
            step = int(self.rng.integers(1, x.type.size // max(type.size, 1) + 1))
            stop = max(0, (type.size - 1) * step + 1)
            start = int(self.rng.integers(x.type.size - stop + 1))
            x = self.view("slice", flat, start=(start,), stop=(start + stop,), step=(step,))
        return self.view("reshape", x, shape=type.shape)

    def detour(self, x: Node) -> Node:
        """Another arrangement of the elements of ``x``."""
        rank = x.type.ndim
        name = self.pick(("transpose", "reverse", "negate", "reshape"))
        if name == "transpose":
            return self.view("transpose", x, perm=tuple(int(a) for a in self.rng.permutation(rank)))
        if name == "reverse":
            return self.view("reverse", x, axes=tuple(a for a in range(rank) if self.chance(0.5)))
        if name == "negate" and dt.is_float(x.dtype):
            return self.view("negative", x)
        return self.view("reshape", x, shape=(*x.shape, 1))


def _type(array: np.ndarray) -> TensorType:
    return TensorType(array.shape, array.dtype)


def smallest_failing(program: RandomProgram, fails: Callable[[RandomProgram], bool]) -> RandomProgram:
    """The program cut down while it fails: to the earliest value that fails alone, or else result by result."""
    graph = program.graph
    for node in graph.nodes:
        alone = _with_results(program, (node,), {})
        if fails(alone):
            return alone
    for i in reversed(range(len(graph.outputs))):
        outputs = program.graph.outputs
        fewer = _with_results(program, outputs[:i] + outputs[i + 1 :], program.graph.updates)
        program = fewer if fails(fewer) else program
    for i in graph.updates:
        updates = {k: node for k, node in program.graph.updates.items() if k != i}
        fewer = _with_results(program, program.graph.outputs, updates)
        program = fewer if fails(fewer) else program
    return program


def _with_results(program: RandomProgram, outputs: tuple[Node, ...], updates: Mapping[int, Node]) -> RandomProgram:
    graph = program.graph
    return RandomProgram(dce(Graph(graph.name, graph.inputs, graph.nodes, outputs, updates)), program.arrays)
