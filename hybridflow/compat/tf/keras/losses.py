"""TensorFlow's ``tf.keras.losses``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export_all, same_names

export_all(hf.losses, "keras.losses")
same_names("keras.losses", "losses")
