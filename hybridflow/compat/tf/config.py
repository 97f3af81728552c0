"""TensorFlow's ``tf.config``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export


@tf_export("config.experimental_run_functions_eagerly", "config.run_functions_eagerly")
def experimental_run_functions_eagerly(run_eagerly: Any, name: str | None = None) -> Any:
    """Let the bodies of all functions run as plain Python at each call, op by op, for debugging."""
    return hf.config.run_functions_eagerly(run_eagerly)


export(hf.config.functions_run_eagerly, "config.experimental_functions_run_eagerly", "config.functions_run_eagerly")
