"""TensorFlow's ``tf.keras.initializers``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export, export_all, same_names

export(hf.initializers.Constant, "keras.initializers.constant", "constant_initializer")
export(hf.initializers.Ones, "keras.initializers.ones", "ones_initializer")
export(hf.initializers.Zeros, "keras.initializers.zeros", "zeros_initializer")
export(hf.initializers.RandomNormal, "keras.initializers.random_normal", "random_normal_initializer")
export(hf.initializers.RandomUniform, "keras.initializers.random_uniform", "random_uniform_initializer")
export(hf.initializers.GlorotNormal, "keras.initializers.glorot_normal")
export(hf.initializers.GlorotUniform, "keras.initializers.glorot_uniform")
export(hf.initializers.HeNormal, "keras.initializers.he_normal")
export(hf.initializers.HeUniform, "keras.initializers.he_uniform")
export(hf.initializers.Identity, "keras.initializers.identity")
export(hf.initializers.LecunNormal, "keras.initializers.lecun_normal")
export(hf.initializers.LecunUniform, "keras.initializers.lecun_uniform")
export(hf.initializers.Orthogonal, "keras.initializers.orthogonal")
export(hf.initializers.TruncatedNormal, "keras.initializers.truncated_normal")
export(hf.initializers.VarianceScaling, "keras.initializers.variance_scaling")
export_all(hf.initializers, "keras.initializers")
same_names("keras.initializers", "initializers")
