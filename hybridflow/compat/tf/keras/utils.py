"""TensorFlow's ``tf.keras.utils``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export
from hybridflow.core import serialization


@tf_export(
    "keras.utils.CustomObjectScope",
    "keras.utils.custom_object_scope",
    "keras.saving.CustomObjectScope",
    "keras.saving.custom_object_scope",
)
def CustomObjectScope(custom_objects: Mapping[str, Any], name: str | None = None) -> Any:
    """Within this, descriptions that name one of these mean that class."""
    return serialization.custom_objects(custom_objects)


export(hf.plot_model, "keras.utils.plot_model")
