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
from hybridflow.core import native_type as _native_type, other_names as _other_names, public_names as _public_names
from hybridflow.core.tensor import Tensor as _Tensor
from hybridflow.eager import operations as _operations, wholes as _wholes
from hybridflow.runtime import apart as _apart

_operators.install()
_assignment.install()
_setitem.install()
_numpy_protocols.install()
_native_type.introduce()


@_apart.loaded
def _plans() -> _typing.Any:
    from hybridflow.jit import operation_plans

    return operation_plans


def _planner() -> _operations.Planner:
    planner: _operations.Planner = _plans().plan
    return planner


def _whole_maker() -> _wholes.Maker:
    maker: _wholes.Maker = _plans().whole
    return maker


_operations.set_planner(_planner)
_wholes.set_maker(_whole_maker)

if _flags.KEEP_TEXT.value == "1" or hasattr(_sys, "ps1") or "code" in _sys.modules:
    from hybridflow.tracing.convert import texts as _texts

    if _flags.KEEP_TEXT.value == "1" or _texts.is_console():
        _texts.listen()  # helpers are typed before the function that calls them

__version__ = "0.1.0"
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
    *("callbacks", "checkpoint", "compat", "constraints", "data", "initializers", "layers", "losses", "metrics"),
    *("mixed_precision", "models", "optimizers", "regularizers", "saved", "summary"),
)
# What functions need besides, some of them at first calls alone: by then nothing is imported any more but the compiler,
# where handlers of signals might come upon half of it (see ``runtime.apart``).
_WITH_FUNCTIONS = (
    "array.scattering",
    "compiler.inlining",
    "compiler.ops.control_batching",
    "compiler.ops.control_derivatives",
    "compiler.ops.elimination",
    "compiler.ops.exact",
    "compiler.ops.without_effects",
    "core.dlpack",
    "core.foreign",
    "eager.one_op",
    "eager.sights",
    "eager.small_matrices",
    "effects.likeness",
    "jit.guards.observe",
    "jit.hidden",
    "jit.operation_plans",
    "jit.profiling",
    "runtime.calls.guard_program",
    "runtime.calls.method_slots",
    "runtime.calls.native_call",
    "runtime.cpu",
    "runtime.handlers",
    "runtime.interrupts",
    "runtime.threads.team",
    "tracing.convert.source",
    "tracing.examples",
)


def __getattr__(name: str) -> _typing.Any:
    if name not in _names.sources:
        raise _other_names.NoSuchName("module 'hybridflow'", name, _other_names.OF_MODULE.get(name), __all__)
    if name == "function":
        _load_for_functions()  # what they meet in a trace
    return _load(name)


def _load(name: str) -> _typing.Any:
    value = globals()[name] = _apart.run(_names.sources[name].load)
    _names.hide_internal_modules(globals())
    return value


@_apart.loaded
def _load_for_models() -> None:  # asked for before a fork alone
    for name in _names.of_packages(f"hybridflow.{package}" for package in _OF_MODELS):
        _load(name)


@_apart.loaded
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
_other_names.give(_operators.Operators, _Tensor, globals())
