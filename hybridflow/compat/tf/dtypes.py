"""TensorFlow's ``tf.dtypes``."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import Operand, tf_export


@tf_export("dtypes.complex", "complex")
def complex(real: Operand, imag: Operand, name: str | None = None) -> Any:
    """The complex numbers of real and imaginary parts, which keep signed zeros and infinities as they are."""
    return hf.complex(real, imag)
