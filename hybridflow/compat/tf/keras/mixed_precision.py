"""TensorFlow's ``tf.keras.mixed_precision``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export, export_all

export(hf.mixed_precision.set_global_policy, "keras.mixed_precision.set_dtype_policy")
export_all(hf.mixed_precision, "keras.mixed_precision")
