"""Devices, settings of the process, and what programs ask about TensorFlow itself."""

from __future__ import annotations

import enum
import re
import unittest
from typing import Any, NamedTuple

import numpy as np

import hybridflow as hf
from hybridflow.compat.adapters.control import name_scope
from hybridflow.compat.export import TensorLike, export, tf_export
from hybridflow.errors import DeviceError

VERSION = "2.21.0"  # whose names and arguments these are
KERAS_VERSION = "3.15.0"
# Of tf.errors, where Python's own errors say it.
FileExistsError, FileNotFoundError, MemoryError = FileExistsError, FileNotFoundError, MemoryError
NotImplementedError, PermissionError, StopIteration = NotImplementedError, PermissionError, StopIteration
TimeoutError = TimeoutError
_DEVICE = re.compile(r"(?:/job:[^/]*)?(?:/replica:\d+)?(?:/task:\d+)?/?(?:device:)?([A-Za-z]+)(?::(\d+|\*))?$")


@tf_export("config.PhysicalDevice")
class PhysicalDevice(NamedTuple):
    """What ``tf.config.list_physical_devices`` lists."""

    name: str
    device_type: str


@tf_export("config.LogicalDevice")
class LogicalDevice(NamedTuple):
    """What ``tf.config.list_logical_devices`` lists."""

    name: str
    device_type: str


def device_of(name: str) -> str:
    """Our name of a device of TensorFlow: "/GPU:0", "/device:CPU:0", "/job:localhost/replica:0/task:0/device:GPU:1".

    Raises DeviceError for what names none.
    """
    match = _DEVICE.fullmatch(str(name))
    kind = match[1].lower() if match else ""
    if match is None or kind not in ("cpu", "gpu"):
        raise DeviceError("device", f"{name!r} is not a device. Devices are '/CPU:0', '/GPU:0', '/GPU:1' ...")
    return "cpu" if kind == "cpu" else f"gpu:{match[2] if match[2] not in (None, '*') else 0}"


@tf_export("keras.device", "device")
def device(device_name: Any) -> Any:
    """``tf.device``: where there is no such GPU the block runs on the CPU, as with TensorFlow's soft placement."""
    if device_name is None or callable(device_name):
        return name_scope("")
    wanted = device_of(device_name)
    return hf.device(wanted if not _soft or wanted in hf.list_devices() else "cpu")


_soft = True


@tf_export("config.get_soft_device_placement")
def get_soft_device_placement() -> bool:
    """``tf.config.get_soft_device_placement``."""
    return _soft


@tf_export("config.set_soft_device_placement")
def set_soft_device_placement(enabled: bool) -> None:
    """``tf.config.set_soft_device_placement``: whether ``tf.device`` of a GPU that is not there means the CPU."""
    global _soft
    _soft = bool(enabled)


def _kinds() -> list[tuple[str, str]]:
    """Type and number of each device."""
    return [(name.partition(":")[0].upper(), name.partition(":")[2] or "0") for name in hf.list_devices()]


@tf_export(
    "config.get_visible_devices",
    "config.list_physical_devices",
    "config.experimental.list_physical_devices",
    "config.experimental.get_visible_devices",
)
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """``tf.config.list_physical_devices``."""
    devices = [PhysicalDevice(f"/physical_device:{kind}:{number}", kind) for kind, number in _kinds()]
    return [one for one in devices if device_type in (None, one.device_type)]


@tf_export("config.list_logical_devices", "config.experimental.list_logical_devices")
def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """``tf.config.list_logical_devices``."""
    devices = [LogicalDevice(f"/device:{kind}:{number}", kind) for kind, number in _kinds()]
    return [one for one in devices if device_type in (None, one.device_type)]


@tf_export("config.threading.set_intra_op_parallelism_threads")
def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """``tf.config.threading.set_intra_op_parallelism_threads``: 0 is TensorFlow's word for its own choice."""
    if num_threads:
        hf.config.set_num_threads(int(num_threads))


@tf_export("config.threading.get_intra_op_parallelism_threads")
def get_intra_op_parallelism_threads() -> int:
    """``tf.config.threading.get_intra_op_parallelism_threads``."""
    return hf.config.get_num_threads()


@tf_export("config.threading.get_inter_op_parallelism_threads")
def get_inter_op_parallelism_threads() -> int:
    """``tf.config.threading.get_inter_op_parallelism_threads``: one program runs at a time."""
    return 1


@tf_export("config.optimizer.get_jit")
def get_jit() -> str:
    """``tf.config.optimizer.get_jit``: functions are always compiled."""
    return "autoclustering"


@tf_export("config.experimental.get_memory_growth")
def get_memory_growth(device: object) -> bool:
    """``tf.config.experimental.get_memory_growth``: memory is taken when it is needed."""
    return True


@tf_export("test.is_gpu_available")
def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: object = None) -> bool:
    """``tf.test.is_gpu_available``."""
    return bool(list_physical_devices("GPU"))


@tf_export("test.gpu_device_name")
def gpu_device_name() -> str:
    """``tf.test.gpu_device_name``: empty where there is none."""
    gpus = list_logical_devices("GPU")
    return gpus[0].name if gpus else ""


@tf_export("test.is_built_with_cuda", "test.is_built_with_gpu_support")
def is_built_with_cuda() -> bool:
    """``tf.test.is_built_with_cuda``: programs for GPUs are always compiled here."""
    return True


@tf_export("test.TestCase")
class TestCase(unittest.TestCase):
    """``tf.test.TestCase``: unittest's, with assertions about tensors."""

    __test__ = False

    def assertAllClose(
        self, a: TensorLike, b: TensorLike, rtol: float = 1e-6, atol: float = 1e-6, msg: object = None
    ) -> None:
        for x, y in zip(hf.tree.leaves(a), hf.tree.leaves(b), strict=True):
            np.testing.assert_allclose(_array(x), _array(y), rtol, atol, err_msg=msg or "")

    def assertAllEqual(self, a: TensorLike, b: TensorLike, msg: object = None) -> None:
        np.testing.assert_array_equal(_array(a), _array(b), err_msg=msg or "")

    def assertShapeEqual(self, a: TensorLike, b: TensorLike, msg: object = None) -> None:
        self.assertEqual(_array(a).shape, _array(b).shape, msg)

    def evaluate(self, tensors: object) -> Any:
        """The values as NumPy arrays."""
        return hf.tree.map(_array, tensors)


def _array(value: TensorLike) -> np.ndarray:
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


main = unittest.main


@tf_export("sysconfig.get_build_info")
def get_build_info() -> dict[str, Any]:
    """``tf.sysconfig.get_build_info``."""
    return {"is_cuda_build": True, "is_rocm_build": False, "is_tensorrt_build": False}


@tf_export(
    "config.LogicalDeviceConfiguration",
    "config.experimental.VirtualDeviceConfiguration",
    "distribute.NcclAllReduce",
    "distribute.HierarchicalCopyAllReduce",
    "distribute.ReductionToOneDevice",
    "distribute.InputOptions",
    "distribute.RunOptions",
    "train.CheckpointOptions",
    "saved_model.LoadOptions",
    "saved_model.SaveOptions",
    "data.ThreadingOptions",
    "data.experimental.ThreadingOptions",
    "data.experimental.OptimizationOptions",
    "data.experimental.DistributeOptions",
    "data.experimental.AutotuneOptions",
)
class Settings:
    """Options that mean nothing here: they are kept as attributes."""

    def __init__(self, *arguments: object, **options: object) -> None:
        self.given = arguments
        for name, value in options.items():
            setattr(self, name, value)


@tf_export("data.experimental.AutoShardPolicy")
class AutoShardPolicy(enum.IntEnum):
    """``tf.data.experimental.AutoShardPolicy``: there is one worker, who reads all."""

    OFF, AUTO, FILE, DATA, HINT = -1, 0, 1, 2, 3


@tf_export("data.experimental.ExternalStatePolicy")
class ExternalStatePolicy(enum.Enum):
    """``tf.data.experimental.ExternalStatePolicy``."""

    WARN, IGNORE, FAIL = 0, 1, 2


@tf_export("data.experimental.AutotuneAlgorithm")
class AutotuneAlgorithm(enum.Enum):
    """``tf.data.experimental.AutotuneAlgorithm``."""

    DEFAULT, HILL_CLIMB, GRADIENT_DESCENT, MAX_PARALLELISM, STAGE_BASED = range(5)


@tf_export(
    "debugging.is_traceback_filtering_enabled",
    "config.experimental.get_synchronous_execution",
    "test.is_built_with_xla",
    "test.is_cpu_target_available",
)
def yes(*args: object, **options: object) -> bool:
    """A question that is answered by True here."""
    return True


@tf_export(
    "debugging.get_log_device_placement",
    "config.experimental.tensor_float_32_execution_enabled",
    "test.is_built_with_rocm",
)
def no(*args: object, **options: object) -> bool:
    """A question that is answered by False here."""
    return False


@tf_export("config.experimental.get_device_details")
def get_device_details(device: Any) -> dict[str, Any]:
    """``tf.config.experimental.get_device_details``: of a GPU, its number."""
    return {"device_name": device.name} if device.device_type == "GPU" else {}


@tf_export("config.experimental.get_device_policy")
def get_device_policy() -> str:
    """``tf.config.experimental.get_device_policy``: copies between devices are explicit."""
    return "explicit"


@tf_export("config.experimental.get_memory_info")
def get_memory_info(device: str) -> dict[str, int]:
    """``tf.config.experimental.get_memory_info``: bytes in use; the peak is those, and what is kept for reuse."""
    stats = hf.memory.stats()
    return {"current": stats.live, "peak": stats.live + stats.cached}


@tf_export("config.experimental.get_memory_usage")
def get_memory_usage(device: str) -> int:
    """``tf.config.experimental.get_memory_usage``."""
    return get_memory_info(device)["current"]


SERVING_DEFAULT, SERVING, TRAINING = "serving_default", "serve", "train"
(
    OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
    RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS,
    UNAUTHENTICATED,
) = range(17)  # fmt: skip


@tf_export("summary.create_noop_writer")
class create_noop_writer(name_scope):
    """``tf.summary.create_noop_writer``: writes nothing."""

    def as_default(self, step: object = None) -> Any:
        """A block without a writer."""
        return self

    def flush(self) -> None:
        """Nothing waits to be written."""

    init = close = flush


export(main, "test.main")
export(VERSION, "version.GIT_VERSION", "version.COMPILER_VERSION", "version.VERSION")
export(OK, "errors.OK")
export(CANCELLED, "errors.CANCELLED")
export(UNKNOWN, "errors.UNKNOWN")
export(INVALID_ARGUMENT, "errors.INVALID_ARGUMENT")
export(DEADLINE_EXCEEDED, "errors.DEADLINE_EXCEEDED")
export(NOT_FOUND, "errors.NOT_FOUND")
export(ALREADY_EXISTS, "errors.ALREADY_EXISTS")
export(PERMISSION_DENIED, "errors.PERMISSION_DENIED")
export(UNAUTHENTICATED, "errors.UNAUTHENTICATED")
export(RESOURCE_EXHAUSTED, "errors.RESOURCE_EXHAUSTED")
export(FAILED_PRECONDITION, "errors.FAILED_PRECONDITION")
export(ABORTED, "errors.ABORTED")
export(OUT_OF_RANGE, "errors.OUT_OF_RANGE")
export(UNIMPLEMENTED, "errors.UNIMPLEMENTED")
export(INTERNAL, "errors.INTERNAL")
export(UNAVAILABLE, "errors.UNAVAILABLE")
export(DATA_LOSS, "errors.DATA_LOSS")
export(FileExistsError, "errors.AlreadyExistsError")
export(TimeoutError, "errors.DeadlineExceededError")
export(FileNotFoundError, "errors.NotFoundError")
export(StopIteration, "errors.OutOfRangeError")
export(PermissionError, "errors.PermissionDeniedError", "errors.UnauthenticatedError")
export(MemoryError, "errors.ResourceExhaustedError")
export(NotImplementedError, "errors.UnimplementedError")
export(SERVING_DEFAULT, "saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY")
export(SERVING, "saved_model.SERVING")
export(TRAINING, "saved_model.TRAINING")
export(KERAS_VERSION, "keras.version", "keras.__version__")
