"""A loop of the program, while its body is traced.

A ``while`` whose condition turns out to be a tensor starts there: what its names hold is what is carried.  Its body
is traced, with the condition at its end, until the types of what is carried come out as they went in; numbers of
Python's that change become tensors that count as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hybridflow.array import elementwise
from hybridflow.autograph.runtime import diagnostics
from hybridflow.autograph.runtime.aliasing import alias_classes, record_may_alias
from hybridflow.autograph.runtime.branch import Branch
from hybridflow.autograph.runtime.branch_stack import BranchScope, scope_of
from hybridflow.autograph.runtime.choices import Choice
from hybridflow.autograph.runtime.conditional import truth
from hybridflow.autograph.runtime.exits import (
    NORMAL,
    ExitKind,
    Exits,
    Values,
    current_values,
    literal_code,
    single_code,
)
from hybridflow.autograph.runtime.iterables import IterationSpace, Numbered, Numbers, TensorIterable
from hybridflow.autograph.runtime.list_append import Stacks
from hybridflow.autograph.runtime.loop_statement import LoopStatement
from hybridflow.autograph.runtime.loop_vars import ExitValues, IsNew, LoopVars, MaybeUnbound
from hybridflow.autograph.runtime.mutable_locations import UNBOUND, is_unbound
from hybridflow.autograph.runtime.phi import as_typed, holds_traced, is_traced_in
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.type_mismatch import TypeMismatch
from hybridflow.autograph.runtime.undo_log import containers_of, logged_write
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import scalar
from hybridflow.errors import TraceError
from hybridflow.tracing.control_nodes import emit_scan, emit_while
from hybridflow.tracing.loop_fixed_point import FixedPoint
from hybridflow.tracing.structured_control import read_elsewhere
from hybridflow.tracing.subtrace import SubTrace
from hybridflow.tracing.symbolic_tensor import SymbolicTensor

if TYPE_CHECKING:
    from hybridflow.core.pytree import Structure


# No names of Python's: whether there is another iteration, whether the loop was broken, the number that a ``for``
# counts.
GO, BROKE, INDEX = ".go", ".broke", ".index"


class TracedLoop:
    """A loop over a tensor, while its body is traced again and again.  A ``for`` that takes all its iterations is a
    scan over slices; all others go on while a condition holds."""

    def __init__(
        self, loop: LoopStatement, pred: Tensor | None, is_endless: bool = False, walk: IterationSpace | None = None
    ) -> None:
        self._loop, self._frame, self._names = loop, loop.frame, loop.names
        assert loop.where is not None
        self._where = loop.where
        self._pred, self._is_endless = None if pred is None else truth(pred), is_endless
        if loop.outer is not None:
            loop.outer.enter_path(self._where)
        self._parent = scope_of(self._frame)
        self._iterable: IterationSpace | None = walk
        self._scan = walk if isinstance(walk, TensorIterable) else None
        self._first: object = None if walk is None else walk.start if self._scan is None else self._scan.consumed
        self._sources = [] if self._scan is None else self._scan.remaining_sources()
        self.index: Any = self._first
        self.element: Any = None
        self._starts = current_values(self._frame, self._names)
        self._stacks = Stacks(self._frame, loop.lists if loop.attempt is not None and self._scan is not None else ())
        self._carried = self._new_carried()
        self._containers = containers_of(self._frame)
        self._fixed_point = FixedPoint("while")
        self.path: BranchScope = self._parent
        self._pass()

    def _pass(self) -> None:
        """Begin to trace the body."""
        self._fixed_point.begin_pass()
        self._region = region = SubTrace("the body of the loop")
        self._branch, self._changes = Branch(region), active.changes
        self._goes = [] if self._pred is None else [region.carry(self._pred.type, "go")]
        leaves = self._carried.inputs(region)
        self._variable_inputs = self._fixed_point.variable_inputs(region)
        self._slices = [region.carry(x.type.with_shape(x.shape[1:]), f"slice{k}") for k, x in enumerate(self._sources)]
        self.path = active.scope = BranchScope(self._frame, self._parent, self._branch)
        for place in self._containers:
            self._branch.record_write(place)
        self._branch.snapshot(self._frame)
        self._branch.enter()
        names, places = self._carried.begin(leaves, region)
        for place, value in places:
            logged_write(place, value)
        record_may_alias(self._carried.alias_pairs(names, places))
        self.index = names[INDEX]
        if self._scan is not None:
            self.element = self._scan.item_from_slices(iter(self._slices))
        elif self._iterable is not None:
            self.element = self._iterable.element(self.index)
        self._stacks.begin()
        self._loop.offer(names)

    @property
    def _inputs(self) -> list[SymbolicTensor]:
        """What the body is given from iteration to iteration."""
        return [*self._goes, *self._carried.all_inputs(), *self._variable_inputs]

    def finish_body(self) -> None:
        """The body is over, and its condition is asked next, unless it has left."""
        path, loop = self.path, self._loop
        if not path.open_conditionals and not path.has_exited:
            return
        bundle = path.exits or Exits({NORMAL: current_values(self._frame, self._names)})
        values = path.resume_with(path.close(bundle, {loop.kind("_continues", "continue"): NORMAL}))
        loop.offer(values)
        loop.over = values is None

    def finish_iteration(self, value: object) -> bool:
        """The condition was asked at the end of an iteration: trace another pass, or be done."""
        path, loop, side = self.path, self._loop, self._branch
        loop.over = False
        values = {**(loop.held if loop.fresh else current_values(self._frame, self._names)), INDEX: self.index}
        if self._scan is not None:
            value = True
        elif self._iterable is not None and not path.has_exited:
            values[INDEX] = self._iterable.next_index(self.index)
            value = self._iterable.has_index(values[INDEX])
        go: object = value
        if isinstance(value, (SymbolicTensor, Variable)):
            go = truth(value)
        elif self._scan is None:
            go = scalar(bool(value), dtypes.bool_, "while")
        bundle = path.exits or Exits({NORMAL: {**values, GO: go, BROKE: False}})
        bundle = path.close(bundle, {loop.kind("_breaks", "break"): NORMAL})
        side.leave()
        active.scope = self._parent
        side.check_mutations()
        if self._scan is not None and not (bundle.always_falls_through and bundle.by_kind[NORMAL][GO] is True):
            self._count()
            return True
        walk = self._scan
        if walk is not None and not isinstance(walk, Numbered) and read_elsewhere(walk.tensors(), self._region):
            self._restart(Numbered(walk))
            return True
        changes = active.changes != self._changes
        if self._stacks.grow(side):
            self._stacks.give_up()
            self._restart(walk)
            return True
        self._stacks.finish(side, changes)
        same_types = self._carried.unify(bundle.by_kind.get(NORMAL), side, changes)
        if loop.attempt is not None:
            counts = not isinstance(self._iterable, Numbers) and self._carried.numbers_change(INDEX)
            if counts or self._carried.needs_python():
                raise TraceError("for", "what the loop carries is not the same in each iteration.")
        if self._fixed_point.has_new_variables(self._region) or not same_types:
            self._check_locations()
            self._pass()
            return True
        if self._scan is not None:
            self._emit_scan(bundle.by_kind[NORMAL])
        else:
            self._emit(bundle)
        return False

    def _count(self) -> None:
        """Something leaves the loop: its iterations are counted, and begin anew."""
        self._pred = truth(scalar(True, dtypes.bool_, "for"))
        self._stacks.give_up()
        self._restart(None)

    def _restart(self, scanned: TensorIterable | None) -> None:
        """As a scan of something else, or as none."""
        self._scan, self._fixed_point.variables = scanned, []
        self._sources = [] if scanned is None else scanned.remaining_sources()
        self._carried = self._new_carried()
        self._pass()

    def _new_carried(self) -> LoopVars:
        length = None if self._iterable is None else self._iterable.length
        is_attempt = self._loop.attempt is not None
        is_known = is_attempt and self._pred is None
        return LoopVars({**self._starts, INDEX: self._first}, not is_attempt, length, is_known)

    def _last_values(self, late: ExitValues, values: Values | None) -> dict[str, Any]:
        """What names hold after the last iteration that held nothing before the first one, where there is an iteration:
        in the iteration, and as ``late`` has it."""
        bound = {} if values is None else {name: values[name] for name in self._carried.unbound()}
        if not self._has_run:
            bound = {name: value for name, value in bound.items() if name in self._unsure}
        elif any(holds_traced(value, self._region) for value in bound.values()):
            traced = next(value for value in bound.values() if holds_traced(value, self._region))
            raise TraceError("for", f"a {type(traced).__name__} is made in each iteration.")
        return {
            name: (value, late.add(value, self._branch, self._region))
            for name, value in bound.items()
            if not (
                is_unbound(value)
                or isinstance(value, (TypeMismatch, MaybeUnbound))
                or holds_traced(value, self._region)
            )
        }

    @property
    def _unsure(self) -> frozenset[str]:
        """The names that may be read where nothing has bound them."""
        return frozenset(getattr(self._names, "unsure", ()))

    def _emit_scan(self, values: Values) -> None:
        region, side, late = self._region, self._branch, ExitValues()
        with region.entered():
            outputs = self._carried.outputs(values, side)
        leaves = len(outputs)
        lasts = self._last_values(late, values)
        turned = self._has_run_flag(late, lasts)
        outputs += self._fixed_point.variable_outputs(region)
        outputs += late.outputs
        carries = len(outputs)
        outputs += self._stacks.outputs(side, region)
        inputs = [*self._inputs, *(region.carry(x.type, "left") for x in late.outputs)]
        with diagnostics.at(self._where):
            starts = [*self._carried.starts(), *self._fixed_point.variable_starts(), *late.starts()]
            assert self._scan is not None
            length = self._scan.remaining_length()
            results = emit_scan(region, starts, inputs, self._sources, self._slices, outputs, length)
        results[:carries] = self._with_shared_identity(outputs[:carries], results[:carries])
        count = leaves + len(self._fixed_point.variables)
        self._fixed_point.assign_variables(results[leaves:count])
        ends = {id(x): tensor for x, tensor in zip(outputs, results[:carries])}
        self._stacks.take(results[carries:], length, ends, self._carried.links(values, side), side)
        lates = results[count:carries]
        names = self._values_after(results[:leaves], lasts, lates, late.rebuild(turned, lates))
        self._after(names, False, literal_code(NORMAL), {})

    def _has_run_flag(self, late: ExitValues, lasts: dict[str, Any]) -> tuple[Structure, list[Any]]:
        """What is 1 after an iteration, if it is needed."""
        if self._has_run or not lasts:
            return late.add(None, self._branch)
        with self._region.entered():
            return late.add(scalar(1, dtypes.int32, "for"), self._branch)

    @property
    def _has_run(self) -> bool:
        """Whether there surely was an iteration."""
        return self._loop.attempt is not None

    def _with_shared_identity(self, outputs: Sequence[Tensor], results: list[Tensor]) -> list[Tensor]:
        """What a loop leaves: one object in all places where its last iteration left one, if there surely was an
        iteration."""
        if not self._has_run:
            return results
        first: dict[int, Tensor] = {}
        return [first.setdefault(id(x), tensor) for x, tensor in zip(outputs, results)]

    def _values_after(
        self, leaves: list[Tensor], lasts: dict[str, Any], lates: list[Tensor], turned: Tensor | None = None
    ) -> Values:
        """The values of names after the loop; places take theirs.  ``turned`` is 1 if there was an iteration."""
        names, places = self._carried.built(leaves)
        chosen = alias_classes({id(x) for x in self._inputs})
        record_may_alias(self._carried.alias_pairs(names, places, self._is_new() if self._has_run else None))
        for place, value in places:
            logged_write(place, value)
        for name, (value, added) in lasts.items():
            names[name] = ExitValues.rebuild(added, lates)
            if not self._has_run:
                assert turned is not None
                names[name] = Choice(turned, [UNBOUND, names[name]])
            record_may_alias(ExitValues.alias_pairs(names[name], value, self._branch, chosen))
        return names

    def _is_new(self) -> IsNew:
        """What tells whether the last iteration has made an object, so that it is none that was there before."""
        linked = {id(one) for _, group in active.may_alias for one in group}
        return lambda value: is_traced_in(value, self._region) and id(value) not in linked

    def _check_locations(self) -> None:
        conflict = self._carried.conflicting_location()
        if conflict is not None:
            raise diagnostics.changed_in_loop_error(*conflict, self._where)

    def _emit(self, bundle: Exits) -> None:
        region, side, late, values = self._region, self._branch, ExitValues(), bundle.by_kind.get(NORMAL)
        with region.entered():
            go = scalar(False, dtypes.bool_, "while") if values is None else as_typed(values[GO], dtypes.bool_)
            outputs = [go, *self._carried.outputs(values, side)]
            broke = late.add(False if values is None else values[BROKE], side)
            code = late.add(single_code(bundle) if bundle.code is None else bundle.code, side)
        lasts = self._last_values(late, values)
        turned = self._has_run_flag(late, lasts)
        ways = {kind: of_exit for kind, of_exit in bundle.by_kind.items() if kind is not NORMAL}
        left = {
            kind: {name: late.add(x, side, region) for name, x in of_exit.items()} for kind, of_exit in ways.items()
        }
        leaves = len(outputs) - 1
        outputs += self._fixed_point.variable_outputs(region)
        outputs += late.outputs
        inputs = [*self._inputs, *(region.carry(x.type, "left") for x in late.outputs)]
        asking = SubTrace("the condition of the loop")
        asked = [asking.carry(x.type, f"carry{k}") for k, x in enumerate(outputs)]
        with diagnostics.at(self._where):
            assert self._pred is not None
            starts = [self._pred, *self._carried.starts(), *self._fixed_point.variable_starts(), *late.starts()]
            of_exit = emit_while("while", starts, region, inputs, outputs, asking, asked, asked[0])
        of_exit = self._with_shared_identity(outputs, of_exit)
        count = leaves + 1 + len(self._fixed_point.variables)
        self._fixed_point.assign_variables(of_exit[leaves + 1 : count])
        lates = of_exit[count:]
        if self._iterable is not None:
            self._iterable.finish()
        names = self._values_after(of_exit[1 : leaves + 1], lasts, lates, late.rebuild(turned, lates))
        exit_values = {
            kind: {name: late.rebuild(x, lates) for name, x in of_exit.items()} for kind, of_exit in left.items()
        }
        self._after(names, late.rebuild(broke, lates), late.rebuild(code, lates), exit_values)

    def _after(self, names: Values, broke: object, code: Tensor, left: dict[ExitKind, Values]) -> None:
        """Go on after the loop."""
        loop, parent = self._loop, self._parent
        loop.staged, loop.is_done = None, True
        bundle = Exits({NORMAL: names, **left})
        if left:
            bundle.code = code
        if left and self._is_endless and not isinstance(broke, Tensor):  # nothing else ends it
            del bundle.by_kind[NORMAL]
            bundle.code = code if len(left) > 1 else None
        if isinstance(broke, Tensor) and loop.has_else:
            kind = loop.kind("_breaks", "break")
            bundle.by_kind[kind] = names
            left_by = elementwise.where(broke, literal_code(kind), code)  # where it returned, ``broke`` says nothing
            bundle.code = elementwise.where(elementwise.equal(code, NORMAL.number), left_by, code)
        if bundle.always_falls_through:
            loop.offer(names)
            if parent.is_untraced and parent.is_function_body:
                active.scope = parent.parent
        else:
            loop.before = loop.path
            loop.path = active.scope = BranchScope(self._frame, parent, None)
            loop.offer(loop.path.resume_with(bundle))
