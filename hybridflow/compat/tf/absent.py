"""What is not here, namespace by namespace, each with what to do instead."""

from __future__ import annotations

from hybridflow.compat.export import not_here

not_here(
    "math",
    {
        "sobol_sample": "use scipy.stats.qmc.Sobol",
        "special": "write tf.math.bessel_i0 and the like; others are in scipy.special",
        "approx_max_k": "write tf.math.top_k",
        "approx_min_k": "write tf.math.top_k of -x",
    },
)
not_here(
    "linalg",
    {
        "eigh_tridiagonal": "make the matrix, and use tf.linalg.eigh",
        "banded_triangular_solve": "make the matrix, and use tf.linalg.triangular_solve",
        "experimental": "there is tf.linalg.solve, and tf.while_loop for iterations of your own",
        "LinearOperatorFullMatrix": "operators are matrices here: tf.linalg.matmul, tf.linalg.solve, tf.linalg.det",
        "LinearOperatorDiag": "operators are matrices here: tf.linalg.diag, or x * diagonal",
        "LinearOperatorIdentity": "operators are matrices here: tf.eye",
        "LinearOperatorLowerTriangular": "operators are matrices here: tf.linalg.triangular_solve",
        "LinearOperator": "operators are matrices here: tf.linalg.matmul, tf.linalg.solve, tf.linalg.det",
    },
)
not_here(
    "nn",
    {
        "embedding_lookup_sparse": "write tf.sparse.sparse_dense_matmul of the weights of the rows and the table",
        "safe_embedding_lookup_sparse": "write tf.sparse.sparse_dense_matmul of the weights of the rows and the table",
        "fractional_max_pool": "write tf.nn.max_pool2d",
        "fractional_avg_pool": "write tf.nn.avg_pool2d",
        "isotonic_regression": "use sklearn.isotonic on x.numpy()",
        "RNNCellDropoutWrapper": "give dropout to the cells of tf.keras.layers",
        "RNNCellResidualWrapper": "add the input in a cell of your own",
        "RNNCellDeviceWrapper": "write with tf.device",
        "ctc_greedy_decoder": "take the largest class of each step, and leave out repetitions and blanks in NumPy",
        "ctc_beam_search_decoder": "nothing decodes with beams; take the largest class of each step",
    },
)
not_here(
    "image",
    {
        "random_jpeg_quality": "draw a quality, and write tf.image.adjust_jpeg_quality",
        "stateless_random_jpeg_quality": "draw a quality, and write tf.image.adjust_jpeg_quality",
        "extract_glimpse": "write tf.image.crop_and_resize",
        "sample_distorted_bounding_box": "draw a box by tf.random.uniform, and use tf.image.crop_to_bounding_box",
        "stateless_sample_distorted_bounding_box": "draw a box, and use tf.image.crop_to_bounding_box",
    },
)
not_here(
    "io",
    {
        "decode_compressed": "use Python's zlib in a tf.py_function",
        "write_graph": "print f.ir() of a tf.function",
    },
)
not_here(
    ".",
    {
        "quantization": "hf.quantize",
        "xla": "functions are always compiled",
        "graph_util": "f.get_concrete_function(...) has the graph",
        "signature": "write input_signature of tf.function",
        "feature_column": "features are columns of numbers: tf.data.Dataset.map makes them",
        "estimator": "use tf.keras.Model with fit",
        "contrib": "TensorFlow 1's; use tf.keras",
        "raw_ops": "use the functions of tf, tf.math and tf.nn",
        "Session": "TensorFlow 1's; it is tf.compat.v1.Session",
        "placeholder": "TensorFlow 1's; it is tf.compat.v1.placeholder",
        "get_variable": "TensorFlow 1's; it is tf.compat.v1.get_variable",
        "global_variables_initializer": "TensorFlow 1's; it is tf.compat.v1.global_variables_initializer",
        "app": "TensorFlow 1's; parse arguments with argparse",
        "flags": "TensorFlow 1's; parse arguments with argparse",
        "mul": "write tf.multiply",
        "sub": "write tf.subtract",
        "div": "write tf.divide",
        "to_float": "write tf.cast(x, tf.float32)",
        "to_int32": "write tf.cast(x, tf.int32)",
        "lite": "use tf.saved_model.save",
        "tpu": "the devices are the CPU and NVIDIA GPUs",
    },
)
not_here(
    "keras.layers",
    {
        "AdaptiveAveragePooling2D": "give AveragePooling2D the size that leaves so many, or reshape and tf.reduce_mean",
        "RandomHeight": "write tf.keras.layers.RandomZoom",
        "RandomWidth": "write tf.keras.layers.RandomZoom",
        "ThresholdedReLU": "write tf.keras.layers.ReLU(threshold=...)",
        "MelSpectrogram": "there are no transforms; compute them with another library into NumPy arrays",
        "STFTSpectrogram": "there are no transforms; compute them with another library into NumPy arrays",
        "TFSMLayer": "tf.saved_model.load gives functions that layers may call",
    },
)
not_here(
    "keras.utils",
    {
        "FeatureSpace": "write the numbers of the columns with tf.keras.layers.Normalization and CategoryEncoding",
        "model_to_dot": "write tf.keras.utils.plot_model",
    },
)
not_here(
    "keras.preprocessing",
    {
        "text": "tf.strings and tf.keras.layers.TextVectorization are here",
    },
)
not_here(
    "keras.preprocessing.sequence",
    {
        "TimeseriesGenerator": "write tf.keras.utils.timeseries_dataset_from_array",
    },
)
not_here(
    "keras",
    {
        "wrappers": "use scikit-learn's interface with a class of your own around fit and predict",
    },
)
not_here(
    "keras.applications",
    {
        "NASNetMobile": "write tf.keras.applications.MobileNetV3Large",
    },
)
not_here(
    "distribute",
    {
        "TPUStrategy": "the devices are the CPU and NVIDIA GPUs; write tf.distribute.MirroredStrategy",
        "ParameterServerStrategy": "one process computes; write tf.distribute.MirroredStrategy",
    },
)
not_here(
    "ragged",
    {
        "boolean_mask": "write tf.boolean_mask, and tf.RaggedTensor.from_row_lengths",
        "constant_value": "write tf.ragged.constant",
        "stack_dynamic_partitions": "write tf.dynamic_partition, and tf.ragged.constant",
        "cross": "compute the numbers of the crossings in Python",
        "segment_ids_to_row_splits": "write tf.RaggedTensor.from_value_rowids(ids, ids).row_splits",
    },
)
not_here(
    "sparse",
    {
        "mask": "take the rows of x.indices and x.values that are wanted",
        "maximum": "write tf.maximum of tf.sparse.to_dense",
        "minimum": "write tf.minimum of tf.sparse.to_dense",
        "bincount": "write tf.math.bincount",
        "cross": "compute the numbers of the crossings in Python",
        "split": "write slices of rows of x.to_csr()",
        "segment_sum": "write tf.math.segment_sum of tf.gather",
        "segment_mean": "write tf.math.segment_mean of tf.gather",
        "fill_empty_rows": "add the entries to indices and values",
        "to_indicator": "write tf.sparse.to_dense of entries of True",
    },
)
not_here(
    "signal",
    {
        "mdct": "write it with dct of type 4",
        "inverse_mdct": "write it with dct of type 4",
    },
)
