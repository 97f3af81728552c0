"""TensorFlow's ``tf.keras.regularizers``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export, export_all, tf_export


@tf_export("keras.regularizers.l1")
def l1(l1: float = 0.01, l: float | None = None, name: str | None = None) -> Any:
    """L1 penalty: ``l1 * sum(|weights|)``."""
    return hf.regularizers.L1(l1=l1 if l is None else l)


@tf_export("keras.regularizers.l2")
def l2(l2: float = 0.01, l: float | None = None, name: str | None = None) -> Any:
    """L2 penalty: ``l2 * sum(weights**2)``."""
    return hf.regularizers.L2(l2=l2 if l is None else l)


export(hf.regularizers.L1L2, "keras.regularizers.l1_l2")
export_all(hf.regularizers, "keras.regularizers")
