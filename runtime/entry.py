"""The native entry: calls of compiled programs with no Python frame between the caller and the machine code.

``Dispatcher`` is the base of callables: ``f(x)`` tries the signatures in ``f._dispatch``, a tuple of ``Signature``,
and runs the program of the first that fits; else it calls ``f._call_slow(*args, **kwargs)``.  ``elementwise`` makes
a function of one op.  Everything here has two implementations with one meaning: LLVM code that reads CPython's and
NumPy's objects (``entry_code``), and Python, where ``layout.problem`` says that the objects lie otherwise.

Nothing native happens before the first call that finds a signature, or the first elementwise function: importing this
module is cheap.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.program import DimSource, Program, Size, Slot
from hybridflow.errors import ArgumentError
from hybridflow.runtime import front_end, host, layout, machine_code, memory, native
from hybridflow.runtime.cpu import Executable
from hybridflow.runtime.dtypes import NUMPY
from hybridflow.runtime.matching import MISS
from hybridflow.runtime.op_calls import Fixed, Kernel
from hybridflow.runtime.records import MAX_INPUTS, Offsets
from hybridflow.runtime.signature import Signature, TensorArg


class Dispatcher:
    """Base of callables that run compiled programs.  Subclasses define ``_call_slow(*args, **kwargs)``, which also
    puts signatures into ``_dispatch``: a tuple, replaced as a whole, most likely signature first."""

    __slots__ = ("_dispatch",)
    _dispatch: tuple[Signature, ...]

    def _call_slow(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._call_slow")

    def _call_python(self, *args: Any, **kwargs: Any) -> Any:
        """``__call__`` in Python: native code takes its place at the first call that finds a signature."""
        if front_end.is_idle():
            for signature in getattr(self, "_dispatch", ()):
                enable()
                result = signature._try(args, kwargs)
                if result is not MISS:
                    return result
        return self._call_slow(*args, **kwargs)

    __call__ = _call_python


def elementwise(
    executable: Executable,
    *,
    scalars: Sequence[bool] = (),
    fallback: Callable[..., Any] | None = None,
    always: bool = False,
    name: str = "elementwise",
) -> Callable[..., Any]:
    """A function of tensors, for a program over ``n`` elements: inputs [n] each, output [n], one symbolic extent.

    All tensors must have one shape, which the result has too.  Where ``scalars`` says so, an input is a single
    element: a 0-d tensor, or a Python number that its dtype represents.  Anything else, a busy thread included,
    calls ``fallback`` with the same arguments, or returns NotImplemented where there is none.  ``always`` is for
    callers that have seen to tapes and traces themselves: it does not look whether the thread is busy.
    """
    kernel = Kernel(executable, tuple(scalars) or (False,) * len(executable.program.inputs), fallback, always)
    addresses = enable()
    if addresses is None:
        return kernel._call
    kernel._definition = native.method_def(name, addresses["elementwise"])
    return native.builtin(kernel._definition, kernel)


def fixed(
    executable: Executable,
    types: Sequence[tuple[np.dtype[Any], tuple[int, ...]]],
    shapes: Sequence[tuple[int, ...]],
    out: tuple[np.dtype[Any], tuple[int, ...]],
) -> Callable[..., Any]:
    """A function of tensors of exactly these types (dtype and shape), for a program of one output.

    The program sees the same elements as arrays of ``shapes``, and its output as an array of the type ``out``.  For
    any other arguments the result is NotImplemented.  Tapes and traces are the caller's business.
    """
    if len(types) != len(executable.program.inputs) or len(types) > MAX_INPUTS or len(executable.program.outputs) != 1:
        raise ArgumentError("fixed", f"{executable.program.name} is not a program of {len(types)} inputs, one output.")
    kernel = Fixed(executable, types, shapes, out)
    addresses = enable()
    if addresses is None:
        return kernel._call
    kernel._definition = native.method_def(executable.program.name, addresses["fixed"])
    return native.builtin(kernel._definition, kernel)


@native.once
def enable() -> dict[str, int] | None:
    """Load the native code and give it to Dispatcher, once.  Addresses by symbol, or None for the Python paths."""
    known = front_end.known()
    pool = memory.pool()
    if pool is None:
        return None
    offsets = Offsets(
        tensor_array=layout.slot_offset(known.tensor_type, known.array_slot),
        dispatch_table=layout.slot_offset(Dispatcher, "_dispatch"),
        signature_record=layout.slot_offset(Signature, "_record"),
        kernel_record=layout.slot_offset(Kernel, "_record"),
        kernel_fallback=layout.slot_offset(Kernel, "_fallback"),
        fixed_record=layout.slot_offset(Fixed, "_record"),
    )
    imports = {
        "Tensor_Type": id(known.tensor_type),
        "Signature_Type": id(Signature),
        "PyArray_Type": id(np.ndarray),
        "Name_fail": id(_NAMES[0]),
        "Name_slow": id(_NAMES[1]),
        "busy": ctypes.addressof(known.busy),
        **{name: pool.addresses[name] for name in ("pool_allocate", "pool_release", "make_array")},
    }

    def build() -> str:
        from hybridflow.runtime import entry_code  # only where the disk cache has no machine code for it

        return entry_code.build(offsets)

    addresses = native.load(build, (offsets, *layout.SETTINGS), ("call", "elementwise", "fixed", "sample"), imports)
    definition = native.method_def("__call__", addresses["call"], keywords=True)
    native_call = native.method(definition, Dispatcher)
    if not _self_test(native_call, addresses):
        return None
    Dispatcher.__call__ = native_call  # type: ignore[method-assign]
    return addresses


_NAMES = ("_fail", "_call_slow")  # the objects whose addresses native code holds


class _Sample(Dispatcher):
    """A callable over a known program.  ``_call_slow`` tells that native code did not take the call."""

    __slots__ = ()

    def _call_slow(self, *args: Any, **kwargs: Any) -> Any:
        return MISS


def _self_test(native_call: Callable[..., Any], addresses: Mapping[str, int]) -> bool:
    """Whether calls of a known program give the right result, and every reference that they took back."""
    vector = Slot(("n",), "f32")
    program = Program("sample", host.detect(), "", "sample", (vector,), (vector,), (DimSource("n", 0, 0),), Size(()))
    executable = Executable(program, machine_code.Code({"sample": addresses["sample"]}))
    kernel = Kernel(executable, (False,), None, always=True)
    kernel._definition = native.method_def("sample", addresses["elementwise"])
    sample = _Sample()
    sample._dispatch = (Signature(executable, [TensorArg(NUMPY["f32"], ("n",), 0)]),)
    values = np.arange(5, dtype=np.float32)
    x, expected = front_end.wrap(values), ~values.view(np.int32)
    probe = object()  # with as many references as a result that nobody else holds
    watched = (x, kernel, sample, sample._dispatch, sample._dispatch[0])
    before = list(map(sys.getrefcount, watched))
    for call in (native.builtin(kernel._definition, kernel), functools.partial(native_call, sample)):
        for _ in range(3):
            result = call(x)
            if result is MISS and front_end.known().busy.value:
                break  # the first use came under a tape or in a trace, where calls go the slow way
            if type(result) is not front_end.tensor_type() or sys.getrefcount(result) != sys.getrefcount(probe):
                return False
            array = getattr(result, front_end.known().array_slot)
            if array.shape != (5,) or not np.array_equal(array.view(np.int32), expected):
                return False
            del result, array
        del call
    return list(map(sys.getrefcount, watched)) == before
