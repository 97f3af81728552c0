"""hybridflow: a hybrid eager-plus-tracing tensor compiler.

``import hybridflow as hf``: operations run at once, ``@hf.function`` compiles them through LLVM, ``hf.GradientTape``
differentiates either.  Array functions carry the names of the Python array API standard, the rest TensorFlow 2's.
"""

import importlib as _importlib
import math as _math
import sys as _sys
import typing as _typing

from hybridflow import errors as errors, flags as _flags
from hybridflow.array import (
    assignment as _assignment,
    numpy_protocols as _numpy_protocols,
    operators as _operators,
    setitem as _setitem,
)
from hybridflow.array.creation import (
    arange as arange,
    asarray as asarray,
    constant as constant,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    from_dlpack as from_dlpack,
    full as full,
    full_like as full_like,
    linspace as linspace,
    meshgrid as meshgrid,
    ones as ones,
    ones_like as ones_like,
    tril as tril,
    triu as triu,
    zeros as zeros,
    zeros_like as zeros_like,
)
from hybridflow.array.datatypes import (
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    result_type as result_type,
)
from hybridflow.array.elementwise import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    asin as asin,
    asinh as asinh,
    astype as astype,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    ceil as ceil,
    clip as clip,
    conj as conj,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    divide as divide,
    equal as equal,
    erf as erf,
    exp as exp,
    expm1 as expm1,
    floor as floor,
    floor_divide as floor_divide,
    greater as greater,
    greater_equal as greater_equal,
    hypot as hypot,
    imag as imag,
    isclose as isclose,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    less as less,
    less_equal as less_equal,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    logaddexp as logaddexp,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    maximum as maximum,
    minimum as minimum,
    multiply as multiply,
    nan_to_num as nan_to_num,
    negative as negative,
    nextafter as nextafter,
    not_equal as not_equal,
    positive as positive,
    pow as pow,
    power as power,
    real as real,
    reciprocal as reciprocal,
    remainder as remainder,
    round as round,
    rsqrt as rsqrt,
    sigmoid as sigmoid,
    sign as sign,
    signbit as signbit,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    square as square,
    stop_gradient as stop_gradient,
    subtract as subtract,
    tan as tan,
    tanh as tanh,
    trunc as trunc,
    where as where,
)
from hybridflow.array.indexing import (
    gather as gather,
    gather_nd as gather_nd,
    one_hot as one_hot,
    scatter_add as scatter_add,
    take as take,
    take_along_axis as take_along_axis,
)
from hybridflow.array.inspection import namespace_info as __array_namespace_info__  # noqa: F401
from hybridflow.array.linalg import (
    diagonal as diagonal,
    einsum as einsum,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
    vecdot as vecdot,
)
from hybridflow.array.reductions import (
    all as all,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    logsumexp as logsumexp,
    max as max,
    mean as mean,
    min as min,
    prod as prod,
    reduce_max as reduce_max,
    reduce_mean as reduce_mean,
    reduce_min as reduce_min,
    reduce_prod as reduce_prod,
    reduce_sum as reduce_sum,
    std as std,
    sum as sum,
    var as var,
)
from hybridflow.array.shapes import (
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
    concat as concat,
    expand_dims as expand_dims,
    flip as flip,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    pad as pad,
    permute_dims as permute_dims,
    reshape as reshape,
    roll as roll,
    split as split,
    squeeze as squeeze,
    stack as stack,
    tile as tile,
    unstack as unstack,
)
from hybridflow.array.sorting import argsort as argsort, sort as sort, top_k as top_k
from hybridflow.compiler.ir.dtypes import (
    bfloat16 as bfloat16,
    bool_ as bool_,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from hybridflow.core import native_type as _native_type, other_names as _other_names
from hybridflow.core.devices import device as device, list_devices as list_devices
from hybridflow.core.tensor import Tensor as Tensor
from hybridflow.core.variable import Variable as Variable
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

if _typing.TYPE_CHECKING:  # what is loaded when it is first used, see ``_LATER``
    from hybridflow import (
        callbacks as callbacks,
        checkpoint as checkpoint,
        compat as compat,
        config as config,
        constraints as constraints,
        data as data,
        debugging as debugging,
        initializers as initializers,
        layers as layers,
        linalg as linalg,
        losses as losses,
        memory as memory,
        metrics as metrics,
        mixed_precision as mixed_precision,
        models as models,
        nn as nn,
        optimizers as optimizers,
        random as random,
        regularizers as regularizers,
        saved as saved,
        summary as summary,
        tree as tree,
    )
    from hybridflow.array.differences import diff as diff
    from hybridflow.array.histograms import bincount as bincount, histogram as histogram
    from hybridflow.array.indexed_slices import IndexedSlices as IndexedSlices
    from hybridflow.array.quantiles import (
        median as median,
        nanmedian as nanmedian,
        nanquantile as nanquantile,
        percentile as percentile,
        quantile as quantile,
    )
    from hybridflow.array.searching import searchsorted as searchsorted
    from hybridflow.array.segments import (
        segment_max as segment_max,
        segment_mean as segment_mean,
        segment_min as segment_min,
        segment_prod as segment_prod,
        segment_sum as segment_sum,
    )
    from hybridflow.array.selection import boolean_mask as boolean_mask, nonzero as nonzero, repeat as repeat
    from hybridflow.array.sets import (
        isin as isin,
        unique_all as unique_all,
        unique_counts as unique_counts,
        unique_inverse as unique_inverse,
        unique_values as unique_values,
    )
    from hybridflow.autodiff.custom import custom_gradient as custom_gradient
    from hybridflow.autodiff.functional import grad as grad, value_and_grad as value_and_grad
    from hybridflow.autodiff.products import (
        hessian as hessian,
        jacfwd as jacfwd,
        jacobian as jacobian,
        jacrev as jacrev,
        jvp as jvp,
        linearize as linearize,
        vjp as vjp,
    )
    from hybridflow.autodiff.tangents import ForwardAccumulator as ForwardAccumulator
    from hybridflow.autodiff.tape import GradientTape as GradientTape
    from hybridflow.control.branches import case as case, cond as cond, switch_case as switch_case
    from hybridflow.control.loops import fori_loop as fori_loop, while_loop as while_loop
    from hybridflow.control.tensor_array import TensorArray as TensorArray
    from hybridflow.control.walks import (
        associative_scan as associative_scan,
        foldl as foldl,
        foldr as foldr,
        map_fn as map_fn,
        scan as scan,
    )
    from hybridflow.effects.printing import print as print
    from hybridflow.effects.py_function import numpy_function as numpy_function, py_function as py_function
    from hybridflow.jit.eagerly import eager as eager
    from hybridflow.jit.function import function as function
    from hybridflow.jit.recompute import recompute_grad as recompute_grad
    from hybridflow.jit.stances import stance as stance
    from hybridflow.jit.tensor_spec import TensorSpec as TensorSpec
    from hybridflow.layers.graph import Input as Input
    from hybridflow.layers.module import Module as Module
    from hybridflow.mapping.vmap import vectorized_map as vectorized_map, vmap as vmap
    from hybridflow.models import Model as Model, Sequential as Sequential, plot_model as plot_model

if _flags.KEEP_TEXT.value == "1" or hasattr(_sys, "ps1") or "code" in _sys.modules:
    from hybridflow.tracing.convert import texts as _texts

    if _flags.KEEP_TEXT.value == "1" or _texts.is_console():
        _texts.listen()  # helpers are typed before the function that calls them

__version__ = "0.1.0"
__array_api_version__ = "2025.12"

e, pi, inf, nan = _math.e, _math.pi, _math.inf, _math.nan
newaxis = None
bool = bool_

# What a first operation does without: where it is.  Modules of this package are the name itself.
_LATER = {
    "ForwardAccumulator": "autodiff.tangents",
    "eager": "jit.eagerly",
    "GradientTape": "autodiff.tape",
    "IndexedSlices": "array.indexed_slices",
    "Input": "layers.graph",
    "Model": "models",
    "Module": "layers.module",
    "Sequential": "models",
    "TensorArray": "control.tensor_array",
    "TensorSpec": "jit.tensor_spec",
    "associative_scan": "control.walks",
    "bincount": "array.histograms",
    "boolean_mask": "array.selection",
    "callbacks": "",
    "case": "control.branches",
    "checkpoint": "",
    "compat": "",
    "cond": "control.branches",
    "config": "",
    "constraints": "",
    "custom_gradient": "autodiff.custom",
    "data": "",
    "debugging": "",
    "diff": "array.differences",
    "foldl": "control.walks",
    "foldr": "control.walks",
    "fori_loop": "control.loops",
    "function": "jit.function",
    "grad": "autodiff.functional",
    "hessian": "autodiff.products",
    "histogram": "array.histograms",
    "initializers": "",
    "isin": "array.sets",
    "jacfwd": "autodiff.products",
    "jacobian": "autodiff.products",
    "jacrev": "autodiff.products",
    "jvp": "autodiff.products",
    "layers": "",
    "linalg": "",
    "linearize": "autodiff.products",
    "losses": "",
    "map_fn": "control.walks",
    "median": "array.quantiles",
    "memory": "",
    "metrics": "",
    "mixed_precision": "",
    "models": "",
    "nanmedian": "array.quantiles",
    "nanquantile": "array.quantiles",
    "nn": "",
    "numpy_function": "effects.py_function",
    "nonzero": "array.selection",
    "optimizers": "",
    "percentile": "array.quantiles",
    "plot_model": "models",
    "print": "effects.printing",
    "py_function": "effects.py_function",
    "quantile": "array.quantiles",
    "random": "",
    "recompute_grad": "jit.recompute",
    "regularizers": "",
    "repeat": "array.selection",
    "saved": "",
    "scan": "control.walks",
    "searchsorted": "array.searching",
    "segment_max": "array.segments",
    "segment_mean": "array.segments",
    "segment_min": "array.segments",
    "segment_prod": "array.segments",
    "segment_sum": "array.segments",
    "stance": "jit.stances",
    "summary": "",
    "switch_case": "control.branches",
    "tree": "",
    "unique_all": "array.sets",
    "unique_counts": "array.sets",
    "unique_inverse": "array.sets",
    "unique_values": "array.sets",
    "value_and_grad": "autodiff.functional",
    "vectorized_map": "mapping.vmap",
    "vjp": "autodiff.products",
    "vmap": "mapping.vmap",
    "while_loop": "control.loops",
}
# What models are built of, trained and kept with, which most functions do without.  A function that meets it first in a
# trace has it loaded apart, as a thread's doing and not its own.
_OF_MODELS = frozenset(
    (
        *("Input", "Model", "Module", "Sequential", "callbacks", "checkpoint", "compat", "constraints", "data"),
        *("initializers", "layers", "losses", "metrics", "mixed_precision", "models", "optimizers", "plot_model"),
        *("regularizers", "saved", "summary"),
    )
)
# What functions need besides, some of them at first calls alone: by then nothing is imported any more but the compiler,
# where handlers of signals might come upon half of it (see ``runtime.apart``).
_INSIDE = (
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
_PUBLIC_MODULES = frozenset(
    (
        "callbacks",
        "checkpoint",
        "compat",
        "config",
        "constraints",
        "data",
        "debugging",
        "errors",
        "initializers",
        "layers",
        "linalg",
        "losses",
        "memory",
        "metrics",
        "mixed_precision",
        "models",
        "nn",
        "optimizers",
        "random",
        "regularizers",
        "saved",
        "summary",
        "tree",
    )
)


if not _typing.TYPE_CHECKING:  # a checker would take every name for one of ours

    def __getattr__(name: str) -> _typing.Any:
        if name not in _LATER:
            raise _other_names.NoSuchName("module 'hybridflow'", name, _other_names.OF_MODULE.get(name), __all__)
        if name == "function":
            _load_for_functions()  # what they meet in a trace
        return _load(name)


def _load(name: str) -> _typing.Any:
    module = _apart.run(lambda: _importlib.import_module(f"hybridflow.{_LATER[name] or name}"))
    found = globals()[name] = getattr(module, name) if _LATER[name] else module
    _hide_rooms()
    return found


@_apart.loaded
def _load_for_models() -> None:  # asked for before a fork alone
    for name in _OF_MODELS:
        _load(name)


@_apart.loaded
def _load_for_functions() -> None:
    for name in _LATER:
        if name not in _OF_MODELS:
            _load(name)
    for inside in _INSIDE:
        _importlib.import_module(f"hybridflow.{inside}")
    _hide_rooms()


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def _hide_rooms() -> None:
    """Take the names of internal modules, which importing them leaves here, away again."""
    for name, value in list(globals().items()):
        if type(value) is type(_sys) and name not in _PUBLIC_MODULES and not name.startswith("_"):
            globals().pop(name, None)


_hide_rooms()
__all__ = sorted({name for name in globals() if not name.startswith("_")} | _LATER.keys())
_other_names.give(_operators.Operators, Tensor, globals())
