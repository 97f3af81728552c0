"""TensorFlow's ``tf.keras.config``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export, tf_export

export(hf.mixed_precision.set_global_policy, "keras.config.set_dtype_policy")
export(hf.mixed_precision.global_policy, "keras.config.dtype_policy")


@tf_export("keras.config.is_interactive_logging_enabled", "keras.utils.is_interactive_logging_enabled")
def is_interactive_logging_enabled() -> bool:
    """``tf.keras.config.is_interactive_logging_enabled``: bars of progress are lines."""
    return True


@tf_export("keras.config.is_traceback_filtering_enabled")
def is_traceback_filtering_enabled() -> bool:
    """``tf.keras.config.is_traceback_filtering_enabled``: errors name the program's line."""
    return True
