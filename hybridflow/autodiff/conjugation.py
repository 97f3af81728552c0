"""Which of two conjugates a gradient of complex numbers is.

Rules have cotangents g of which Re(g dz) is the change of the target.  So what is differentiable as a complex function
has a product for a rule, as real functions have.  What users give and get is the conjugate of that, as in TensorFlow:
the direction dL/dx + i dL/dy in which a real target grows.
"""

from __future__ import annotations

from typing import Any

from hybridflow.compiler.ir.dtypes import is_complex
from hybridflow.core.tensor import Tensor
from hybridflow.eager.dispatch import builder
from hybridflow.errors import DTypeError


def has_complex(x: Any) -> bool:
    return is_complex(x.dtype)


def conjugate(x: Tensor) -> Any:
    """A cotangent as the user sees it, or one of the user's as rules take it."""
    return builder.conj(x) if is_complex(x.dtype) else x


def refuse_complex(stage: str, *values: Any) -> None:
    for x in values:
        if has_complex(x):
            raise DTypeError(
                stage, f"{x.type} is complex, and there are Jacobians of real numbers alone. Take hf.real and hf.imag."
            )
