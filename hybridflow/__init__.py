"""hybridflow: a hybrid eager-plus-tracing tensor compiler.

``import hybridflow as hf``: operations run at once, ``@hf.function`` compiles them through LLVM, ``hf.GradientTape``
differentiates either.  Array functions carry the names of the Python array API standard, the rest TensorFlow 2's.

The public names stand in ``__init__.pyi``, each with its module, and nowhere else.
"""

import importlib as _importlib
import math as _math
import sys as _sys
import typing as _typing

from hybridflow import flags as _flags
from hybridflow.array import (
    assignment as _assignment,
    numpy_protocols as _numpy_protocols,
    operators as _operators,
    setitem as _setitem,
)
from hybridflow.core import name_hints as _name_hints, public_names as _public_names
from hybridflow.core.context import reasons as _reasons
from hybridflow.core.tensor import Tensor as _Tensor
from hybridflow.core.variable import Variable as _Variable
from hybridflow.eager import public_op as _public_op, taped_calls as _taped_calls
from hybridflow.runtime import uninterruptible as _uninterruptible
from hybridflow.runtime.calls import front_end as _front_end

_operators.install()
_assignment.install()
_setitem.install()
_numpy_protocols.install()
_front_end.setup(_Tensor, _Variable, _reasons)


@_uninterruptible.loaded
def _plans() -> _typing.Any:
    from hybridflow.jit import compiled_ops

    return compiled_ops


def _planner() -> _public_op.Planner:
    planner: _public_op.Planner = _plans().compile_call
    return planner


def _taped_call_maker() -> _taped_calls.Maker:
    maker: _taped_calls.Maker = _plans().compile_taped_call
    return maker


_public_op.set_planner(_planner)
_taped_calls.set_maker(_taped_call_maker)

if _flags.KEEP_TEXT.value == "1" or hasattr(_sys, "ps1") or "code" in _sys.modules:
    from hybridflow.autograph.source import source_locations as _source_locations

    if _flags.KEEP_TEXT.value == "1" or _source_locations.is_console():
        _source_locations.listen()  # helpers are typed before the function that calls them

__version__ = _flags.RELEASE
__array_api_version__ = "2025.12"

e, pi, inf, nan = _math.e, _math.pi, _math.inf, _math.nan
newaxis = None

# What a first operation needs, so that importing loads it.  The other names load their modules when they are first
# used.
_WITH_OPERATIONS = (
    "array.creation",
    "array.datatypes",
    "array.elementwise",
    "array.indexing",
    "array.inspection",
    "array.linalg",
    "array.reductions",
    "array.shapes",
    "array.sorting",
    "core.devices",
    "core.variable",
)
# What models are built of, trained and kept with, which most functions do without.  A function that meets it first in a
# trace has it loaded apart, as a thread's doing and not its own.
_OF_MODELS = (
    *("aot", "applications", "callbacks", "checkpoint", "compat", "constraints", "data", "distribute", "initializers"),
    *("layers", "losses", "metrics", "mixed_precision", "models", "module", "onnx", "optimizers", "regularizers"),
    *("saved", "serving", "signal", "sparse", "summary", "weights", "ragged", "strings", "lookup"),
    *("optimize", "integrate", "interpolate", "quantize"),
)
# What functions need besides, some of them at first calls alone: by then nothing is imported any more but the compiler,
# where handlers of signals might come upon half of it (see ``runtime.apart``).
_WITH_FUNCTIONS = (
    "array.scattering",
    "compiler.graph_inlining",
    "compiler.ops.control_flow_batching",
    "compiler.ops.control_flow_derivatives",
    "compiler.ops.matrix_functions",
    "compiler.ops.small_linalg",
    "compiler.ops.exact_fma",
    "compiler.ops.effect_removal",
    "core.dlpack",
    "core.interop",
    "eager.single_op_programs",
    "eager.view_calls",
    "eager.blocked_linalg",
    "eager.small_matrices",
    "effects.exception_template",
    "jit.trace_session",
    "jit.determinism_check",
    "jit.compiled_ops",
    "jit.profiling",
    "runtime.calls.guard_program",
    "runtime.calls.method_slots",
    "runtime.calls.native_call",
    "runtime.cpu",
    "runtime.signal_handlers",
    "runtime.interrupt_checks",
    "runtime.threads.thread_pool",
    "autograph.source.lookup",
    "tracing.batch_trace",
)


def __getattr__(name: str) -> _typing.Any:
    if name not in _names.sources:
        raise _name_hints.NoSuchName("module 'hybridflow'", name, _name_hints.OF_MODULE.get(name), __all__)
    if name == "function":
        _load_for_functions()  # what they meet in a trace
    return _load(name)


def _load(name: str) -> _typing.Any:
    value = globals()[name] = _uninterruptible.run_uninterruptible(_names.sources[name].load)
    _names.hide_internal_modules(globals())
    return value


@_uninterruptible.loaded
def _load_for_models() -> None:  # asked for before a fork alone
    for name in _names.of_packages(f"hybridflow.{package}" for package in _OF_MODELS):
        _load(name)


@_uninterruptible.loaded
def _load_for_functions() -> None:
    of_models = _names.of_packages(f"hybridflow.{package}" for package in _OF_MODELS)
    for name in [name for name in _names.sources if name not in globals() and name not in of_models]:
        _load(name)
    _load_modules(_WITH_FUNCTIONS)
    _names.hide_internal_modules(globals())


def _load_modules(names: tuple[str, ...]) -> None:
    for name in names:
        _importlib.import_module(f"hybridflow.{name}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


_load_modules(_WITH_OPERATIONS)
_names = _public_names.read_stub(globals())
_names.bind_loaded(globals())
_names.hide_internal_modules(globals())
__all__ = _names.all
_name_hints.give(_operators.Operators, _Tensor, globals())
