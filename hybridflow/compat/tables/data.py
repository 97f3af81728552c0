"""``tf.data`` and ``tf.experimental``."""

NAMES = """
[data]
ThreadingOptions: ~settings.Settings
NumpyIterator: ~files.Elements
AUTOTUNE: data.AUTOTUNE
INFINITE_CARDINALITY: data.INFINITE_CARDINALITY
UNKNOWN_CARDINALITY: data.UNKNOWN_CARDINALITY
Dataset: ~files.Dataset
Iterator: ~files.Elements
Options: data.Options
FixedLengthRecordDataset: ~files.FixedLengthRecordDataset
TFRecordDataset: ~files.TFRecordDataset
TextLineDataset: ~files.TextLineDataset

[data.experimental]
AutoShardPolicy: ~settings.AutoShardPolicy
ExternalStatePolicy: ~settings.ExternalStatePolicy
ThreadingOptions, OptimizationOptions, DistributeOptions, AutotuneOptions: ~settings.Settings
AutotuneAlgorithm: ~settings.AutotuneAlgorithm
dense_to_ragged_batch: ~files.ragged_batch
from_list: ~files.from_list
at: ~files.at
Reducer: ~files.Reducer
group_by_reducer: ~files.group_by_reducer
get_structure: ~files.get_structure
Counter: ~files.Dataset.counter
CsvDataset: data.CsvDataset
make_csv_dataset: data.make_csv_dataset
AUTOTUNE: data.AUTOTUNE
INFINITE_CARDINALITY: data.INFINITE_CARDINALITY
UNKNOWN_CARDINALITY: data.UNKNOWN_CARDINALITY
RandomDataset: ~files.Dataset.random
TFRecordWriter: data.TFRecordWriter
cardinality: ~files.cardinality
assert_cardinality: ~files.assert_cardinality
bucket_by_sequence_length: ~files.bucket_by_sequence_length
copy_to_device: ~files.copy_to_device
enumerate_dataset: ~files.enumerate_dataset
get_single_element: ~files.get_single_element
group_by_window: ~files.group_by_window
ignore_errors: ~files.ignore_errors
load: ~files.Dataset.load
map_and_batch: ~files.map_and_batch
parallel_interleave: ~files.parallel_interleave
prefetch_to_device: ~files.prefetch_to_device
rejection_resample: ~files.rejection_resample
save: ~files.Dataset.save
scan: ~files.scan
shuffle_and_repeat: ~files.shuffle_and_repeat
snapshot: ~files.snapshot
take_while: ~files.take_while
unbatch: ~files.unbatch
unique: ~files.unique
sample_from_datasets: ~files.Dataset.sample_from_datasets
choose_from_datasets: ~files.Dataset.choose_from_datasets

[experimental]
Optional: ~files.Optional

[experimental.numpy]
*: ~numpy_names

[experimental.numpy.random]
seed: ~numpy_names.seed
rand: ~numpy_names.rand
randn: ~numpy_names.randn
normal: ~numpy_names.normal
standard_normal: ~numpy_names.standard_normal
uniform: ~numpy_names.uniform
randint: ~numpy_names.randint
random: ~numpy_names.random
"""
