"""TensorFlow's ``tf.keras.constraints``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export, export_all

export(hf.constraints.MaxNorm, "keras.constraints.max_norm")
export(hf.constraints.MinMaxNorm, "keras.constraints.min_max_norm")
export(hf.constraints.NonNeg, "keras.constraints.non_neg")
export(hf.constraints.UnitNorm, "keras.constraints.unit_norm")
export_all(hf.constraints, "keras.constraints")
