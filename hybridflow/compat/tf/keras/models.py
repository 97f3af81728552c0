"""TensorFlow's ``tf.keras.models``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export

export(hf.models.load_model, "keras.models.load_model", "keras.saving.load_model")
export(hf.models.save_model, "keras.models.save_model", "keras.saving.save_model")
export(hf.models.model_from_json, "keras.models.model_from_json")
