"""Replayed gradients: a backward pass that has been walked twice is a compiled program from then on.

Compiled programs have the bits of the ops that they are made of, so nobody notices but by the clock.  Which pass it is,
is decided by the structure of the records: their ops and attributes, which values they share, and the types of those
from outside.  Nothing is replayed where somebody sees single ops, as an outer tape, a trace, or functions run eagerly
do; nor where a record has a derivative of its own, which may be any Python function.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hybridflow.compiler.autodiff import Record, Results, backward
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.core.context import everywhere, idle, now
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.eager.executable import executable_for
from hybridflow.eager.wholes import Whole, taken_apart
from hybridflow.errors import ArgumentError, HybridflowError, user_location
from hybridflow.runtime import locks
from hybridflow.runtime.calls import entry
from hybridflow.runtime.calls.arguments import TensorArg
from hybridflow.runtime.calls.native_call import NativeCall
from hybridflow.runtime.calls.results import tuple_of
from hybridflow.runtime.dtypes import NUMPY

if TYPE_CHECKING:
    from hybridflow.runtime.cpu import Executable

Seeds = Sequence[tuple[Tensor, "Tensor | None"]]  # values and their cotangents, None standing for ones
Groups = Sequence[Sequence[Tensor]]  # the values whose cotangents are added up to one

FIRST = 3  # the time from which on a pass is replayed
_MOST = 512  # passes that are remembered
_NUMBERS = frozenset({Kind.SEGMENT, Kind.CREATE})  # attributes of these hold floats, of which equal ones may differ

_passes: dict[Any, Pass | int | None] = {}  # how often it was walked; None where there can be no program
_lock = locks.make()


def replayed(records: Sequence[Record], seeds: Seeds, wanted: Groups) -> list[Tensor | None] | None:
    """The sum of the cotangents of each group of ``wanted`` values, None where no seeded value depends on them; or
    None in the place of the list, where the records have to be walked."""
    if now() is not idle or everywhere.value or not records:
        return None
    values: list[Tensor] = []
    key = _structure(records, seeds, wanted, values)
    if key is None:
        return None
    known = _passes.get(key, 0)
    if isinstance(known, int):
        if known + 1 < FIRST:
            _remember(key, known + 1)
            return None
        known = _made(key, records, seeds, wanted, values)
    return None if known is None else known(values)


def _remember(key: Any, value: Pass | int | None) -> None:
    if key not in _passes:
        for oldest in list(_passes)[: max(len(_passes) - _MOST + 1, 0)]:  # a copy, which no other thread changes
            _passes.pop(oldest, None)
    _passes[key] = value


def _made(key: Any, records: Sequence[Record], seeds: Seeds, wanted: Groups, values: Sequence[Tensor]) -> Pass | None:
    with _lock:
        known = _passes.get(key, 0)
        if not isinstance(known, int):
            return known
        made: Pass | None = None
        with contextlib.suppress(HybridflowError):  # the walk says what is wrong, if it is not the compiler
            made = _compiled(records, seeds, wanted, values)
        _remember(key, made)
        return made


def _structure(records: Sequence[Record], seeds: Seeds, wanted: Groups, values: list[Tensor]) -> Any:
    """What decides the program, None where a record is neither an op nor a whole.  ``values`` are filled in the order
    of appearance, which numbers them."""
    places: dict[int, int] = {}
    key: list[Any] = []
    add, find = key.append, places.get
    for op, inputs, attrs, outputs, vjp in records:  # spelled out: this is most of what a replayed gradient costs
        if vjp is None:
            add(op)
        elif type(vjp) is Whole:
            add(vjp)
        else:
            return None
        for x in inputs:
            number = find(id(x))
            add(_placed(x, places, values, key) if number is None else number)
        if attrs:
            add(repr(attrs) if op.kind in _NUMBERS else (*attrs.items(),))
        for x in outputs:  # whose types follow from those of the inputs
            number = find(id(x))
            if number is None:
                places[id(x)] = len(values)
                values.append(x)
            else:
                add(-1 - number)
    for value, cotangent in seeds:
        for x in (value, cotangent):
            number = -1 if x is None else find(id(x))
            add(_placed(x, places, values, key) if number is None else number)  # type: ignore[arg-type]
    for group in wanted:
        for x in group:
            number = find(id(x))
            add(_placed(x, places, values, key) if number is None else number)
        add(None)
    return tuple(key)


def _placed(x: Tensor, places: dict[int, int], values: list[Tensor], key: list[Any]) -> int:
    """The number of a value that appears for the first time, and comes from outside: its type matters."""
    array = x._array
    key += (array.dtype.num, array.shape)
    number = places[id(x)] = len(values)
    values.append(x)
    return number


class Replay(entry.Dispatcher):
    """A compiled backward pass, to be called with the values that it reads, the ``kept`` ones by their numbers."""

    __slots__ = ("_executable", "kept")

    def __init__(self, executable: Executable, kept: Sequence[int]) -> None:
        self._executable, self.kept = executable, tuple(kept)
        program = executable.program
        arguments = [TensorArg(NUMPY[slot.dtype], slot.shape, k) for k, slot in enumerate(program.inputs)]
        try:
            self._dispatch = (NativeCall(executable, arguments, results=tuple_of(len(program.outputs))),)
        except ArgumentError:  # more buffers than native code takes
            self._dispatch = ()

    def _call_slow(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(map(wrap, self._executable.run([x._array for x in tensors])))


class Pass:
    """What stands for a backward pass: ``program``, None where there is nothing to compute, and for each group of
    wanted values ``places``, where its sum is among the results, None where no seeded value depends on it."""

    __slots__ = ("places", "program")

    def __init__(self, program: Replay | None, places: Sequence[int | None]) -> None:
        self.program, self.places = program, tuple(places)

    def __call__(self, values: Sequence[Tensor]) -> list[Tensor | None] | None:
        if self.program is None:
            return [None] * len(self.places)
        given = [values[k] for k in self.program.kept]
        for x in given:
            if type(x._array) is not np.ndarray:
                return None  # a GPU has it
        results = self.program(*given)
        return [None if k is None else results[k] for k in self.places]


def _compiled(records: Sequence[Record], seeds: Seeds, wanted: Groups, values: Sequence[Tensor]) -> Pass:
    """Walk the records over graph nodes in the place of tensors, and compile what comes of it."""
    b = GraphBuilder(TABLE, "gradient")
    b.location = user_location()
    nodes = {id(x): b.parameter(x.type, f"value{k}") for k, x in enumerate(values)}

    def walked(record: Record) -> Record:
        """The record between nodes."""
        outputs = tuple([nodes[id(x)] for x in record.outputs])
        several = isinstance(record.outputs, Results)
        inputs = tuple([nodes[id(x)] for x in record.inputs])
        return record._replace(inputs=inputs, outputs=Results(outputs) if several else outputs)

    starts = [
        (nodes[id(value)], b.full(1, value.type) if cotangent is None else nodes[id(cotangent)])
        for value, cotangent in seeds
    ]
    parts = [nodes[id(x)] for group in wanted for x in group]
    found = backward(b, taken_apart([walked(record) for record in records], b), starts, parts)
    return _loaded(b, totals(b, found, wanted))


def totals(b: Any, cotangents: Sequence[Any], wanted: Groups) -> list[Any]:
    """The sum of the cotangents of each group of values, given for all of them one after another."""
    rest = iter(cotangents)
    found = []
    for group in wanted:
        present = [part for part in [next(rest) for _ in group] if part is not None]
        found.append(functools.reduce(b.add, present) if present else None)
    return found


def _cpu(graph: Graph) -> Executable:
    return cast("Executable", executable_for(graph))


def _loaded(b: GraphBuilder, sums: Sequence[Node | None]) -> Pass:
    outputs = {node: k for k, node in enumerate(dict.fromkeys(node for node in sums if node is not None))}
    places = [None if node is None else outputs[node] for node in sums]
    if not outputs:
        return Pass(None, places)
    needed = set(outputs)
    for node in reversed(b.nodes):
        if node in needed:
            needed.update(node.inputs)
    kept = [k for k, node in enumerate(b.inputs) if node in needed]
    inputs = tuple([b.inputs[k] for k in kept])
    graph = Graph(b.name, inputs, tuple([node for node in b.nodes if node in needed]), tuple(outputs))
    return Pass(Replay(_cpu(graph), kept), places)
