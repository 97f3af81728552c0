"""TensorFlow's ``tf.keras.metrics``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export_all, same_names

export_all(hf.metrics, "keras.metrics")
same_names("keras.metrics", "metrics")
