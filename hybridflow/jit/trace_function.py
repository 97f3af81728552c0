"""Tracing: one run of a function on symbolic tensors, for a signature, and the compilation of what was recorded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import CodeType, TracebackType
from typing import Any

import numpy as np

from hybridflow.autograph.runtime import tensor_range
from hybridflow.autograph.runtime.conditional import Conditional
from hybridflow.compiler.ir import extents
from hybridflow.compiler.ir.extents import Dim, Extent
from hybridflow.compiler.ir.graph import Node, Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import layer_context, pytree
from hybridflow.core.call_binding import Binder
from hybridflow.core.context import current, tracing
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.effects.runtime_text import RuntimeText, is_runtime_value
from hybridflow.errors import (
    ConcretizationError,
    HybridflowError,
    ShapeError,
    StringsWantedError,
    SymbolicExtentError,
    TraceError,
    is_internal,
)
from hybridflow.guards.attribute_writes import AttributeWrites
from hybridflow.jit.cache_key import (
    Key,
    NumberKey,
    SameKey,
    TensorKey,
    is_tensor_like,
)
from hybridflow.jit.concrete_function import ARGUMENT, EXTENT, NUMBER, RESULT, VALUE, ConcreteFunction
from hybridflow.jit.donation import ArgumentPath, Donation, leaves_of, matched
from hybridflow.tracing.compiled_trace import CompiledTrace
from hybridflow.tracing.shape_env import RestartTrace, ShapeEnv
from hybridflow.tracing.symbolic_float import FLOAT, SymbolicFloat
from hybridflow.tracing.symbolic_tensor import SymbolicTensor
from hybridflow.tracing.trace import Trace


class _Symbols:
    """The symbols of the arguments' open extents: named as the specs name them, else after the argument.

    ``paths`` say where each was read first, ``places`` of which leaf, and axis of that, ``examples`` what it is in the
    call, None if an argument has no extents.  ``numbers`` are the symbols of the leaves that are any number.
    """

    def __init__(self, key: Key, paths: Sequence[str], leaves: Sequence[Any]) -> None:
        self.paths: dict[str, str] = {}
        self.leaves: dict[str, tuple[int, int]] = {}
        self.numbers: dict[int, str] = {}
        self.shapes: list[tuple[int | str, ...]] = []
        self.examples: dict[str, int] | None = {}
        self._taken = {e for k in key.leaves if isinstance(k, TensorKey) for e in k.shape if isinstance(e, str)}
        for position, (path, leaf, key_here) in enumerate(zip(paths, leaves, key.leaves)):
            if isinstance(key_here, TensorKey):
                self._add(key_here, path, leaf, position)
            elif isinstance(key_here, NumberKey):
                self._add_number(key_here, path, leaf, position)

    def leaves_of(self, name: str, values: Mapping[str, Extent]) -> list[tuple[int, int]]:
        """Where a symbol was read; for one that an extent turned out to be a multiple of, where that was."""
        if name in self.leaves:
            return [self.leaves[name]]
        return [place for node, place in self.leaves.items() if name in extents.symbols(values.get(node, 0))]

    def _add_number(self, key: NumberKey, path: str, value: float, position: int) -> None:
        name = self.numbers[position] = self._name(path)
        self.paths[name], self.leaves[name] = path, (position, 0)
        if key.kind is float:
            self.shapes.append(())
            return
        assert isinstance(value, int)
        if self.examples is not None:
            self.examples[name] = value
        self.shapes.append((name, 0))

    def _add(self, key: TensorKey, path: str, leaf: Any, position: int) -> None:
        actual = leaf.shape if is_tensor_like(leaf) else ()
        shape: list[int | str] = []
        for axis, extent in enumerate(key.shape):
            if isinstance(extent, int):
                shape.append(extent)
            else:
                name = self._name(path, axis) if extent is None else extent
                shape.append(name)
                self.paths.setdefault(name, f"{path}.shape[{axis}]")
                self.leaves.setdefault(name, (position, axis))
                if len(actual) == len(key.shape) and isinstance(actual[axis], int) and self.examples is not None:
                    self.examples.setdefault(name, actual[axis])
                else:
                    self.examples = None
        self.shapes.append(tuple(shape))

    def _name(self, path: str, axis: int | None = None) -> str:
        name = re.sub(r"\W+", "_", path).strip("_") + ("" if axis is None else str(axis))
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


def trace_signature(
    python: Callable[..., Any],
    binder: Binder,
    key: Key,
    leaves: Sequence[Any],
    *,
    gives_up: bool = False,
    **how: Any,
) -> tuple[ConcreteFunction, bool]:
    """Run ``python`` on symbolic tensors.  Also says whether it made variables, and so must be traced again.

    With ``fail_on_specialization`` it raises NumbersWantedError where the code needs the value of an open extent, or
    of a number; and always RaisedError where no program can raise what the code does.

    Once is enough, unless what the code asks of its symbolic extents says more of them (see ``tracing.shape_env``).
    """
    symbols = _Symbols(key, binder.paths(key.structure), leaves)
    assumptions = ShapeEnv(symbols.examples, symbols.paths, gives_up)
    while True:
        try:
            traced = _run(python, binder, key, leaves, symbols, assumptions, **how)
        except RestartTrace:
            pass
        except RaisedError as raised:
            if isinstance(raised.error, ShapeError):
                raised.error = _explained(raised.error, assumptions)
            raise
        except ShapeError as error:
            raise _explained(error, assumptions)  # noqa: B904  # the very error, which says more now
        else:
            if not assumptions.must_restart:  # or somebody caught that
                return traced
        finally:
            assumptions.is_closed = True  # whatever is left of the run
        if assumptions.specializations:
            wanted, values = assumptions.specializations.items(), assumptions.values
            places = {place: where for name, where in wanted for place in symbols.leaves_of(name, values)}
            assert places, f"{python} needs numbers that no argument gives: {assumptions.specializations}"
            raise NumbersWantedError(places)
        assumptions = assumptions.restart()


def compile_for(concrete: ConcreteFunction, leaves: Sequence[Any]) -> None:
    """Compile what was traced for the device on which a call with these argument leaves runs."""
    staged, arguments = concrete.staged, [leaves[k] for k in concrete.tensor_leaves]
    device = staged.device_for([leaf if isinstance(leaf, Tensor) else None for leaf in arguments])
    staged.compile(device, giving=concrete.donation is not None and not current.tapes)


class NumbersWantedError(Exception):
    """A trace was given up, as its code needs numbers: ``places`` says which leaves, with the axis, and where."""

    def __init__(self, places: dict[tuple[int, int], str | None]) -> None:
        self.leaves = places


class RaisedError(Exception):
    """The code that is traced raised an ``error`` of its own behind effects and checks that no program will run now; or
    with values in it that are not known while tracing: only a run of the code itself says what a call raises.
    ``reason`` is what it had done to objects that outlive the call, which they do not show any more."""

    def __init__(self, error: BaseException, reason: object = None) -> None:
        super().__init__(str(error))
        self.error, self.reason = error, reason


class EagerOnlyError(RaisedError):
    """What the code that was traced does no program can do, as the ``error`` says: a run of the code itself can."""


def _undo(trace: Trace) -> None:
    """The code begins anew: with objects that outlive the call as they were before, where that can be."""
    if trace.guard_builder is not None and trace.guard_builder.can_rerun:
        trace.guard_builder.undo()


def _undone(error: BaseException, trace: Trace) -> RaisedError | None:
    """After the code that is traced has failed with an ``error``: see to it that objects which outlive the call are as
    they were before, where the code has to run again; None where it has not, or they cannot be."""
    outside = trace.guard_builder
    needs_values = isinstance(error, ConcretizationError) or _may_not_be_raised(error, trace)
    if outside is None or not isinstance(error, Exception):
        return None
    if not (outside.can_rerun if needs_values else outside.can_undo):
        return None
    reason = outside.first_effect() if outside.can_undo else None
    outside.undo()
    if needs_values:
        return EagerOnlyError(error, reason)
    if not isinstance(error, TraceError):
        return RaisedError(error, reason)
    return None if error.stage == "Variable" else EagerOnlyError(error, reason)  # each call would make variables


def _may_not_be_raised(error: BaseException, trace: Trace) -> bool:
    """Whether a tensor decides if the code that raised the error runs."""
    return error is trace.conditional_error and not isinstance(error, (TraceError, SymbolicExtentError, RestartTrace))


def _comes_after_effects(error: BaseException, trace: Trace) -> bool:
    if isinstance(error, (HybridflowError, RestartTrace, KeyboardInterrupt)):
        return False
    if trace.functions or any(node.may_raise or node.effect.name == "ORDERED" for node in trace.nodes):
        return True
    return any(map(is_runtime_value, (*error.args, *getattr(error, "__dict__", {}).values())))


def _explained(error: ShapeError, assumptions: ShapeEnv) -> ShapeError:
    """The error, with what the symbols in its text were."""
    text = str(error)
    named = [name for name in assumptions.paths if re.search(rf"\b{re.escape(name)}\b", text)]
    if named:
        error.args = (f"{text}  [{', '.join(assumptions.where(Dim(name)) for name in named)}]",)
    return error


def _run(
    python: Callable[..., Any],
    binder: Binder,
    key: Key,
    leaves: Sequence[Any],
    symbols: _Symbols,
    assumptions: ShapeEnv,
    *,
    fastmath: bool,
    donated: Sequence[ArgumentPath] = (),
    may_create_variables: bool,
    observing: Callable[[Trace, Sequence[Any]], AbstractContextManager[None]],
) -> tuple[ConcreteFunction, bool]:
    """Run ``python`` once.

    ``observing`` surrounds the run: it is given the trace and what the parameters are bound to.
    """
    structure, keys = key.structure, key.leaves
    borrowed = [leaf for leaf in leaves if isinstance(leaf, Variable)]
    trace = Trace(binder.name, borrowed=borrowed, may_create_variables=may_create_variables, assumptions=assumptions)
    stand_ins: list[Any] = []
    shapes = iter(symbols.shapes)
    for position, (path, leaf, leaf_type) in enumerate(zip(binder.paths(structure), leaves, keys)):
        if isinstance(leaf_type, NumberKey):
            shape = tuple(assumptions.stands_for(e) if isinstance(e, str) else e for e in next(shapes))
            if leaf_type.kind is int:
                trace.argument(TensorType(shape, np.dtype(np.bool_)), path)
                stand_ins.append(shape[0])
            else:
                name = symbols.numbers[position]
                stand_ins.append(SymbolicFloat(trace.argument(FLOAT, path), leaf, frozenset((name,)), assumptions))
        elif isinstance(leaf_type, TensorKey):
            shape = tuple(assumptions.stands_for(e) if isinstance(e, str) else e for e in next(shapes))
            stand_ins.append(trace.argument(TensorType(shape, leaf_type.dtype), path, leaf_type.is_weak))
        elif isinstance(leaf_type, SameKey):
            stand_ins.append(stand_ins[leaf_type.position])
        else:
            stand_ins.append(leaf)
    values = pytree.unflatten(structure, stand_ins)
    args, kwargs = binder.split(values)
    token = layer_context.enter_function()
    try:
        with tracing(trace), observing(trace, values):
            result = tensor_range.materialize(python(*args, **kwargs))
            if trace.guard_builder is not None:
                tensor_range.check_kept(trace.guard_builder.written_values())
            swallowed = trace.conditional_error
            if swallowed is not None and _may_not_be_raised(swallowed, trace):
                raise swallowed  # somebody caught it, and would in each call
    except RecursionError as error:
        deep = endless(binder.name, error)
        raise _undone(deep, trace) or deep from None
    except BaseException as error:
        if trace.sizes_wanted or isinstance(error, RestartTrace):
            _undo(trace)
            if trace.sizes_wanted:
                raise trace.sizes_wanted from None
            raise
        fault = _undone(error, trace)
        if fault is not None:
            raise fault from None
        if _comes_after_effects(error, trace):
            raise RaisedError(error) from None
        raise
    finally:
        layer_context.leave_function(token)
    if assumptions.must_restart or trace.sizes_wanted:
        _undo(trace)
    if trace.sizes_wanted:
        raise trace.sizes_wanted
    # Where variables were made, the next run finds what was set beside them.
    left = [] if trace.guard_builder is None or trace.created_variables else trace.guard_builder.collect_outputs(result)
    setting = AttributeWrites([(place.reference(), place.name) for place, _ in left]) if left else None
    if left:
        result = (result, *(value for _, value in left))
    arguments = [node for node in trace.inputs if node.attrs["role"] is Role.ARGUMENT]
    inputs = [k for k in keys if isinstance(k, (TensorKey, NumberKey))]
    positions = {
        node: k for k, (node, leaf_key) in enumerate(zip(arguments, inputs)) if isinstance(leaf_key, TensorKey)
    }
    outputs: dict[Node, int] = {}
    result_leaves, results = pytree.flatten(result)
    if trace.has_codes and not trace.keeps_codes:
        _undo(trace)
        raise StringsWantedError
    try:
        plan = [_source(trace, leaf, leaves, positions, outputs) for leaf in result_leaves]
    except ConcretizationError as error:
        fault = _undone(error, trace)
        if fault is None:
            raise
        raise fault from None
    staged = CompiledTrace(trace, tuple(outputs), fastmath)
    donation = None
    if donated:
        handed = {value for kind, value in plan if kind == ARGUMENT}
        donation = _donation(binder, key, donated, handed, staged)
    return ConcreteFunction(binder, key, leaves, staged, plan, results, setting, donation), trace.created_variables


def _source(
    trace: Trace, leaf: object, arguments: Sequence[Any], positions: Mapping[Node, int], outputs: dict[Node, int]
) -> tuple[int, Any]:
    """Where a leaf of the result comes from; nodes that the program has to return are added to its ``outputs``."""
    if isinstance(leaf, RuntimeText):
        leaf = leaf.decided()
    if isinstance(leaf, SymbolicFloat):
        return NUMBER, outputs.setdefault(trace.node_of(leaf.tensor), len(outputs))
    if not isinstance(leaf, SymbolicTensor):
        _check_result(trace, leaf, arguments)
        return EXTENT if isinstance(leaf, Dim) else VALUE, leaf
    node = trace.node_of(leaf)
    if node in positions:
        return ARGUMENT, positions[node]
    return RESULT, outputs.setdefault(node, len(outputs))


def _donation(
    binder: Binder, key: Key, donated: Sequence[ArgumentPath], handed: set[int], staged: CompiledTrace
) -> Donation | None:
    """What calls of a signature give up: tensors among the leaves, in the order of the program's arguments."""
    leaves = leaves_of(binder, key.structure, donated)
    leaves |= {leaf.position for k, leaf in enumerate(key.leaves) if k in leaves and isinstance(leaf, SameKey)}
    tensors = [k for k, leaf in enumerate(key.leaves) if isinstance(leaf, (TensorKey, NumberKey))]
    donated_inputs = [n for n, k in enumerate(tensors) if k in leaves and isinstance(key.leaves[k], TensorKey)]
    if not donated_inputs:
        return None
    inputs = [i for i, node in enumerate(staged.graph.inputs) if node.attrs["role"] is Role.ARGUMENT]
    staged.donated = matched([inputs[n] for n in donated_inputs if n not in handed], staged.graph)
    paths = binder.paths(key.structure)
    return Donation(
        donated_inputs,
        [inputs[n] for n in donated_inputs],
        [paths[tensors[n]] for n in donated_inputs],
        handed,
        staged.donated,
    )


def _check_result(trace: Trace, value: Any, arguments: Sequence[Any]) -> None:
    """Raise TraceError for an iterator that the trace made: it would be taken from once, and after the trace; and for
    what means something to a trace alone."""
    if hasattr(type(value), "why_no_result"):
        raise value.why_no_result()
    if not isinstance(value, Iterator) or any(value is argument for argument in arguments):
        return
    if trace.guard_builder is None or trace.guard_builder.slot_of(value) is None:
        raise TraceError(
            "return",
            f"{trace.name} returns a {type(value).__name__}, whose items would be taken after the call, and once for "
            "all calls. Return them in a list: list(...).",
        )


_SHOWN = 4  # functions of a circle


def endless(name: str, error: RecursionError) -> TraceError:
    """What to say of a trace that went deeper than Python goes: who calls whom, at the user's line."""
    calls = _calls(error.__traceback__)
    if not calls:
        return TraceError(name, f"{error} while it was traced.")
    (again, times), *_ = Counter(calls).most_common(1)
    first = calls.index(again)
    following = calls.index(again, first + 1) if times > 1 else len(calls)
    circle = [code.co_qualname.rpartition("<locals>.")[2] for code, _ in calls[first:following]]
    names = list(dict.fromkeys(circle))
    if len(names) == 1:
        what = f"{names[0]} calls itself"
    else:
        more = " → ..." if len(names) > _SHOWN else ""
        what = f"{' → '.join(names[:_SHOWN])}{more} → {names[0]} call each other"
    kind = ConcretizationError if _is_in_branch(error.__traceback__) else TraceError
    return kind(
        name,
        f"{what} while this is traced, deeper than Python goes. Both sides of an if whose condition is a tensor are "
        "traced, so that no tensor ends it: write a while loop, or let Python numbers end it. What does end, but "
        "deeper, needs sys.setrecursionlimit.",
        f"{again[0].co_filename}:{again[1]}",
    )


def _is_in_branch(traceback: TracebackType | None) -> bool:
    """Whether code of the user's had come to an ``if`` whose condition is a tensor, which may end the calls eagerly."""
    while traceback is not None:
        frame = traceback.tb_frame
        is_users = not is_internal(frame.f_code.co_filename)
        if is_users and any(type(value) is Conditional for value in frame.f_locals.values()):
            return True
        traceback = traceback.tb_next
    return False


def _calls(traceback: TracebackType | None) -> list[tuple[CodeType, int]]:
    """The user's functions, outermost first, and the lines in which they called on."""
    result = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_internal(code.co_filename):
            result.append((code, traceback.tb_lineno or 0))
        traceback = traceback.tb_next
    return result
