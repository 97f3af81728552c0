"""What Keras calls of a backend, by the names that it has there."""

from keras.src.backend.common.name_scope import name_scope as name_scope

from hybridflow.keras_backend.modules import (
    core as core,
    image as image,
    linalg as linalg,
    math as math,
    nn as nn,
    numpy as numpy,
    random as random,
)
from hybridflow.keras_backend.modules.core import (
    IS_THREAD_SAFE as IS_THREAD_SAFE,
    SUPPORTS_COMPLEX_DTYPES as SUPPORTS_COMPLEX_DTYPES,
    SUPPORTS_RAGGED_TENSORS as SUPPORTS_RAGGED_TENSORS,
    SUPPORTS_SPARSE_TENSORS as SUPPORTS_SPARSE_TENSORS,
    Variable as Variable,
    cast as cast,
    compute_output_spec as compute_output_spec,
    cond as cond,
    convert_to_numpy as convert_to_numpy,
    convert_to_tensor as convert_to_tensor,
    device_scope as device_scope,
    is_tensor as is_tensor,
    random_seed_dtype as random_seed_dtype,
    scatter as scatter,
    shape as shape,
    stop_gradient as stop_gradient,
    vectorized_map as vectorized_map,
)
from hybridflow.keras_backend.modules.rnn import (
    bidirectional_gru as bidirectional_gru,
    bidirectional_lstm as bidirectional_lstm,
    cudnn_ok as cudnn_ok,
    gru as gru,
    lstm as lstm,
    rnn as rnn,
)
