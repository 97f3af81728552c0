"""TensorFlow's ``tf.config``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export


@tf_export("config.experimental_run_functions_eagerly", "config.run_functions_eagerly")
def experimental_run_functions_eagerly(run_eagerly: bool, name: str | None = None) -> Any:
    """Let the bodies of all functions run as plain Python at each call, op by op, for debugging."""
    return hf.config.run_functions_eagerly(run_eagerly)


@tf_export("config.optimizer.set_experimental_options")
def set_experimental_options(options: dict[str, Any]) -> None:
    """``tf.config.optimizer.set_experimental_options``: they are kept, and change nothing: all passes run."""
    _options.update(options)


@tf_export("config.optimizer.get_experimental_options")
def get_experimental_options() -> dict[str, Any]:
    """``tf.config.optimizer.get_experimental_options``."""
    return dict(_options)


_options: dict[str, Any] = {"disable_meta_optimizer": False, "disable_model_pruning": False}
export(hf.config.functions_run_eagerly, "config.experimental_functions_run_eagerly", "config.functions_run_eagerly")
