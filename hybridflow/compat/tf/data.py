"""TensorFlow's ``tf.data``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export

export(hf.data.AUTOTUNE, "data.AUTOTUNE", "data.experimental.AUTOTUNE")
export(hf.data.INFINITE_CARDINALITY, "data.INFINITE_CARDINALITY", "data.experimental.INFINITE_CARDINALITY")
export(hf.data.UNKNOWN_CARDINALITY, "data.UNKNOWN_CARDINALITY", "data.experimental.UNKNOWN_CARDINALITY")
export(hf.data.Options, "data.Options")
