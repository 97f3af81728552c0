"""TensorFlow's ``tf.keras``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export
from hybridflow.compat.tf.keras import (
    activations as activations,
    applications as applications,
    backend as backend,
    callbacks as callbacks,
    config as config,
    constraints as constraints,
    initializers as initializers,
    layers as layers,
    losses as losses,
    metrics as metrics,
    mixed_precision as mixed_precision,
    models as models,
    ops as ops,
    optimizers as optimizers,
    preprocessing as preprocessing,
    regularizers as regularizers,
    utils as utils,
)

export(hf.layers.Layer, "keras.Layer")
export(hf.losses.Loss, "keras.Loss")
export(hf.metrics.Metric, "keras.Metric")
export(hf.optimizers.Optimizer, "keras.Optimizer")
export(hf.initializers.Initializer, "keras.Initializer")
export(hf.regularizers.Regularizer, "keras.Regularizer")
export(hf.layers.InputSpec, "keras.InputSpec")
export(hf.layers.keras_tensor.Symbol, "keras.KerasTensor")
export(hf.mixed_precision.Policy, "keras.DTypePolicy", "keras.mixed_precision.DTypePolicy")
export(hf.Model, "keras.Model", "keras.models.Model")
export(hf.Sequential, "keras.Sequential", "keras.models.Sequential")
