"""TensorFlow 1's names, ``import hybridflow.compat.v1 as tf``: graphs, sessions, and what programs build with them.

Functions record operations of the default graph, until ``tf.enable_eager_execution()``.  What a session is asked for is
compiled as one program.
"""

from __future__ import annotations

import functools as _functools
import types as _types
from collections.abc import Iterable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import hybridflow as _hf
from hybridflow.compat import export as _export
from hybridflow.compat.adapters import values as _values
from hybridflow.compat.facade import Facade as _Facade
from hybridflow.compat.tf import names as _tf_names
from hybridflow.compat.v1 import (
    datasets as _datasets,
    dtype_names as _dtype_names,
    effects as _effects,
    errors as errors,
    functions as _functions,
    global_step as _global_step,
    graph as _graph,
    graph_stack as _graph_stack,
    grouping as _grouping,
    image as _image,
    initializers as _initializers,
    keras_layers as _keras_layers,  # noqa: F401  # which lets Keras's layers take tensors of graphs
    layer_classes as _layer_classes,
    layers as _layers,
    learning_rate_decay as _learning_rate_decay,
    losses as _losses,
    metrics as _metrics,
    monitored_session as _monitored_session,
    moving_averages as _moving_averages,
    naming as _naming,
    nn as _nn,
    old_names as _old,
    parsing as _parsing,
    platform as _platform,
    queues as _queues,
    regularizers as _regularizers,
    rnn as _rnn,
    saver as _saver,
    summary as _summary,
    training as _training,
)
from hybridflow.compat.v1.control import (
    case as case,
    cond as cond,
    foldl as foldl,
    foldr as foldr,
    map_fn as map_fn,
    scan as scan,
    switch_case as switch_case,
    while_loop as while_loop,
)
from hybridflow.compat.v1.derivatives import gradients as gradients, hessians as hessians
from hybridflow.compat.v1.graph import Graph as Graph, reset_default_graph as reset_default_graph
from hybridflow.compat.v1.initializers import (
    constant_initializer as constant_initializer,
    glorot_normal_initializer as glorot_normal_initializer,
    glorot_uniform_initializer as glorot_uniform_initializer,
    ones_initializer as ones_initializer,
    orthogonal_initializer as orthogonal_initializer,
    random_normal_initializer as random_normal_initializer,
    random_uniform_initializer as random_uniform_initializer,
    truncated_normal_initializer as truncated_normal_initializer,
    uniform_unit_scaling_initializer as uniform_unit_scaling_initializer,
    variance_scaling_initializer as variance_scaling_initializer,
    zeros_initializer as zeros_initializer,
)
from hybridflow.compat.v1.nodes import GraphDef as GraphDef, Operation as Operation, Tensor as Tensor
from hybridflow.compat.v1.platform import (
    ConfigProto as ConfigProto,
    GPUOptions as GPUOptions,
    GraphKeys as GraphKeys,
    GraphOptions as GraphOptions,
    OptimizerOptions as OptimizerOptions,
    RunMetadata as RunMetadata,
    RunOptions as RunOptions,
)
from hybridflow.compat.v1.recording import Recorded as _Recorded
from hybridflow.compat.v1.scopes import (
    AUTO_REUSE as AUTO_REUSE,
    VariableScope as VariableScope,
    fixed_size_partitioner as fixed_size_partitioner,
    get_local_variable as get_local_variable,
    get_variable as get_variable,
    get_variable_scope as get_variable_scope,
    min_max_variable_partitioner as min_max_variable_partitioner,
    variable_axis_size_partitioner as variable_axis_size_partitioner,
    variable_scope as variable_scope,
)
from hybridflow.compat.v1.session import InteractiveSession as InteractiveSession, Session as Session
from hybridflow.compat.v1.shapes import (
    Dimension as Dimension,
    TensorShape as TensorShape,
    disable_v2_tensorshape as disable_v2_tensorshape,
    enable_v2_tensorshape as enable_v2_tensorshape,
)
from hybridflow.compat.v1.tensor_arrays import TensorArray as TensorArray
from hybridflow.compat.v1.variable_functions import (
    all_variables as all_variables,
    assign as assign,
    assign_add as assign_add,
    assign_sub as assign_sub,
    count_up_to as count_up_to,
    global_variables as global_variables,
    is_variable_initialized as is_variable_initialized,
    local_variables as local_variables,
    model_variables as model_variables,
    moving_average_variables as moving_average_variables,
    report_uninitialized_variables as report_uninitialized_variables,
    scatter_add as scatter_add,
    scatter_nd_update as scatter_nd_update,
    scatter_sub as scatter_sub,
    scatter_update as scatter_update,
    trainable_variables as trainable_variables,
)
from hybridflow.compat.v1.variables import Variable as Variable

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike
    from hybridflow.core.type_aliases import DTypeLike


float16, float32, float64, bfloat16 = _values.float16, _values.float32, _values.float64, _values.bfloat16
int8, int16, int32, int64 = _values.int8, _values.int16, _values.int32, _values.int64
uint8, uint16, uint32, uint64 = _values.uint8, _values.uint16, _values.uint32, _values.uint64
bool, half, double, string, DType = _values.bool_, float16, float64, _dtype_names.string, _values.DType
newaxis = None
__version__ = "1.15.0"
VERSION = __version__
GIT_VERSION = COMPILER_VERSION = "unknown"


def get_default_graph() -> Graph:
    """The innermost open graph, or that of the process."""
    return _graph.default_graph()


def get_default_session() -> Any:
    """The innermost session that is a default one, or None."""
    return _graph_stack.default_session()


def disable_eager_execution() -> None:
    """Record operations wherever functions of ``tf`` are called, those of ``hybridflow.compat.tf`` too."""
    _graph_stack.set_recording(True)


def enable_eager_execution(*_: object, **__: object) -> None:
    """Compute at once, but for what is within a ``tf.Graph().as_default()``."""
    _graph_stack.set_recording(False)


disable_v2_behavior, enable_v2_behavior = disable_eager_execution, enable_eager_execution


def executing_eagerly() -> Any:
    """Whether functions compute at once."""
    return not _graph_stack.is_recording(True)


def _nothing(*_: object, **__: object) -> None:
    """Accepted, and of no meaning here."""


disable_resource_variables = enable_resource_variables = disable_control_flow_v2 = _nothing
enable_control_flow_v2 = disable_tensor_equality = enable_tensor_equality = _nothing


@contextmanager
def name_scope(name: str | None = None, default_name: str | None = None, values: TensorLike | None = None) -> Any:
    """Names of operations made in the block begin with this one."""
    with get_default_graph().name_scope(default_name if name is None else name) as opened:
        yield opened


op_scope = name_scope


def control_dependencies(control_inputs: Iterable[Any] | None) -> Any:
    return get_default_graph().control_dependencies(control_inputs)


def device(device_name_or_function: object) -> Any:
    return get_default_graph().device(device_name_or_function)


def colocate_with(op: object, ignore_existing: object = False) -> Any:
    return get_default_graph().device("")


def add_to_collection(name: object, value: object) -> None:
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: object, value: object) -> None:
    get_default_graph().add_to_collections(names, value)


def get_collection(key: TensorLike, scope: str | None = None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: TensorLike) -> list[Any]:
    return get_default_graph().get_collection_ref(key)


def global_variables_initializer() -> Operation:
    """The operation that gives all variables the values that they start from."""
    return variables_initializer(global_variables(), "init")


def local_variables_initializer() -> Operation:
    """The same for those of metrics, and other local ones."""
    return variables_initializer(local_variables(), "init")


def variables_initializer(var_list: Any, name: str = "init") -> Operation:
    with get_default_graph().in_body(None):
        return _grouping.group(*[v.initializer for v in var_list], name=name)


initialize_all_variables, initialize_variables = global_variables_initializer, variables_initializer
initialize_local_variables = local_variables_initializer


def tables_initializer(name: str = "init_all_tables") -> Operation:
    return _grouping.no_op(name)


def is_tensor(x: TensorLike) -> Any:
    return isinstance(x, (Tensor, Variable, _hf.Tensor))


def as_dtype(type_value: DTypeLike) -> Any:
    return _dtype_names.shown(_dtype_names.kind_of(type_value))


def _recorded(module: object) -> Any:
    """What hybridflow has under a name that nothing here has: recorded, as an operation of a type like its name."""

    def look_up(name: str) -> Any:
        value = getattr(module, name, None) if name in dir(module) else None
        if not callable(value) or isinstance(value, type):
            return None
        return _Recorded(value, _old.type_of(name), name)

    return look_up


_NAMES = {
    **_functions.TABLE,
    **_effects.NAMES,
    **_parsing.TOP_NAMES,
    "extract_image_patches": _image.extract_image_patches,
    "Summary": _summary.Summary,
    **{
        name: getattr(_queues, name)
        for name in ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue", "QueueBase")
    },
}
_cells = _naming.Namespace("tf.nn.rnn_cell", _rnn.NAMES)
_loops = {"dynamic_rnn": _rnn.dynamic_rnn, "static_rnn": _rnn.static_rnn, "rnn_cell": _cells} | {
    "bidirectional_dynamic_rnn": _rnn.bidirectional_dynamic_rnn,
    "static_bidirectional_rnn": _rnn.static_bidirectional_rnn,
}
nn = _old.room("nn", _nn.TABLE | _loops, _recorded(_hf.nn))
summary = _naming.Namespace("tf.summary", _summary.NAMES)
data = _naming.Namespace("tf.data", _datasets.NAMES)
layers = _naming.Namespace("tf.layers", _layers.NAMES | _layer_classes.NAMES)
losses = _naming.Namespace("tf.losses", _losses.NAMES)
metrics = _naming.Namespace("tf.metrics", _metrics.NAMES)
train = _old.room(
    "train",
    _training.NAMES
    | _global_step.NAMES
    | _learning_rate_decay.NAMES
    | _monitored_session.NAMES
    | {
        "ExponentialMovingAverage": _moving_averages.ExponentialMovingAverage,
        "summary_iterator": _summary.summary_iterator,
    }
    | {
        name: getattr(_queues, name)
        for name in (
            "Coordinator", "QueueRunner", "add_queue_runner", "start_queue_runners", "range_input_producer",
            "slice_input_producer", "string_input_producer", "input_producer", "limit_epochs", "batch", "shuffle_batch",
            "match_filenames_once", "batch_join", "shuffle_batch_join",
        )
    }
    | {
        name: getattr(_saver, name)
        for name in (
            "Saver", "checkpoint_exists", "get_checkpoint_state", "latest_checkpoint", "list_variables",
            "load_checkpoint", "load_variable", "update_checkpoint_state", "CheckpointReader", "NewCheckpointReader",
        )
    },
)  # fmt: skip
_starts = {
    name.removesuffix("_initializer"): value
    for name, value in vars(_initializers).items()
    if name.endswith("_initializer")
}
initializers = _naming.Namespace("tf.initializers", {**_starts, "global_variables": global_variables_initializer})
random = _old.room(
    "random",
    {
        "normal": _functions.TABLE["random_normal"],
        "uniform": _functions.TABLE["random_uniform"],
        "truncated_normal": _functions.TABLE["truncated_normal"],
        "shuffle": _functions.TABLE["random_shuffle"],
        "set_random_seed": _functions.TABLE["set_random_seed"],
        "multinomial": _functions.TABLE["multinomial"],
    },
)
math = _old.room("math", _functions.TABLE, _recorded(_hf))
linalg = _old.room(
    "linalg", {name: _functions.TABLE[name] for name in ("matmul", "norm", "diag", "eye")}, _recorded(_hf.linalg)
)
flags = _naming.Namespace("tf.flags", _platform.flag_names)
app = _naming.Namespace("tf.app", {"run": _platform.run, "flags": flags})
logging = _naming.Namespace("tf.logging", _platform.log_names)
gfile = _naming.Namespace("tf.gfile", _platform.file_names)
contrib = _naming.Namespace(
    "tf.contrib",
    {
        "rnn": _naming.Namespace(
            "tf.contrib.rnn",
            {**_rnn.NAMES, "static_rnn": _rnn.static_rnn, "static_bidirectional_rnn": _rnn.static_bidirectional_rnn},
        ),
        "layers": _naming.Namespace(
            "tf.contrib.layers",
            {
                "xavier_initializer": lambda uniform=True, seed=None, dtype=float32: (
                    glorot_uniform_initializer if uniform else glorot_normal_initializer
                )(seed=seed),
                "variance_scaling_initializer": lambda factor=2.0, mode="FAN_IN", uniform=False, seed=None: (
                    variance_scaling_initializer(factor, mode.lower(), "uniform" if uniform else "normal", seed)
                ),
                "l2_regularizer": _regularizers.l2_regularizer,
                "l1_regularizer": _regularizers.l1_regularizer,
                "flatten": _layers.flatten,
            },
        ),
    },
)
test = _old.room("test", {"is_gpu_available": lambda *_: False, "gpu_device_name": lambda: ""})
image = _old.room("image", {**_image.TABLE, "ResizeMethod": _image.ResizeMethod})
bitwise, nest, saved_model = (_old.room(path) for path in ("bitwise", "nest", "saved_model"))
config, keras, autograph = (_old.module_of(path) for path in ("config", "keras", "autograph"))
distribute, optimizers, version, sysconfig = (
    _old.module_of(path) for path in ("distribute", "optimizers", "version", "sysconfig")
)
debugging = _old.room("debugging", {name: value for name, value in _effects.NAMES.items() if "ssert" in name})
python_io = _naming.Namespace(
    "tf.python_io", {"TFRecordWriter": _hf.data.TFRecordWriter, "tf_record_iterator": _parsing.tf_record_iterator}
)
io = _old.room("io", {**_parsing.NAMES, **python_io._names, "gfile": gfile, "write_graph": _parsing.write_graph})
strings = _naming.Namespace("tf.strings", _parsing.STRINGS)
custom_gradient, function = _old.custom_gradient, _old.function
_hybridflows = _recorded(_hf)


def _fallback(name: str) -> Any:
    """What TensorFlow 2 or hybridflow has under a name: recorded where a graph is built."""
    try:
        return _old.recorded(_old.RENAMED.get(name, name))
    except (AttributeError, ImportError):
        return _hybridflows(name)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    result = _NAMES.get(name)
    if result is None:
        result = _fallback(name)
    if result is None:
        raise AttributeError(_naming.missing("tf", name, dict.fromkeys(__dir__())))
    globals()[name] = result
    return result


def __dir__() -> list[str]:
    public = {name for name, value in globals().items() if not name.startswith("_") and not _is_inside(value)}
    return sorted({"errors", *public, *_NAMES})


def _is_inside(value: object) -> Any:
    """Whether it is one of the modules that make these names, which importing puts among them."""
    return isinstance(value, _types.ModuleType) and value.__name__.startswith(f"{__name__}.")


# Of TensorFlow 2, what builds a graph in another way than by a function that records.
_OF_GRAPHS = {
    "group": _grouping.group,
    "no_op": _grouping.no_op,
    "cond": cond,
    "case": case,
    "switch_case": switch_case,
    "while_loop": while_loop,
    "map_fn": map_fn,
    "foldl": foldl,
    "foldr": foldr,
    "scan": scan,
    "name_scope": name_scope,
    "control_dependencies": control_dependencies,
}


def _either(of_graphs: Any, value: Any) -> Any:
    """TensorFlow 2's function, or TensorFlow 1's where a graph is open."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return (of_graphs if _graph_stack.is_recording(False) else value)(*args, **kwargs)

    return _Facade(value, call) if isinstance(value, type) else _functools.wraps(value)(call)


def _recording(name: str, value: object) -> Any:
    """A function of ``hybridflow.compat.tf`` as one that records, too, where a graph is open."""
    if name in _OF_GRAPHS:
        return _either(_OF_GRAPHS[name], value)
    room, _, last = name.rpartition(".")
    if room not in ("", "math", "nn", "linalg", "random") or not isinstance(value, _types.FunctionType):
        return value
    recorded, meaning = _functions.TABLE.get(last), _export.MEANINGS.get(name)
    if meaning is not None and meaning.op_type is not None:
        kind = meaning.op_type
    else:
        kind = recorded.type if isinstance(recorded, _Recorded) else _old.type_of(last)
    return _Recorded(value, kind, by_default=False)


_tf_names.let_record(_recording)
__all__ = [name for name in __dir__() if name != "annotations"]
