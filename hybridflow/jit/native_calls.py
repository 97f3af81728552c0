"""Native calls: which calls of a Function may run without a Python frame, and what says so to native code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.ir.extents import LEAST, symbols
from hybridflow.compiler.ir.graph import Role
from hybridflow.core import devices
from hybridflow.core.tensor import Tensor
from hybridflow.jit.binding import Binder
from hybridflow.jit.concrete import ConcreteFunction
from hybridflow.jit.keys import TensorKey
from hybridflow.jit.value_keys import ValueKey
from hybridflow.runtime.calls import native_call
from hybridflow.runtime.calls.steps import Step
from hybridflow.runtime.native.records import MAX_BUFFERS, MAX_STEPS
from hybridflow.tracing.trace import State

MAX_COMPARED = 1024  # pairs of tensors, in calls of programs that tell them apart
CallForm = tuple[int, tuple[str, ...]]  # how a call was written: arguments by position, and the names of the others


def native_call_for(
    concrete: ConcreteFunction,
    guards: Sequence[Step],
    binder: Binder,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    repeats: bool = False,
) -> native_call.NativeCall | None:
    """What native code needs to answer calls like this one with ``concrete``; None when it has to be done in Python.
    Calls in which a check fails are made again there if ``repeats`` says so.

    Native are calls whose arguments are tensors and plain Python values, not nested, with results that are new tensors.
    """
    structure, keys = concrete.key.structure, concrete.key.leaves
    parameters = binder.places(len(args), tuple(kwargs))
    assemble = _result_structure(concrete)
    if parameters is None or assemble is None or any(child.kind is not None for child in structure.children):
        return None
    tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    if concrete.staged.device_for(tensors) != devices.CPU:
        return None
    program = concrete.staged.compile().program
    if len(program.inputs) + len(program.outputs) > MAX_BUFFERS or len(guards) > MAX_STEPS:
        return None
    inputs = dict(zip(concrete.tensor_leaves, _argument_inputs(concrete)))
    arguments: list[native_call.Argument] = []
    for parameter, value in zip(parameters, (*args, *kwargs.values())):
        key = keys[parameter]
        if isinstance(key, TensorKey) and type(value) is Tensor and isinstance(value._array, np.ndarray):
            slot = program.inputs[inputs[parameter]]
            arguments.append(native_call.TensorArg(key.dtype, slot.shape, inputs[parameter]))
        elif isinstance(key, ValueKey) and key.is_plain:
            arguments.append(native_call.LiteralArg(value))
        else:
            return None
    omitted = set(range(len(keys))) - set(parameters)
    if not all(isinstance(keys[k], ValueKey) for k in omitted):
        return None
    if concrete.tells_apart and len(tensors) * (len(tensors) + len(concrete.captures)) > MAX_COMPARED:
        return None
    captures: list[native_call.Capture] = []
    for i, source in enumerate(concrete.staged.sources):
        if isinstance(source, State):
            if not (source.is_held and isinstance(source.variable._tensor._array, np.ndarray)):
                return None
            captures.append(native_call.VariableInput(i, source.variable))
        elif isinstance(source, Tensor):
            array = source._array
            if not (isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.aligned):
                return None
            captures.append(native_call.ConstantInput(i, array))
    executable = concrete.staged.compile()
    if executable.program.callbacks:
        return None
    return native_call.NativeCall(
        executable,
        arguments,
        captures,
        keywords=tuple(kwargs),
        guards=guards,
        structure=assemble,
        minimums=_minimums(arguments),
        conditions=concrete.conditions,
        apart=concrete.tells_apart,
        repeats=repeats,
    )


def _minimums(arguments: Sequence[native_call.Argument]) -> dict[str, int]:
    """Open extents are 2 or more: 0 and 1 have programs of their own."""
    shapes = [argument.shape for argument in arguments if isinstance(argument, native_call.TensorArg)]
    return {name: LEAST for shape in shapes for extent in shape for name in symbols(extent)}


def _argument_inputs(concrete: ConcreteFunction) -> list[int]:
    """The positions of the program's inputs that are arguments."""
    return [i for i, node in enumerate(concrete.graph.inputs) if node.attrs["role"] is Role.ARGUMENT]


def _result_structure(concrete: ConcreteFunction) -> str | Callable[..., Any] | None:
    """How native code makes the result of the program's outputs; None when a result is one of the arguments."""
    if concrete.returns_arguments:
        return None
    count = len(concrete.graph.outputs)
    results = concrete.results
    if concrete.returns_outputs_in_order:
        if results.kind is None:
            return "single"
        if results.kind in (tuple, list) and results.leaves == len(results.children) == count:
            return results.kind.__name__
    if count == 0 and concrete.returns_none:
        return "none"
    return concrete.assemble
