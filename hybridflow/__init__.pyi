# The public names, each with the module that has it: the one list of them, which ``__init__.py`` reads.

from hybridflow import (
    aot as aot,
    applications as applications,
    callbacks as callbacks,
    checkpoint as checkpoint,
    compat as compat,
    config as config,
    constraints as constraints,
    data as data,
    debugging as debugging,
    distribute as distribute,
    errors as errors,
    fft as fft,
    initializers as initializers,
    integrate as integrate,
    interpolate as interpolate,
    layers as layers,
    linalg as linalg,
    lookup as lookup,
    losses as losses,
    memory as memory,
    metrics as metrics,
    mixed_precision as mixed_precision,
    models as models,
    nn as nn,
    onnx as onnx,
    optimize as optimize,
    optimizers as optimizers,
    quantize as quantize,
    ragged as ragged,
    random as random,
    regularizers as regularizers,
    saved as saved,
    serving as serving,
    signal as signal,
    sparse as sparse,
    special as special,
    strings as strings,
    summary as summary,
    tree as tree,
    weights as weights,
)
from hybridflow.array.bit_packing import (
    packbits as packbits,
    unpackbits as unpackbits,
)
from hybridflow.array.choosing import (
    choose as choose,
    piecewise as piecewise,
    put_along_axis as put_along_axis,
    select as select,
)
from hybridflow.array.composed_elementwise import (
    bitwise_count as bitwise_count,
    deg2rad as deg2rad,
    divmod as divmod,
    float_power as float_power,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    frexp as frexp,
    gcd as gcd,
    heaviside as heaviside,
    isneginf as isneginf,
    isposinf as isposinf,
    lcm as lcm,
    ldexp as ldexp,
    modf as modf,
    rad2deg as rad2deg,
)
from hybridflow.array.correlation import (
    convolve as convolve,
    correlate as correlate,
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
from hybridflow.array.differences import (
    diff as diff,
    ediff1d as ediff1d,
    gradient as gradient,
    trapezoid as trapezoid,
    unwrap as unwrap,
)
from hybridflow.array.elementwise import (
    abs as abs,
    acos as acos,
    acosh as acosh,
    add as add,
    angle as angle,
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
    cbrt as cbrt,
    ceil as ceil,
    clip as clip,
    complex as complex,
    conj as conj,
    copysign as copysign,
    cos as cos,
    cosh as cosh,
    divide as divide,
    equal as equal,
    erf as erf,
    exp as exp,
    exp2 as exp2,
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
from hybridflow.array.grids import (
    ix_ as ix_,
    mgrid as mgrid,
    ogrid as ogrid,
    ravel_multi_index as ravel_multi_index,
    tri as tri,
    unravel_index as unravel_index,
    vander as vander,
)
from hybridflow.array.histograms import (
    bincount as bincount,
    digitize as digitize,
    histogram as histogram,
    histogramdd as histogramdd,
)
from hybridflow.array.indexed_slices import IndexedSlices as IndexedSlices
from hybridflow.array.indexing import (
    gather as gather,
    gather_nd as gather_nd,
    one_hot as one_hot,
    scatter_add as scatter_add,
    take as take,
    take_along_axis as take_along_axis,
)
from hybridflow.array.inspection import namespace_info as __array_namespace_info__  # noqa: F401
from hybridflow.array.interpolation import (
    interp as interp,
)
from hybridflow.array.linalg import (
    diag as diag,
    diagonal as diagonal,
    einsum as einsum,
    kron as kron,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    trace as trace,
    vecdot as vecdot,
)
from hybridflow.array.nan_reductions import (
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmin as nanmin,
    nanprod as nanprod,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
)
from hybridflow.array.polynomials import (
    polyfit as polyfit,
    polyval as polyval,
    roots as roots,
)
from hybridflow.array.quantiles import (
    median as median,
    nanmedian as nanmedian,
    nanpercentile as nanpercentile,
    nanquantile as nanquantile,
    percentile as percentile,
    quantile as quantile,
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
from hybridflow.array.scans import (
    cumlogsumexp as cumlogsumexp,
    cummax as cummax,
    cummin as cummin,
)
from hybridflow.array.segment_ops import (
    segment_max as segment_max,
    segment_mean as segment_mean,
    segment_min as segment_min,
    segment_prod as segment_prod,
    segment_sum as segment_sum,
)
from hybridflow.array.selection import (
    boolean_mask as boolean_mask,
    nonzero as nonzero,
    repeat as repeat,
)
from hybridflow.array.sets import (
    isin as isin,
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
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
    rot90 as rot90,
    split as split,
    squeeze as squeeze,
    stack as stack,
    tile as tile,
    unstack as unstack,
)
from hybridflow.array.sorting import (
    argpartition as argpartition,
    argsort as argsort,
    lexsort as lexsort,
    partition as partition,
    searchsorted as searchsorted,
    sort as sort,
    top_k as top_k,
)
from hybridflow.array.statistics import (
    average as average,
    corrcoef as corrcoef,
    cov as cov,
    ptp as ptp,
)
from hybridflow.array.windows import (
    reduce_window as reduce_window,
    rolling as rolling,
    sliding_window_view as sliding_window_view,
)
from hybridflow.autodiff.custom import custom_gradient as custom_gradient
from hybridflow.autodiff.forward_mode import ForwardAccumulator as ForwardAccumulator
from hybridflow.autodiff.functional import (
    grad as grad,
    value_and_grad as value_and_grad,
)
from hybridflow.autodiff.jacobians import (
    hessian as hessian,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
    jvp as jvp,
    linearize as linearize,
    vjp as vjp,
)
from hybridflow.autodiff.tape import GradientTape as GradientTape
from hybridflow.compiler.ir.dtypes import (
    bfloat16 as bfloat16,
    bool_ as bool_,
    complex64 as complex64,
    complex128 as complex128,
    float4_e2m1fn as float4_e2m1fn,
    float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int2 as int2,
    int4 as int4,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint2 as uint2,
    uint4 as uint4,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from hybridflow.control.cond import (
    case as case,
    cond as cond,
    switch_case as switch_case,
)
from hybridflow.control.loops import (
    fori_loop as fori_loop,
    while_loop as while_loop,
)
from hybridflow.control.scan import (
    associative_scan as associative_scan,
    foldl as foldl,
    foldr as foldr,
    map_fn as map_fn,
    scan as scan,
)
from hybridflow.control.tensor_array import TensorArray as TensorArray
from hybridflow.core.devices import (
    device as device,
    list_devices as list_devices,
)
from hybridflow.core.tensor import Tensor as Tensor
from hybridflow.core.variable import Variable as Variable
from hybridflow.effects.printing import print as print
from hybridflow.effects.py_function import (
    numpy_function as numpy_function,
    py_function as py_function,
)
from hybridflow.jit.function import function as function
from hybridflow.jit.recompute import recompute_grad as recompute_grad
from hybridflow.jit.run_eagerly import eager as eager
from hybridflow.jit.stance import stance as stance
from hybridflow.jit.tensor_spec import TensorSpec as TensorSpec
from hybridflow.jit.timeline import profile as profile
from hybridflow.layers.functional_graph import Input as Input
from hybridflow.mapping.vmap import (
    apply_along_axis as apply_along_axis,
    vectorized_map as vectorized_map,
    vmap as vmap,
)
from hybridflow.models import (
    Model as Model,
    Sequential as Sequential,
    plot_model as plot_model,
)
from hybridflow.module import Module as Module

__version__: str
__array_api_version__: str
e: float
pi: float
inf: float
nan: float
newaxis: None
bool = bool_
