"""TensorFlow's ``tf.keras.layers``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export_all

export_all(hf.layers, "keras.layers")
