"""ConcreteFunction: one signature of a Function, traced and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.dtypes import float64, int64
from hybridflow.compiler.ir.extents import LEAST, Dim, Extent, affine, substituted, value_at
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.types import TensorType
from hybridflow.core import devices, interop, pytree
from hybridflow.core.call_binding import Binder
from hybridflow.core.context import current
from hybridflow.core.donated_tensor import BufferDonation
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.core.variable import Variable
from hybridflow.eager import placement
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import (
    ArgumentTypeError,
    DTypeError,
    ShapeError,
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
from hybridflow.jit.donation import Donation
from hybridflow.jit.tensor_spec import TensorSpec, closed_spec
from hybridflow.jit.value_key import value_key
from hybridflow.tracing.compiled_trace import CompiledTrace
from hybridflow.tracing.shape_env import conditions_hold
from hybridflow.tracing.symbolic_float import FLOAT
from hybridflow.tracing.symbolic_number import number_of
from hybridflow.tracing.symbolic_tensor import SymbolicTensor
from hybridflow.tracing.trace import State

# Where a leaf of the result comes from: a program output, an argument handed through, a number that the arguments'
# extents say, a Python float that the program computes, or a value that never changes.
RESULT, ARGUMENT, EXTENT, NUMBER, VALUE = range(5)


class ConcreteFunction:
    """A traced and compiled signature.  Call it with arguments of exactly that signature; for open extents that are 0
    or 1, and dicts in another order, another trace of the same function runs.

    ``graph`` is what was traced; ``variables`` are those it reads or assigns; ``plan`` says where each leaf of the
    result comes from, and ``results`` how they are nested; ``setting`` sets attributes, where the body does: then the
    results are what it takes.  ``donation`` is what calls give up, None if nothing.  ``conditions`` are extents that
    are 0 or more in all calls that it serves; ``aliases`` says when it matters which arguments are one tensor, and
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

    def __call__(self, *args: object, **kwargs: object) -> Any:
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


def _has_value(leaf: object) -> bool:
    return is_tensor_like(leaf) or type(leaf) in (int, float)


def _tensor(leaf: Any, name: str) -> Tensor:
    """A number as a tensor: a float in its own precision, an int as an empty array that has it as its extent."""
    if type(leaf) is int:
        return wrap(devices.placed(np.empty((leaf, 0), np.bool_)))
    return as_tensor(leaf, name, FLOAT.dtype if type(leaf) is float else None)


def _shape_of(leaf: Any) -> tuple[Any, ...]:
    """The shape of what ``_tensor`` makes of an argument."""
    return (leaf, 0) if type(leaf) is int else np.shape(leaf) if type(leaf) is float else tuple(leaf.shape)
