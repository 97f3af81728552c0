"""ConcreteFunction: one signature of a Function, traced and compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from hybridflow.autograph.runtime import tensor_range
from hybridflow.compiler.ir import extents
from hybridflow.compiler.ir.dtypes import float64, int64
from hybridflow.compiler.ir.extents import LEAST, Dim, Extent, affine, substituted, value_at
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import devices, interop, layer_context, pytree
from hybridflow.core.call_binding import Binder
from hybridflow.core.context import current, tracing
from hybridflow.core.donated_tensor import BufferDonation
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.variable import Variable
from hybridflow.eager import placement
from hybridflow.eager.operands import as_tensor
from hybridflow.effects.runtime_text import RuntimeText, is_runtime_value
from hybridflow.errors import (
    ArgumentTypeError,
    ConcretizationError,
    DTypeError,
    HybridflowError,
    ShapeError,
    StringsWantedError,
    SymbolicExtentError,
    TraceError,
    user_location,
)
from hybridflow.guards.attribute_writes import AttributeWrites
from hybridflow.jit.argument_aliasing import AliasRule
from hybridflow.jit.cache_key import (
    IdentityKey,
    Key,
    LeafKey,
    NumberKey,
    SameKey,
    TensorKey,
    check_names,
    is_tensor_like,
    leaf_key,
)
from hybridflow.jit.concrete_arguments import ConcreteArguments
from hybridflow.jit.donation import ArgumentPath, Donation, leaves_of, matched
from hybridflow.jit.recursion_error import endless
from hybridflow.jit.tensor_spec import TensorSpec, closed_spec
from hybridflow.jit.value_key import value_key
from hybridflow.tracing.compiled_trace import CompiledTrace
from hybridflow.tracing.shape_env import RestartTrace, ShapeEnv, conditions_hold
from hybridflow.tracing.symbolic_float import FLOAT, SymbolicFloat
from hybridflow.tracing.symbolic_number import number_of
from hybridflow.tracing.symbolic_tensor import SymbolicTensor
from hybridflow.tracing.trace import State, Trace

# Where a leaf of the result comes from: a program output, an argument handed through, a number that the arguments'
# extents say, a Python float that the program computes, or a value that never changes.
RESULT, ARGUMENT, EXTENT, NUMBER, VALUE = range(5)


class ConcreteFunction:
    """A traced and compiled signature.  Call it with arguments of exactly that signature; for open extents that are 0
    or 1, and dicts in another order, another trace of the same function runs.

    ``graph`` is what was traced; ``variables`` are those it reads or assigns; ``plan`` says where each leaf of the
    result comes from, and ``results`` how they are nested; ``setting`` sets attributes, where the body does: then the
    results are what it takes.  ``donation`` is what calls give up, None if nothing.  ``conditions`` are extents that
    are 0 or more in all calls that it serves, ``aliases`` says when it matters which arguments are one tensor, and
    ``holds_objects`` whether it keeps objects of the user's alive: results that are not tensors, custom gradients.
    ``trace_ms`` and ``compile_ms`` are what it cost to make.
    """

    __slots__ = (
        "__weakref__",
        "_binder",
        "aliases",
        "compile_ms",
        "conditions",
        "donation",
        "graph",
        "holds_objects",
        "is_open",
        "key",
        "known",
        "name",
        "plan",
        "results",
        "setting",
        "specialise",
        "staged",
        "tensor_leaves",
        "trace_ms",
    )

    def __init__(
        self,
        binder: Binder,
        key: Key,
        leaves: Sequence[Any],
        staged: CompiledTrace,
        plan: list[tuple[int, Any]],
        results: pytree.Structure,
        setting: AttributeWrites | None = None,
        donation: Donation | None = None,
    ) -> None:
        self.name, self.donation = binder.name, donation
        self._binder, self.key, self.staged = binder, key, staged
        self.known = ConcreteArguments(binder, key, leaves)
        self.plan, self.results, self.setting = plan, results, setting
        self.tensor_leaves = tuple(k for k, leaf in enumerate(key.leaves) if isinstance(leaf, (TensorKey, NumberKey)))
        trace = staged.trace
        self.graph: Graph = staged.graph
        self.conditions: tuple[Extent, ...] = tuple(trace.assumptions.conditions)
        self.is_open = any(map(_is_open, key.leaves))
        self.aliases = AliasRule(trace.depends_on_identity, frozenset(map(id, self.captures)), self.is_open)
        self.holds_objects = bool(trace.custom_vjps or trace.functions) or any(
            kind == VALUE and value_key(value) is None for kind, value in plan
        )
        self.trace_ms = self.compile_ms = 0.0
        # The concrete function for open extents that are 0 or 1, or dicts in another order: set by the function.
        self.specialise: Callable[..., ConcreteFunction] | None = None

    @property
    def executable(self) -> Any:
        """What calls run, where no tape is told of them, on the device that the code names, or on the CPU."""
        return self.staged.compile(giving=self.donation is not None)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(source.variable for source in self.staged.sources if isinstance(source, State))

    @property
    def captures(self) -> tuple[Tensor, ...]:
        """The tensors from outside that the program reads."""
        return tuple(source for source in self.staged.sources if isinstance(source, Tensor))

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """The path and the type of each argument leaf."""
        return list(zip(self._binder.paths(self.key.structure), map(str, self.key.leaves)))

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and the keyword arguments: a TensorSpec for a tensor, the value of what is none.

        >>> scaled = hf.function(lambda x, n: n * x)
        >>> scaled.get_concrete_function(hf.TensorSpec([None]), 3).structured_input_signature
        ((TensorSpec((None,), 'float32', name='x'), 3), {})
        """
        return self.known.signature

    @property
    def structured_outputs(self) -> Any:
        """The result with a TensorSpec for each tensor and number that the program computes.

        >>> double = hf.function(lambda x: {"y": 2 * x})
        >>> double.get_concrete_function(hf.TensorSpec([None, 3])).structured_outputs
        {'y': TensorSpec((None, 3), 'float32')}
        """
        result = pytree.unflatten(self.results, [self._result_spec(*entry) for entry in self.plan])
        return result if self.setting is None else result[0]  # what it sets is no result of it

    def _result_spec(self, kind: int, value: Any) -> Any:
        if kind == RESULT:
            return closed_spec(self.graph.outputs[value].type)
        if kind == ARGUMENT:
            key = self.key.leaves[self.tensor_leaves[value]]
            return TensorSpec(key.shape, key.dtype)
        if kind in (EXTENT, NUMBER):
            return TensorSpec((), int64 if kind == EXTENT else float64)
        return value

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether argument leaves of its key have extents that it was traced for."""
        if not self.is_open:
            return True
        tensors = [leaves[k] for k in self.tensor_leaves]
        if not all(map(_has_value, tensors)):  # a TensorSpec: any trace that takes nothing for granted will do
            return self.staged.trace.assumptions.examples is None or not self.conditions
        pairs = self._pairs(tensors)
        sizes = {name: size for name, size in self._sizes(tensors).items() if isinstance(size, int)}
        if any(size < LEAST for size in sizes.values()):
            return False
        try:
            return all(value_at(e, sizes) == n for n, e in pairs) and conditions_hold(self.conditions, sizes)
        except (KeyError, ZeroDivisionError):  # an argument without a value, a trace without examples; n // 0
            return False

    def _pairs(self, tensors: Sequence[Any]) -> list[tuple[Extent, Extent]]:
        """The extents of tensor arguments, each with that for which the trace was made."""
        types = [node.type.shape for node in self.graph.arguments]
        return [pair for x, wanted in zip(tensors, types) for pair in zip(_shape_of(x), wanted)]

    def _sizes(self, tensors: Sequence[Any]) -> dict[str, Extent]:
        """What the symbols are, as far as the tensor arguments say; extents where a trace goes on."""
        sizes: dict[str, Extent] = {}
        for actual, extent in self._pairs(tensors):
            source = affine(extent)
            if source is not None:
                sizes.setdefault(source[0], (actual - source[2]) // source[1])
        return sizes

    def call_leaves(self, leaves: Sequence[Any]) -> Any:
        """Run with argument leaves that are known to fit."""
        return self.call_tensors(self._tensors([leaves[k] for k in self.tensor_leaves]))

    def call_tensors(self, arguments: Sequence[Tensor]) -> Any:
        """Run with the tensors among argument leaves that are known to fit."""
        if self.donation is not None and current.trace is None and not current.tapes:
            return self._give(self.donation, arguments)
        return self.assemble(self.staged(arguments), arguments)

    def inline_leaves(self, leaves: Sequence[Any]) -> Any:
        """The same op by op: into the trace that is going on, or eagerly where none is."""
        tensors = self._tensors([leaves[k] for k in self.tensor_leaves])
        return self.assemble(self.staged.inline(tensors), tensors)

    def _give(self, donation: Donation, arguments: Sequence[Tensor]) -> Any:
        """Run with tensors of which some are given up.  Where a trace or a tape is told of the call, nothing is."""
        giving = BufferDonation([arguments[k] for k in donation.arguments], self.name, user_location())
        kept = [x._stand_in() if k in donation.handed else x for k, x in enumerate(arguments)]
        outputs, shared = self.staged.run_donating(kept, giving)
        donation.warn(self.name, arguments, shared, giving.where)
        return self.assemble(outputs, kept)

    def _tensors(self, leaves: list[Any]) -> list[Tensor]:
        """Argument leaves as tensors; arrays go where the tensors among them lie."""
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        if len(tensors) == len(leaves):
            return tensors
        place = devices.scope() if current.trace else placement.device_to_meet_on(self.name, tensors)
        with devices.placing(place):
            result = [leaf if isinstance(leaf, Tensor) else _tensor(leaf, self.name) for leaf in leaves]
        if place != devices.CPU and current.trace is None:
            for (name, _), leaf, tensor in zip(self.arguments, leaves, result):
                if tensor is not leaf:
                    self.staged.note_move(place, name, tensor, each_call=True)
        return result

    def timed(self, leaves: Sequence[Any]) -> tuple[Any, list[np.ndarray], tuple[int, ...]]:
        """What times a call with argument leaves that are known to fit: see ``CompiledTrace.timed``."""
        return self.staged.timed(self._tensors([leaves[k] for k in self.tensor_leaves]))

    def compile_for(self, leaves: Sequence[Any]) -> None:
        """Compile for the device on which a call with these argument leaves runs."""
        arguments = [leaves[k] for k in self.tensor_leaves]
        device = self.staged.device_for([leaf if isinstance(leaf, Tensor) else None for leaf in arguments])
        self.staged.compile(device, giving=self.donation is not None and not current.tapes)

    def assemble(self, outputs: Sequence[Tensor], arguments: Sequence[Tensor] = ()) -> Any:
        """The result of the Python function, from the program's outputs and the tensor arguments."""
        leaves = []
        for kind, value in self.plan:
            if kind == RESULT:
                leaves.append(outputs[value])
            elif kind == ARGUMENT:
                leaves.append(arguments[value])
            elif kind == EXTENT:
                leaves.append(self._extent(value, arguments))
            elif kind == NUMBER:
                leaves.append(number_of(outputs[value]) if current.trace else float(outputs[value]))
            else:
                # An array could be changed by the caller, who must not see that change in the next result.
                leaves.append(value.copy() if isinstance(value, np.ndarray) else value)
        result = pytree.unflatten(self.results, leaves)
        return result if self.setting is None else self.setting(result)

    def _extent(self, extent: Dim, arguments: Sequence[Tensor]) -> Extent:
        """A number of the result; an extent of the trace that goes on where that calls this function."""
        return substituted(extent, self._sizes(arguments))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run; what is not a tensor may be left out, see ``ConcreteArguments``.

        Raises ShapeError, DTypeError or ArgumentTypeError for arguments of another signature.
        """
        structure, keys = self.key.structure, self.key.leaves
        leaves, structure_of_call = pytree.flatten(interop.adopted(self.known.bind(args, kwargs), self.name))
        paths = self._binder.paths(structure)
        for path, leaf, key in zip(paths, leaves, keys):
            self._check(path, leaf, key, leaves)
        check_names(self.name, paths, keys, leaves)
        return self._serving(leaves, structure_of_call).call_leaves(leaves)

    def _serving(self, leaves: Sequence[Any], structure: pytree.Structure) -> ConcreteFunction:
        """The concrete function for leaves that fit: this one, or another of the same function."""
        keys = tuple(k.for_shape(x.shape) if isinstance(k, TensorKey) else k for k, x in zip(self.key.leaves, leaves))
        exact = Key(structure, keys)
        key = self.aliases.key(exact, leaves) or exact
        traced = any(isinstance(leaf, SymbolicTensor) for leaf in leaves)  # then the trace that goes on sees whether
        if key == self.key and (traced or self.fits(leaves)):
            return self
        if self.specialise is None:
            if traced or self.fits(leaves):
                return self
            raise ShapeError(self.name, f"it was traced for extents where {self._conditions_text()}.")
        known = [None if isinstance(leaf, SymbolicTensor) else leaf for leaf in leaves]
        return self.specialise(known, key)

    def _conditions_text(self) -> str:
        return " and ".join(f"{condition} is not negative" for condition in self.conditions) or "others are equal"

    def _check(self, path: str, leaf: Any, key: Any, leaves: Sequence[Any]) -> None:
        if isinstance(key, SameKey) or (isinstance(key, IdentityKey) and isinstance(leaf, Tensor)):
            one = leaves[key.position] if isinstance(key, SameKey) else key.reference()
            if leaf is not one:
                raise ArgumentTypeError(self.name, f"{path} is another tensor; this concrete function takes {key}.")
        elif isinstance(key, TensorKey) and is_tensor_like(leaf):
            if leaf.dtype != key.dtype:
                raise DTypeError(self.name, f"{path} has dtype {leaf.dtype}; this concrete function takes {key}.")
            if not key.accepts_shape(leaf.shape):
                actual = TensorType(tuple(leaf.shape), leaf.dtype)
                raise ShapeError(self.name, f"{path} is {actual}; this concrete function takes {key}.")
        elif isinstance(key, NumberKey):
            if not key.accepts(leaf):
                raise ArgumentTypeError(self.name, f"{path} is {leaf!r}; this concrete function takes {key}.")
        elif isinstance(leaf, SymbolicTensor) or leaf_key(leaf, path, self.name) != key:
            raise ArgumentTypeError(self.name, f"{path} is {leaf!r}; this concrete function takes {key}.")

    def __repr__(self) -> str:
        arguments = ", ".join(f"{path}: {type}" for path, type in self.arguments)
        outputs = ", ".join(str(node.type) for node in self.graph.outputs)
        return f"<concrete function {self.name}({arguments}) -> {outputs or 'no tensors'}>"


def _is_open(key: LeafKey) -> bool:
    return key.is_open if isinstance(key, TensorKey) else isinstance(key, NumberKey) and key.kind is int


def _has_value(leaf: Any) -> bool:
    return is_tensor_like(leaf) or type(leaf) in (int, float)


def _tensor(leaf: Any, name: str) -> Tensor:
    """A number as a tensor: a float in its own precision, an int as an empty array that has it as its extent."""
    if type(leaf) is int:
        return wrap(devices.placed(np.empty((leaf, 0), np.bool_)))
    return as_tensor(leaf, name, FLOAT.dtype if type(leaf) is float else None)


def _shape_of(leaf: Any) -> tuple[Any, ...]:
    """The shape of what ``_tensor`` makes of an argument."""
    return (leaf, 0) if type(leaf) is int else np.shape(leaf) if type(leaf) is float else tuple(leaf.shape)


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

    Once is enough, unless what the code asks of its symbolic extents says more of them (see ``tracing.assumptions``).
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
        assumptions = assumptions.restarted()


class NumbersWantedError(Exception):
    """A trace was given up, as its code needs numbers: ``places`` says which leaves, with the axis, and where."""

    def __init__(self, places: dict[tuple[int, int], str | None]) -> None:
        self.leaves = places


class RaisedError(Exception):
    """The code that is traced raised an ``error`` of its own behind effects and checks that no program will run now, or
    with values in it that are not known while tracing: only a run of the code itself says what a call raises.
    ``reason`` is what it had done to objects that outlive the call, which they do not show any more."""

    def __init__(self, error: BaseException, reason: Any = None) -> None:
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
    trace: Trace, leaf: Any, arguments: Sequence[Any], positions: Mapping[Node, int], outputs: dict[Node, int]
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
