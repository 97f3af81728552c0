"""TensorFlow's ``tf.summary``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export_all

export_all(hf.summary, "summary")
