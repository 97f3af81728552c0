"""TensorFlow's ``tf.experimental``."""

from __future__ import annotations

from hybridflow.compat.adapters import numpy_names
from hybridflow.compat.export import export_all

export_all(numpy_names, "experimental.numpy")
