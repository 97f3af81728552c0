"""Native calls: which calls of a Function may run without a Python frame, and what says so to native code."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.ir.extents import LEAST, symbols
from hybridflow.compiler.ir.graph import Role
from hybridflow.compiler.program import Slot
from hybridflow.core import devices, pytree
from hybridflow.core.call_binding import Binder
from hybridflow.core.context import current
from hybridflow.core.tensor import Tensor
from hybridflow.errors import of_user, short_location
from hybridflow.jit.cache_key import IdentityKey, NumberKey, SameKey, TensorKey
from hybridflow.jit.concrete_function import ARGUMENT, EXTENT, NUMBER, RESULT, ConcreteFunction
from hybridflow.jit.value_key import ValueKey
from hybridflow.runtime.calls import argument_specs as native, native_call
from hybridflow.runtime.calls.result_steps import Make
from hybridflow.tracing.trace import State

if TYPE_CHECKING:
    from hybridflow.runtime.calls.guard_program import GuardProgram

MAX_COMPARED = 1024  # pairs of tensors, in calls of programs that tell them apart


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Why calls go by way of Python, and what would let native code answer them, if anything would.  ``is_wanted``:
    whether the user asked for what makes it so."""

    reason: str
    remedy: str | None = None
    is_wanted: bool = False

    def __str__(self) -> str:
        return self.reason if self.remedy is None else f"{self.reason}; {self.remedy}"


class _InPythonError(Exception):
    """Calls like this one have to be done in Python."""

    def __init__(self, reason: str, remedy: str | None = None, is_wanted: bool = False) -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason, remedy, is_wanted)


def native_call_for(
    concrete: ConcreteFunction,
    guards: GuardProgram | None,
    binder: Binder,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    repeats: bool = False,
    turned: Mapping[int, bool] | None = None,
) -> native_call.NativeCall | Refusal:
    """What native code needs to answer calls like this one with ``concrete``, or why it has to be done in Python.
    Calls in which a check fails are made again there if ``repeats`` says so.  ``turned`` says of leaves that are
    tensors whether their elements lie in the order of the axes reversed, for which ``concrete`` was traced then; one
    that lies otherwise than it says is not taken.  Of leaves that are not named there such a tensor is copied."""
    values, names = (*args, *kwargs.values()), tuple(kwargs)
    try:
        if any(not isinstance(x._array, np.ndarray) for x in _tensors_in(values)):
            return _call_elsewhere(concrete, guards, binder, values, names)
        return _native_call_for(concrete, guards, binder, values, names, repeats, turned)
    except _InPythonError as error:
        return error.refusal


def _native_call_for(
    concrete: ConcreteFunction,
    guards: GuardProgram | None,
    binder: Binder,
    values: Sequence[Any],
    names: tuple[str, ...],
    repeats: bool,
    turned: Mapping[int, bool] | None,
) -> native_call.NativeCall:
    _require(concrete.staged.is_of_cpu, "its code names a device that is not the CPU")
    executable = concrete.staged.compile()
    program = executable.program
    if program.needs_python:
        called = ", ".join(_called(executable))
        raise _InPythonError(
            "its program calls Python" + f" ({called})" * bool(called), is_wanted=_only_exchanges(concrete, program)
        )
    is_told = any(not callback.exchange for callback in program.callbacks)
    # Whoever fails does not run the exchanges before that again.
    _require(
        not (program.exchanges and is_told), "it exchanges values with other processes, and has checks of Python's"
    )
    # A handler of signals may ask for the variables.
    is_looked_at = program.polls_interrupts and bool(concrete.graph.updates)
    _require(not is_looked_at, "it assigns variables, and a loop in it can be interrupted")
    reader = _Arguments(concrete, program.inputs, turned)
    arguments, defaults = reader.of_call(binder, values, names)
    nodes = list(native.flatten_arguments(arguments))
    device = concrete.staged.device_for(reader.arguments)
    _require(device == devices.CPU, "its arguments and variables lie on several devices", "move them to one")
    if concrete.aliases.depends_on_identity:
        pairs = len(reader.tensors) * (len(reader.tensors) + len(concrete.captures))
        _require(pairs <= MAX_COMPARED and len(nodes) <= MAX_COMPARED, _TELLS_APART, "do without `is` and id()")
    return native_call.NativeCall(
        concrete.staged.compile(),
        arguments,
        _captures(concrete, nodes),
        keywords=names,
        defaults=defaults,
        guards=guards,
        results=_result(concrete, nodes),
        minimums=_minimums(nodes),
        conditions=concrete.conditions,
        apart=concrete.aliases.depends_on_identity,
        repeats=is_told or (repeats and not program.exchanges),  # whoever is called in Python says what is wrong
    )


_TELLS_APART = "it asks which of many tensors are one object"


def _only_exchanges(concrete: ConcreteFunction, program: Any) -> bool:
    """Whether all that a program calls in Python are exchanges with the processes that share its replicas out."""
    numbers = [callback.function for callback in program.callbacks if not callback.retried]
    functions = concrete.staged.trace.functions
    return all(isinstance(n, int) and getattr(functions[n], "is_exchange", False) for n in numbers) and bool(numbers)


def _called(executable: Any) -> list[str]:
    """What a program calls in Python, and where."""
    texts = []
    for callback in executable.program.callbacks:
        if not callback.retried and not callback.exchange:
            name = "" if isinstance(callback.function, int) else f"{callback.function.name} "
            texts.append(f"{name}at {short_location(callback.where)}" if callback.where else name.strip())
    return list(dict.fromkeys(filter(None, texts)))


def _require(condition: bool, reason: str, remedy: str | None = None) -> None:
    if not condition:
        raise _InPythonError(reason, remedy)


# Calls on a GPU


def _call_elsewhere(
    concrete: ConcreteFunction,
    guards: GuardProgram | None,
    binder: Binder,
    values: Sequence[Any],
    names: tuple[str, ...],
) -> native_call.NativeCall:
    """For calls with tensors of a GPU: native code looks at guards and at how the arguments are nested, and Python at
    the types of the tensors."""
    _require(not concrete.aliases.depends_on_identity, "it asks which tensors are one object, and some lie on a GPU")
    reader = _Arguments(concrete, None)
    arguments, defaults = reader.of_call(binder, values, names)
    nodes = native.flatten_arguments(arguments)
    repeats_tensor = any(isinstance(node, native.SameArg) for node in nodes)
    _require(not repeats_tensor, "one tensor is several of its arguments, and some lie on a GPU")
    device = concrete.staged.device_for(reader.arguments)
    _require(isinstance(device, str), "its arguments lie on several devices", "move them to one")
    return native_call.NativeCall(
        concrete.staged.compile(device),
        arguments,
        keywords=names,
        defaults=defaults,
        guards=guards,
        python=_Elsewhere(concrete),
    )


class _Elsewhere:
    """Answers calls whose tensor arguments lie on a GPU, where their types are those that the program was traced for;
    they are a tuple with None in the place of what is none."""

    __slots__ = ("_concrete", "_known", "_types")

    MOST_KNOWN = 1024

    def __init__(self, concrete: ConcreteFunction) -> None:
        self._concrete = concrete
        self._types = [key for key in concrete.key.leaves if isinstance(key, (TensorKey, NumberKey))]
        self._known: set[tuple[Any, ...]] = set()  # types of arguments that were found to fit

    def __call__(self, inputs: tuple[Any, ...]) -> Any:
        try:
            arguments = [x for x in inputs if x is not None]
            seen = tuple([(x._array.dtype, x._array.shape) for x in arguments])
            if seen not in self._known:
                if not self._fit(arguments):
                    return NotImplemented
                if len(self._known) < self.MOST_KNOWN:
                    self._known.add(seen)
            if self._concrete.is_open and current.tapes:
                return NotImplemented  # see ``AliasRule``
            return self._concrete.call_tensors(arguments)
        except BaseException as error:
            raise of_user(error)  # noqa: B904  # the very error

    def _fit(self, arguments: Sequence[Tensor]) -> bool:
        concrete = self._concrete
        leaves: list[Any] = list(concrete.key.leaves)
        for position, x in zip(concrete.tensor_leaves, arguments, strict=True):
            leaves[position] = x
        types = zip(self._types, arguments, strict=True)
        return all(_is_of(key, x) for key, x in types) and concrete.fits(leaves)


def _is_of(key: TensorKey | NumberKey, x: Tensor) -> bool:
    return isinstance(key, NumberKey) or (x.dtype == key.dtype and key.accepts_shape(x.shape))


def _tensors_in(value: object) -> Iterator[Tensor]:
    """The tensors among arguments."""
    return (leaf for leaf in pytree.flatten(value)[0] if type(leaf) is Tensor)


# Arguments


class _Arguments:
    """What native code is told of the arguments of a call; ``tensors`` are those among them.  ``slots`` are the inputs
    of the program, None for one that runs on a GPU, whose tensors native code does not look into."""

    def __init__(
        self, concrete: ConcreteFunction, slots: Sequence[Slot] | None, turned: Mapping[int, bool] | None = None
    ) -> None:
        self._keys = concrete.key.leaves
        self._slots, self._turned = slots, turned or {}
        self._structure = concrete.key.structure
        self._inputs = dict(zip(concrete.tensor_leaves, argument_inputs(concrete)))
        self.tensors: list[Tensor] = []
        self._given: dict[int, Tensor] = {}  # by the inputs that they are

    @property
    def arguments(self) -> list[Tensor | None]:
        """What the program's inputs are that are arguments, None for what is not a tensor."""
        return [self._given.get(k) for k in sorted(self._inputs.values())]

    def of_call(
        self, binder: Binder, values: Sequence[Any], names: tuple[str, ...]
    ) -> tuple[list[native.Argument], list[Any]]:
        """The arguments of a call, the last of which are for the defaults that are returned, too."""
        places, defaults = binder.slots(len(values) - len(names), names, self._structure)
        arguments = [self.argument(value, *place) for value, place in zip(values, places, strict=True)]
        looked_at = [(value, s, first) for value, s, first in defaults if not self.is_fixed(s, first)]
        arguments += [self.argument(*default) for default in looked_at]
        return arguments, [value for value, *_ in looked_at]

    def is_fixed(self, structure: pytree.Structure, first: int) -> bool:
        """Whether a default is a value that never changes."""
        return structure.kind is None and isinstance(self._keys[first], ValueKey)

    def argument(self, value: Any, structure: pytree.Structure, first: int) -> native.Argument:
        """The argument ``value``, whose leaves begin at the position ``first``."""
        kind = structure.kind
        if kind is None:
            return self._leaf(value, first)
        _require(type(value) is kind, f"an argument is a {type(value).__name__}, and was a {kind.__name__}")
        starts = itertools.accumulate((child.leaves for child in structure.children), initial=first)
        parts = list(zip(structure.children, starts))
        if kind in pytree.MAPPINGS:
            of_key = dict(zip(structure.labels, parts))
            _require(len(value) == len(of_key), "a dict among the arguments has other keys")
            keys = tuple(value)
            return native.MappingArg(
                kind, keys, tuple([self.argument(value[k], *of_key[k]) for k in keys]), structure.factory
            )
        if issubclass(kind, (list, tuple)) and (kind in (list, tuple) or _is_plain_namedtuple(kind)):
            _require(len(value) == len(parts), f"a {kind.__name__} among the arguments has another length")
            return native.SequenceArg(
                kind, tuple([self.argument(child, *part) for child, part in zip(value, parts, strict=True)])
            )
        has_code = not _is_plain_class(kind, structure.labels)
        _require(not has_code, f"reading the fields of a {kind.__name__} runs code", "pass its parts")
        held = tuple(value.__dict__) if kind.__dictoffset__ else None
        in_order = (held or ()) == structure.order
        _require(in_order, f"a {kind.__name__} among the arguments holds its fields in another order")
        attributes = [getattr(value, name) for name in structure.labels]
        children = tuple([self.argument(child, *part) for child, part in zip(attributes, parts, strict=True)])
        return native.InstanceArg(kind, structure.labels, held, children)

    def _leaf(self, value: object, position: int) -> native.Argument:
        key = self._keys[position]
        if isinstance(key, TensorKey):
            is_elsewhere = type(value) is Tensor and not isinstance(value._array, np.ndarray)
            _require(is_elsewhere == (self._slots is None), "its arguments lie on several devices", "move them to one")
            is_array = isinstance(value, np.generic if key.is_weak else (Tensor, np.ndarray))
            text = f"an argument is a {type(value).__name__}, of which each call makes a tensor"
            _require(is_array, text, "pass a tensor or a NumPy array")
            if isinstance(value, Tensor):
                self.tensors.append(value)
                self._given[self._inputs[position]] = value
            index = self._inputs[position]
            if self._slots is None:
                return native.TensorArg(key.dtype, (), index, on_device=True)
            shape = self._slots[index].shape
            turned = self._turned.get(position)
            if turned:
                return native.TensorArg(key.dtype, shape[::-1], index, contiguous=True, transposed=True)
            return native.TensorArg(key.dtype, shape, index, key.is_weak, transposed=turned)
        if isinstance(key, NumberKey):
            return self._number(key, self._inputs[position])
        if isinstance(key, IdentityKey):
            if isinstance(value, Tensor):
                self.tensors.append(value)
            return native.ObjectArg(key.reference)
        if isinstance(key, SameKey):
            return native.SameArg(self._inputs[key.position])
        text = f"an argument is a {type(value).__name__}, which only Python can compare"
        _require(isinstance(key, ValueKey) and key.may_be_recognised, text, "pass its parts")
        return native.LiteralArg(value)

    def _number(self, key: NumberKey, index: int) -> native.Argument:
        if key.kind is float:
            return native.FloatArg(index)
        if self._slots is None:
            raise _InPythonError("an argument is an int that may have any value, and tensors lie on a GPU")
        return native.IntArg(self._slots[index].shape[0], index)


def _is_plain_namedtuple(kind: type) -> bool:
    """Whether instances are their elements, and nothing else."""
    return kind.__dictoffset__ == 0 and kind.__iter__ is tuple.__iter__  # type: ignore[attr-defined]


def _is_plain_class(kind: type, names: Sequence[str]) -> bool:
    """Whether reading these attributes of an instance runs no code of the user's."""
    stored = [next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None) for name in names]
    plain = (types.MemberDescriptorType, type(None))
    has_code = [not isinstance(attribute, plain) and hasattr(type(attribute), "__get__") for attribute in stored]
    return kind.__getattribute__ is object.__getattribute__ and not any(has_code)


def argument_inputs(concrete: ConcreteFunction) -> list[int]:
    """The positions of the program's inputs that are arguments."""
    return [i for i, node in enumerate(concrete.graph.inputs) if node.attrs["role"] is Role.ARGUMENT]


def _minimums(nodes: Sequence[native.Argument]) -> dict[str, int]:
    """Open extents are 2 or more: 0 and 1 have programs of their own."""
    extents = [extent for node in nodes if isinstance(node, native.TensorArg) for extent in node.shape]
    extents += [node.extent for node in nodes if isinstance(node, native.IntArg)]
    return {name: LEAST for extent in extents for name in symbols(extent)}


# What comes from outside


def _captures(concrete: ConcreteFunction, nodes: Sequence[native.Argument]) -> list[native_call.Capture]:
    passed = {id(node.reference()) for node in nodes if isinstance(node, native.ObjectArg)}
    captures: list[native_call.Capture] = []
    for i, source in enumerate(concrete.staged.sources):
        if isinstance(source, State):
            variable = source.variable
            on_cpu = isinstance(variable._tensor._array, np.ndarray)
            _require(on_cpu, f"the variable {variable.name!r} lies on another device than the arguments")
            _require(source.is_held or id(variable) in passed, "a variable among the arguments is inside of an object")
            captures.append(native_call.VariableInput(i, variable, borrowed=not source.is_held))
        elif isinstance(source, Tensor):
            array = source._array
            _require(isinstance(array, np.ndarray), "a captured tensor lies on another device than the arguments")
            if not (array.flags.c_contiguous and array.flags.aligned):
                _require(not concrete.aliases.depends_on_identity, _TELLS_APART)  # which goes by the place in memory
                array = array.copy()
            captures.append(native_call.ConstantInput(i, array))
    return captures


# Results


def _result(concrete: ConcreteFunction, nodes: Sequence[native.Argument]) -> list[Make]:
    """How native code makes the result of the program's outputs."""
    inputs = argument_inputs(concrete)
    position = {node.input: k for k, node in enumerate(nodes) if isinstance(node, native.TensorArg)}

    def leaf(kind: int, value: Any) -> list[Make]:
        if kind == RESULT:
            return [Make("output", value)]
        if kind == ARGUMENT:
            return [Make("argument", position[inputs[value]])]
        if kind == EXTENT:
            return [Make("extent", value)]
        if kind == NUMBER:
            return [Make("output", value), Make("call", float, 1)]
        return [Make("call", value.copy) if isinstance(value, np.ndarray) else Make("object", value)]

    result = _nested(concrete.results, [leaf(*part) for part in concrete.plan])
    if concrete.setting is None:
        return result
    return [*result, Make("call", concrete.setting, 1)]


def _nested(structure: pytree.Structure, leaves: Sequence[list[Make]]) -> list[Make]:
    """The steps that make a container of what the steps of its leaves make: see ``pytree.unflatten``."""
    kind = structure.kind
    if kind is None:
        return leaves[0]
    ends = list(itertools.accumulate((child.leaves for child in structure.children), initial=0))
    parts = [_nested(child, leaves[a:b]) for child, a, b in zip(structure.children, ends, ends[1:])]
    count = len(parts)
    if kind is list or kind is tuple:
        return [*itertools.chain(*parts), Make(kind.__name__, None, count)]
    if issubclass(kind, tuple):
        return [
            *itertools.chain(*parts),
            Make("tuple", None, count),
            Make("call", functools.partial(tuple.__new__, kind), 1),
        ]
    of_key = dict(zip(structure.labels, parts))
    if kind not in pytree.MAPPINGS:
        held = set(structure.order)
        names = (*structure.order, *(name for name in structure.labels if name not in held))
        return [*itertools.chain(*(of_key[name] for name in names)), Make("instance", (kind, names), count)]
    steps = [*itertools.chain(*(of_key[key] for key in structure.order)), Make("dict", structure.order, count)]
    if kind is OrderedDict:
        steps.append(Make("call", OrderedDict, 1))
    elif kind is defaultdict:
        steps.append(Make("call", functools.partial(defaultdict, structure.factory), 1))
    return steps
