"""What is around the computing: checks, settings, devices, tests, errors and files."""

NAMES = """
[debugging]
assert_proper_iterable: ~control.assert_proper_iterable
assert_same_float_dtype: ~control.assert_same_float_dtype
is_numeric_tensor: ~control.is_numeric_tensor
enable_traceback_filtering, disable_traceback_filtering: ~control.nothing
is_traceback_filtering_enabled: ~settings.yes
get_log_device_placement: ~settings.no
Assert: debugging.Assert
assert_all_finite: debugging.assert_all_finite
assert_equal: debugging.assert_equal
assert_greater: debugging.assert_greater
assert_greater_equal: debugging.assert_greater_equal
assert_integer: ~control.assert_integer
assert_less: debugging.assert_less
assert_less_equal: debugging.assert_less_equal
assert_near: debugging.assert_near
assert_negative: debugging.assert_negative
assert_non_negative: debugging.assert_non_negative
assert_non_positive: debugging.assert_non_positive
assert_none_equal: debugging.assert_none_equal
assert_positive: debugging.assert_positive
assert_rank: debugging.assert_rank
assert_rank_at_least: debugging.assert_rank_at_least
assert_rank_in: debugging.assert_rank_in
assert_scalar: debugging.assert_scalar
assert_shapes: debugging.assert_shapes
assert_type: debugging.assert_type(tensor>x, tf_type>dtype, /, message)
check_numerics: debugging.check_numerics
disable_check_numerics: debugging.disable_check_numerics
enable_check_numerics: debugging.enable_check_numerics
set_log_device_placement: ~control.nothing

[nest]
map_structure: ~control.foreach
flatten: ~control.flatten
pack_sequence_as: ~control.pack_sequence_as
is_nested: ~control.is_nested
assert_same_structure: ~control.assert_same_structure

[config]
LogicalDevice: ~settings.LogicalDevice
PhysicalDevice: ~settings.PhysicalDevice
LogicalDeviceConfiguration: ~settings.Settings
get_logical_device_configuration: ~control.nothing
experimental_functions_run_eagerly: config.functions_run_eagerly
experimental_run_functions_eagerly, run_functions_eagerly: config.run_functions_eagerly(run_eagerly>on, /)
functions_run_eagerly: config.functions_run_eagerly
get_soft_device_placement: ~settings.get_soft_device_placement
set_soft_device_placement: ~settings.set_soft_device_placement
get_visible_devices, list_physical_devices: ~settings.list_physical_devices
list_logical_devices: ~settings.list_logical_devices
set_visible_devices: ~control.nothing
set_logical_device_configuration: ~control.nothing

[config.experimental]
VirtualDeviceConfiguration: ~settings.Settings
get_device_details: ~settings.get_device_details
get_virtual_device_configuration, set_virtual_device_configuration: ~control.nothing
get_synchronous_execution: ~settings.yes
tensor_float_32_execution_enabled: ~settings.no
enable_mlir_bridge, disable_mlir_bridge, set_device_policy: ~control.nothing
get_device_policy: ~settings.get_device_policy
get_memory_info: ~settings.get_memory_info
get_memory_usage: ~settings.get_memory_usage
reset_memory_stats: ~control.nothing
list_physical_devices, get_visible_devices: ~settings.list_physical_devices
list_logical_devices: ~settings.list_logical_devices
set_visible_devices: ~control.nothing
get_memory_growth: ~settings.get_memory_growth
set_memory_growth: ~control.nothing
enable_op_determinism: ~control.nothing
enable_tensor_float_32_execution: ~control.nothing
set_synchronous_execution: ~control.nothing

[config.optimizer]
get_jit: ~settings.get_jit
set_jit: ~control.nothing
set_experimental_options: ~control.nothing

[config.threading]
get_inter_op_parallelism_threads: ~settings.get_inter_op_parallelism_threads
get_intra_op_parallelism_threads: ~settings.get_intra_op_parallelism_threads
set_inter_op_parallelism_threads: ~control.nothing
set_intra_op_parallelism_threads: ~settings.set_intra_op_parallelism_threads

[autodiff]
ForwardAccumulator: ForwardAccumulator
GradientTape: GradientTape

[autograph]
set_verbosity: ~control.nothing
trace: ~control.print_

[autograph.experimental]
do_not_convert: ~control.do_not_convert
set_loop_options: ~control.nothing

[distribute]
NcclAllReduce, HierarchicalCopyAllReduce, ReductionToOneDevice, InputOptions, RunOptions: ~settings.Settings
get_replica_context: ~settings.get_replica_context
OneDeviceStrategy, MirroredStrategy, Strategy: ~settings.Replicas
ReduceOp: ~settings.ReduceOp
InputContext: ~settings.InputContext
get_strategy: ~settings.get_strategy
has_strategy: ~settings.has_strategy
in_cross_replica_context: ~settings.has_strategy

[test]
is_built_with_xla: ~settings.yes
is_built_with_rocm: ~settings.no
is_cpu_target_available: ~settings.yes
compute_gradient: ~control.compute_gradient
TestCase: ~settings.TestCase
main: ~settings.main
gpu_device_name: ~settings.gpu_device_name
is_built_with_cuda, is_built_with_gpu_support: ~settings.is_built_with_cuda
is_gpu_available: ~settings.is_gpu_available

[version]
GIT_VERSION, COMPILER_VERSION: ~settings.VERSION
VERSION: ~settings.VERSION

[summary]
create_noop_writer: ~settings.create_noop_writer
trace_on, trace_off, trace_export: ~control.nothing
*: summary

[errors]
OK: ~settings.OK
CANCELLED: ~settings.CANCELLED
UNKNOWN: ~settings.UNKNOWN
INVALID_ARGUMENT: ~settings.INVALID_ARGUMENT
DEADLINE_EXCEEDED: ~settings.DEADLINE_EXCEEDED
NOT_FOUND: ~settings.NOT_FOUND
ALREADY_EXISTS: ~settings.ALREADY_EXISTS
PERMISSION_DENIED: ~settings.PERMISSION_DENIED
UNAUTHENTICATED: ~settings.UNAUTHENTICATED
RESOURCE_EXHAUSTED: ~settings.RESOURCE_EXHAUSTED
FAILED_PRECONDITION: ~settings.FAILED_PRECONDITION
ABORTED: ~settings.ABORTED
OUT_OF_RANGE: ~settings.OUT_OF_RANGE
UNIMPLEMENTED: ~settings.UNIMPLEMENTED
INTERNAL: ~settings.INTERNAL
UNAVAILABLE: ~settings.UNAVAILABLE
DATA_LOSS: ~settings.DATA_LOSS
OperatorNotAllowedInGraphError: errors.TraceError
OpError, FailedPreconditionError, UnknownError: errors.HybridflowError
InvalidArgumentError: errors.OperandError
InternalError: errors.CompileError
DataLossError: errors.DataError
AbortedError, CancelledError, UnavailableError: errors.WorkerError
AlreadyExistsError: ~settings.FileExistsError
DeadlineExceededError: ~settings.TimeoutError
NotFoundError: ~settings.FileNotFoundError
OutOfRangeError: ~settings.StopIteration
PermissionDeniedError, UnauthenticatedError: ~settings.PermissionError
ResourceExhaustedError: ~settings.MemoryError
UnimplementedError: ~settings.NotImplementedError

[train]
ExponentialMovingAverage: ~averages.ExponentialMovingAverage
CheckpointOptions: ~settings.Settings
get_checkpoint_state: ~files.get_checkpoint_state
checkpoints_iterator: ~files.checkpoints_iterator
Checkpoint: ~files.Checkpoint
CheckpointManager: ~files.CheckpointManager
latest_checkpoint: ~files.latest_checkpoint
list_variables: ~files.list_variables
load_checkpoint: ~files.load_checkpoint
load_variable: ~files.load_variable
BytesList: ~records.BytesList
FloatList: ~records.FloatList
Int64List: ~records.Int64List
Feature: ~records.Feature
Features: ~records.Features
Example: ~records.Example

[saved_model]
contains_saved_model: ~files.contains_saved_model
LoadOptions, SaveOptions: ~settings.Settings
DEFAULT_SERVING_SIGNATURE_DEF_KEY: ~settings.SERVING_DEFAULT
SERVING: ~settings.SERVING
TRAINING: ~settings.TRAINING
save: ~files.save
load: ~files.load

[io]
read_file: ~files.read_file
write_file: ~files.write_file
matching_files: ~files.matching_files
decode_csv: ~files.decode_csv
decode_raw: ~files.decode_raw

FixedLenFeature: ~records.FixedLenFeature
FixedLenSequenceFeature: ~records.FixedLenSequenceFeature
TFRecordWriter: data.TFRecordWriter
TFRecordOptions: ~texts.TFRecordOptions
serialize_tensor: ~texts.serialize_tensor
parse_tensor: ~texts.parse_tensor
VarLenFeature: ~records.VarLenFeature
parse_example: ~records.parse_example
parse_single_example: ~records.parse_single_example

[io.gfile]
exists: ~files.exists
glob: ~files.matching_files
makedirs, mkdir: ~files.makedirs
isdir: ~files.isdir
listdir: ~files.listdir
rmtree: ~files.rmtree
remove: ~files.remove
GFile: ~files.open_file

[compat]
as_bytes: ~texts.as_bytes
as_str, as_text: ~texts.as_text
as_str_any: ~texts.as_str_any
path_to_str: ~texts.path_to_str

[sysconfig]
get_build_info: ~settings.get_build_info
"""
