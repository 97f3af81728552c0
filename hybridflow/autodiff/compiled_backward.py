"""Replayed gradients: a backward pass that has been walked twice is a compiled program from then on.

Compiled programs have the bits of the ops that they are made of, so nobody notices but by the clock.  Which pass it is,
is decided by the structure of the records: their ops and attributes, which values they share, and the types of those
from outside.  Nothing is replayed where somebody sees single ops, as an outer tape, a trace, or functions run eagerly
do; nor where a record has a derivative of its own, which may be any Python function.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from hybridflow.autodiff.sparse_gradient import lazy_sum, shows_beside
from hybridflow.compiler.autodiff import Record, Results, add_cotangents, backward
from hybridflow.compiler.ir.build import GraphBuilder, Value
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.sparse_grad import SparseGrad, Terms, is_few, mapped
from hybridflow.core.context import everywhere, idle, now
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.tier_up import BACKWARD_PASSES, remember
from hybridflow.eager.executable import executable_for
from hybridflow.eager.taped_calls import TapedCall, expand_taped
from hybridflow.errors import ArgumentError, HybridflowError, user_location
from hybridflow.runtime import fork_safe_locks
from hybridflow.runtime.calls import entry, native_tape
from hybridflow.runtime.calls.argument_specs import TensorArg
from hybridflow.runtime.calls.native_call import NativeCall
from hybridflow.runtime.calls.result_steps import tuple_of
from hybridflow.runtime.calls.tape_log import TapeLog, packed
from hybridflow.runtime.dtypes import NUMPY

if TYPE_CHECKING:
    from hybridflow.autodiff.tape_entries import Applied
    from hybridflow.runtime.cpu import Executable

Seeds = Sequence[tuple[Tensor, "Tensor | None"]]  # values and their cotangents, None standing for ones
Groups = Sequence[Sequence[int]]  # the numbers of values whose cotangents are added up to one

passes: dict[bytes, Any] = {}  # by what is known of them (see ``TapeLog._key``): native code looks here, too
_lock = fork_safe_locks.make()


def replayed(
    log: TapeLog, records: Callable[[], Sequence[Record]], seeds: Seeds, wanted: Groups
) -> list[Tensor | None] | None:
    """The sum of the cotangents of each group of ``wanted`` values, None where no seeded value depends on them; or
    None in the place of the list, where the records have to be walked.  The log is plain."""
    if now() is not idle or everywhere.value:
        return None
    more: list[Tensor] = []
    key = log._key([(log._entry(value) >> 1, cotangent) for value, cotangent in seeds], wanted, more)
    known = passes.get(key)
    if known is None:
        known = Pass(log._definitions)
        remember(passes, key, known, BACKWARD_PASSES.capacity)
    values = [*log._values, *more]
    if known.times is not None:
        known.times += 1
        if known.times < BACKWARD_PASSES.threshold:
            return None
        _make(known, records, seeds, wanted, values)
    return known(values)


def _make(
    known: Pass, records: Callable[[], Sequence[Record]], seeds: Seeds, wanted: Groups, values: Sequence[Any]
) -> None:
    with _lock:
        if known.times is None:
            return
        try:
            with contextlib.suppress(HybridflowError):  # the walk says what is wrong, if it is not the compiler
                known.give(*_compiled(records(), seeds, wanted, values))
        finally:
            known.times = None


class CompiledBackward(entry.Dispatcher):
    """A compiled backward pass, to be called with the values that it reads, the ``kept`` ones by their numbers."""

    __slots__ = ("_executable", "residuals")

    def __init__(self, executable: Executable, kept: Sequence[int]) -> None:
        self._executable, self.residuals = executable, tuple(kept)
        program = executable.program
        arguments = [TensorArg(NUMPY[slot.dtype], slot.shape, k) for k, slot in enumerate(program.inputs)]
        try:
            self._dispatch = (NativeCall(executable, arguments, results=tuple_of(len(program.outputs))),)
        except ArgumentError:  # more buffers than native code takes
            self._dispatch = ()

    def _call_slow(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(map(wrap, self._executable.run([x._array for x in tensors])))


class RowIndices(NamedTuple):
    """Where the indices and rows of a sum are: among the results, or, as ``~k``, among the values that are given; and
    the sum itself, where it is among the results, too."""

    type: TensorType
    terms: Terms
    dense: Any = None


RecordPosition = int | RowIndices | None


class Pass(native_tape.BackwardPass):
    """What stands for a backward pass: ``program``, None where there is nothing to compute; for each group of wanted
    values ``places``, where its sum is among the results, None where no seeded value depends on it; of a sum of rows,
    where these are.

    ``times`` is how often it was walked, as long as nobody has tried to compile it; ``places`` are None until then, and
    where there can be no program.  What was called is kept alive: its key holds the addresses.
    """

    __slots__ = ("_definitions", "positions", "program", "times")

    def __init__(self, definitions: Sequence[Applied | TapedCall]) -> None:
        self._definitions = tuple(definitions)
        self.times: int | None = 0
        self.program: CompiledBackward | None = None
        self.positions: tuple[RecordPosition, ...] | None = None
        self._native, self._numbers = None, b""

    def give(self, program: CompiledBackward | None, places: Sequence[RecordPosition]) -> None:
        self.program, self.positions = program, tuple(places)
        in_order = [*range(len(places))] == [*places]
        if program is not None and program._dispatch and in_order:
            self._numbers = packed(program.residuals)
            (self._native,) = program._dispatch

    def __call__(self, values: Sequence[Tensor]) -> list[Tensor | None] | None:
        if self.positions is None:
            return None
        results: Sequence[Tensor] = ()
        if self.program is not None:
            residuals = [values[k] for k in self.program.residuals]
            for x in residuals:
                if type(x._array) is not np.ndarray:
                    return None  # a GPU has it
            results = self.program(*residuals)

        def cotangent_of(k: int) -> Tensor:
            return results[k] if k >= 0 else values[~k]

        return [
            lazy_sum(k.type, mapped(cotangent_of, k.terms), None if k.dense is None else cotangent_of(k.dense))
            if isinstance(k, RowIndices)
            else None
            if k is None
            else cotangent_of(k)
            for k in self.positions
        ]


def _compiled(
    records: Sequence[Record], seeds: Seeds, wanted: Groups, values: Sequence[Any]
) -> tuple[CompiledBackward | None, list[RecordPosition]]:
    """Walk the records over graph nodes in the place of tensors, and compile what comes of it.  Rows of which there
    are few are results for themselves."""
    b = GraphBuilder(TABLE, "gradient")
    b.location = user_location()
    numbers = [k for k, x in enumerate(values) if type(x) is Tensor]  # the others are variables
    nodes = {id(values[k]): b.parameter(values[k].type, f"value{k}") for k in numbers}

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
    groups = [[nodes[id(values[k])] for k in group] for group in wanted]
    parts = [node for group in groups for node in group]
    cotangents = backward(b, expand_taped([walked(record) for record in records], b), starts, parts, as_rows=True)
    return _loaded(
        b, numbers, [_residuals(s) if isinstance(s, SparseGrad) else s for s in totals(b, cotangents, groups)]
    )


def _residuals(rows: SparseGrad) -> Node | RowIndices:
    """What a program gives of a sum of rows, with nodes for places."""
    if is_few(rows):
        return RowIndices(rows.type, rows.terms)
    return RowIndices(rows.type, rows.terms, rows()) if shows_beside(rows) else rows()


def totals(b: object, cotangents: Sequence[Value | SparseGrad | None], groups: Sequence[Sequence[Any]]) -> list[Any]:
    """The sum of the cotangents of each group of values, given for all of them one after another."""
    rest = iter(cotangents)
    result = []
    for group in groups:
        present = [part for part in [next(rest) for _ in group] if part is not None]
        result.append(functools.reduce(functools.partial(add_cotangents, b), present) if present else None)
    return result


def _cpu(graph: Graph) -> Executable:
    return cast("Executable", executable_for(graph))


def _loaded(
    b: GraphBuilder, numbers: Sequence[int], sums: Sequence[Node | RowIndices | None]
) -> tuple[CompiledBackward | None, list[RecordPosition]]:
    """The program for these sums, and where each of them is among its results; ``numbers`` are those of the inputs."""
    positions = {node: ~number for node, number in zip(b.inputs, numbers)}
    loaded: dict[Node, int] = {}

    def place(node: Node) -> int:
        return loaded.setdefault(node, len(loaded))

    def place_of_part(node: Node) -> int:
        return positions[node] if node in positions else place(node)

    places: list[RecordPosition] = [
        RowIndices(s.type, mapped(place_of_part, s.terms), None if s.dense is None else place(s.dense))
        if isinstance(s, RowIndices)
        else None
        if s is None
        else place(s)
        for s in sums
    ]
    if not loaded:
        return None, places
    needed = set(loaded)
    for node in reversed(b.nodes):
        if node in needed:
            needed.update(node.inputs)
    used = [k for k, node in enumerate(b.inputs) if node in needed]
    inputs = tuple([b.inputs[k] for k in used])
    graph = Graph(b.name, inputs, tuple([node for node in b.nodes if node in needed]), tuple(loaded))
    return CompiledBackward(_cpu(graph), [numbers[k] for k in used]), places
