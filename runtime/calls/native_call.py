"""Native calls: what a call must look like, and the program that answers it.

A NativeCall writes itself as a record for native code (``entry_code``).
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.compiler.program import Dim, Extent, Slot
from hybridflow.errors import ArgumentError
from hybridflow.runtime.calls.argument_specs import (
    Argument,
    FloatArg,
    IntArg,
    SameArg,
    TensorArg,
    flatten_arguments,
    item as argument_item,
)
from hybridflow.runtime.calls.result_steps import SINGLE, Make, depth, handed, item as result_item
from hybridflow.runtime.calls.symbolic_dims import Dims
from hybridflow.runtime.dtypes import NUMPY, canonical
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.records import (
    CONSTANT,
    DIM_STEP,
    HEAD,
    OUTPUT,
    VARIABLE,
    Writer,
)

if TYPE_CHECKING:
    from hybridflow.runtime.calls.guard_program import GuardProgram


@dataclass(frozen=True)
class ConstantInput:
    """An input that is always this array."""

    input: int
    array: np.ndarray


@dataclass(frozen=True)
class VariableInput:
    """An input that is the current tensor of a variable, read at each call.  Where the program updates it, native code
    writes over the old value if that is the variable's own, else a fresh tensor takes its place.

    The variable has slots ``_tensor``, its value, and ``_own``, the same object if nobody else can see its memory; and
    a ``_gate`` (see ``turns``).  A ``borrowed`` one is among the arguments, as an ObjectArg, and not kept alive.
    """

    input: int
    variable: Any
    borrowed: bool = False


Capture = ConstantInput | VariableInput


class NativeCall:
    """One kind of call and the program that answers it; it keeps alive everything that it points to.

    ``arguments``  those given by position, those given by name, whose names are ``keywords`` in that order, and one for
                   each of ``defaults``
    ``defaults``   objects that are no arguments of the call, but looked at like those
    ``captures``   the inputs of the program that are no arguments
    ``results``    how the result is made (see ``result_steps``)
    ``apart``      whether it answers only calls in which no array is in two places
    ``minimums``   the least value of a symbol, 0 where it is not named
    ``conditions`` extents that are 0 or more
    ``guards``     what else must be as it was, None for nothing
    ``repeats``    whether a call in which a run-time check fails is made again in Python, which knows what to raise
    ``python``     what answers in the place of the executable's machine code, for one that runs elsewhere: it is given
                   a tuple with a tensor for each input of the program that is an argument, None for the others, and
                   gives the result, or NotImplemented where they are not what it takes
    Raises ArgumentError when the parts do not make a whole.
    """

    __slots__ = (
        "__weakref__",
        "_dims",
        "_nodes",
        "_record",
        "apart",
        "arguments",
        "captures",
        "conditions",
        "defaults",
        "executable",
        "guards",
        "keywords",
        "minimums",
        "python",
        "repeats",
        "results",
        "whole",
    )

    def __init__(
        self,
        executable: Any,
        arguments: Sequence[Argument],
        captures: Sequence[Capture] = (),
        *,
        keywords: Sequence[str] = (),
        defaults: Sequence[Any] = (),
        guards: GuardProgram | None = None,
        results: Sequence[Make] = SINGLE,
        minimums: Mapping[str, int] | None = None,
        conditions: Sequence[Extent] = (),
        apart: bool = False,
        repeats: bool = False,
        python: Callable[[tuple[Any, ...]], Any] | None = None,
    ) -> None:
        self.executable, self.apart, self.repeats, self.python = executable, apart, repeats, python
        self.whole: object = None  # what a tape that is told of the call knows it by
        self.arguments, self.captures = tuple(arguments), tuple(captures)
        self.defaults = tuple(defaults)
        self.guards = guards
        # Keyword names are compared by address, and those of calls written in source are interned.
        self.keywords = tuple(map(sys.intern, keywords))
        self.results, self.minimums = tuple(results), dict(minimums or {})
        self.conditions = tuple(conditions)
        self._nodes = tuple(flatten_arguments(self.arguments))
        if python is None:
            self._dims = Dims(executable.program.dims, self._named())
            self._check()
        else:
            self._dims = Dims((), ())
            self._check_for_python()
        self._record = self._packed()
        self.captures = tuple([c for c in self.captures if not (isinstance(c, VariableInput) and c.borrowed)])

    @property
    def calls(self) -> int:
        """Calls that it has answered."""
        return struct.unpack_from("<Q", self._record, HEAD.offset("calls"))[0]

    def _check(self) -> None:
        program = self.executable.program
        inputs = [a.input for a in self._nodes if isinstance(a, TensorArg) and a.input is not None]
        inputs += [a.input for a in self._nodes if isinstance(a, (FloatArg, IntArg))]
        inputs += [c.input for c in self.captures]
        self._require(
            not program.needs_python and (self.repeats or not any(not c.exchange for c in program.callbacks)),
            "native code cannot call Python",
        )
        self._require(
            not (program.polls_interrupts and self.executable.updated),
            "what interrupts it may ask for variables that it updates",
        )
        self._require(sorted(inputs) == list(range(len(program.inputs))), "each input of the program needs one source")
        named = len(self.keywords) + len(self.defaults)
        self._require(named <= len(self.arguments), "more keywords and defaults than arguments")
        for argument in self._nodes:
            if isinstance(argument, TensorArg) and argument.input is not None:
                lying = argument.shape[::-1] if argument.transposed else argument.shape
                self._check_slot(program.inputs[argument.input], argument.dtype, lying)
        sources = {Dim(source.name) * source.scale + source.offset for source in program.dims}
        self._require(sources <= set(self._named()), "each symbolic extent must be an extent of some argument")
        for capture in self.captures:
            slot = program.inputs[capture.input]
            if isinstance(capture, ConstantInput):
                self._check_slot(slot, capture.array.dtype, capture.array.shape)
                flags = capture.array.flags
                self._require(flags.c_contiguous and flags.aligned and not slot.updated, "a constant is not constant")
        for step in self.results:
            self._require(step.what != "output" or step.operand < len(program.outputs), "no such output")
            position = handed(step)
            if position is not None:
                node = self._nodes[position]
                if not isinstance(node, TensorArg):
                    self._require(False, "what is handed through is no tensor")
                elif step.what == "view":
                    self._require(node.contiguous, "what is seen is not bare")
                else:
                    self._require(node.input is not None and not node.contiguous, "what is handed through is no input")

    def _check_for_python(self) -> None:
        self._require(not self.captures and not self.apart, "what Python answers is told of arguments alone")
        named = len(self.keywords) + len(self.defaults)
        self._require(named <= len(self.arguments), "more keywords and defaults than arguments")
        for node in self._nodes:
            open_shape = isinstance(node, TensorArg) and any(isinstance(extent, Dim) for extent in node.shape)
            self._require(
                not open_shape and not isinstance(node, (IntArg, SameArg)), "native code sees no extents there"
            )

    @property
    def nodes(self) -> tuple[Argument, ...]:
        """The arguments and what is nested in them, in the order of their items."""
        return self._nodes

    def _named(self) -> list[Extent]:
        """The extents that the shapes of arguments say."""
        named: list[Extent] = [n for node in self._nodes if isinstance(node, TensorArg) for n in node.shape]
        return named + [node.extent for node in self._nodes if isinstance(node, IntArg)]

    def _check_slot(self, slot: Slot, dtype: np.dtype[Any], shape: tuple[Extent, ...]) -> None:
        self._require(NUMPY[slot.dtype] == dtype and slot.shape == shape, f"{dtype}{shape} given for {slot}")

    def _require(self, condition: bool, message: str) -> None:
        if not condition:
            raise ArgumentError("native call", f"{message}, in one of {self.executable.program.name}.")

    # The record.

    def _packed(self) -> bytes:
        program, writer = self.executable.program, Writer(HEAD)
        runs = self.python is None
        outputs = writer.items(map(self._output_item, program.outputs if runs else ()))
        captures = writer.items(map(self._capture_item, self.captures))
        steps = self.results if runs else SINGLE
        through = sorted({k for k in map(handed, steps) if k is not None})
        arguments = writer.items(
            argument_item(a, self._extents, through.index(k) if k in through else -1, self._nodes)
            for k, a in enumerate(self._nodes)
        )
        results = writer.items(result_item(step, through, self._extent) for step in steps)
        needs = (program.memory(), program.scratch_bytes, program.work) if runs else (0, 0, 0)
        arena, scratch, work = self._extents(needs)
        least: dict[Extent, int] = {Dim(name): value for name, value in self.minimums.items()}
        for condition in self.conditions:
            if isinstance(condition, Dim):
                self._dims.index(condition)
                least[condition] = max(least.get(condition, 0), 0)
        return writer.pack(
            entry=ctypes.addressof(self.executable.plain) if runs else 0,
            shared=ctypes.addressof(self.executable.shared) if runs else 0,
            python=0 if runs else id(self.python),
            positional=len(self.arguments) - len(self.keywords) - len(self.defaults),
            keywords=len(self.keywords),
            keyword_names=writer.section(id(name) for name in self.keywords),
            defaults=len(self.defaults),
            default_objects=writer.section(map(id, self.defaults)),
            nodes=len(self._nodes),
            arguments=arguments,
            handed=len(through),
            apart=int(self.apart or any(isinstance(node, SameArg) for node in self._nodes)),
            dims=len(self._dims),
            dim_step_count=len(self._dims.steps) // DIM_STEP.size,
            dim_steps=writer.section(self._dims.steps),
            minimums=writer.section(self._dims.minimums(least)),
            guards=0 if self.guards is None else self.guards.address,
            inputs=len(program.inputs),
            captures=len(self.captures),
            capture_items=captures,
            updates=len(self.executable.updated) if runs else 0,
            outputs=len(program.outputs) if runs else 0,
            output_items=outputs,
            arena=arena,
            scratch=scratch,
            work=work,
            results=len(steps),
            result_items=results,
            depth=depth(steps),
            repeats=int(self.repeats),
            looks=int(program.polls_interrupts or program.exchanges),
            calls=0,
        )

    def _extents(self, shape: Iterable[Extent]) -> list[int]:
        return [self._extent(extent) for extent in shape]

    def _extent(self, extent: Extent) -> int:
        return -1 - self._dims.index(extent) if isinstance(extent, Dim) else extent

    def _capture_item(self, capture: Capture) -> tuple[int, ...]:
        if isinstance(capture, ConstantInput):
            return CONSTANT.pack(input=capture.input, data=capture.array.ctypes.data)
        slot, variable = self.executable.program.inputs[capture.input], capture.variable
        dtype = canonical(NUMPY[slot.dtype])
        return VARIABLE.pack(
            *self._extents(slot.shape),
            input=capture.input,
            object=id(variable),
            tensor=_inherited_slot_offset(type(variable), "_tensor"),
            own=_inherited_slot_offset(type(variable), "_own"),
            words=variable._gate.address,
            update=self.executable.updated.index(capture.input) if slot.updated else -1,
            in_place=int(slot.in_place),
            dtype=id(dtype),
            itemsize=dtype.itemsize,
            ndim=len(slot.shape),
        )

    def _output_item(self, slot: Slot) -> tuple[int, ...]:
        dtype = canonical(NUMPY[slot.dtype])
        return OUTPUT.pack(*self._extents(slot.shape), dtype=id(dtype), itemsize=dtype.itemsize, ndim=len(slot.shape))

    def _share(self) -> None:
        """Called by native code where threads would be of use for the first time."""
        self.executable.share()

    def _fail(self, status: int) -> None:
        """Called by native code when a run-time check failed."""
        self.executable.raise_check(status)


def _inherited_slot_offset(type_: type, name: str) -> int:
    for base in type_.__mro__:
        if name in base.__dict__:
            return object_layout.slot_offset(base, name)
    raise ArgumentError("native call", f"{type_.__name__} has no slot {name!r}.")
