"""TensorFlow's ``tf.keras.optimizers``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export_all, same_names

export_all(hf.optimizers, "keras.optimizers")
export_all(hf.optimizers.schedules, "keras.optimizers.schedules")
same_names("keras.optimizers", "optimizers", "keras.optimizers.legacy", "optimizers.legacy")
same_names("keras.optimizers.schedules", "optimizers.schedules")
