"""Variables for what is counted and kept beside those that are trained."""

from __future__ import annotations

from typing import Any

from hybridflow.compat.v1.initializers import constant_initializer
from hybridflow.compat.v1.variables import Variable


def state_variable(name: str, shape: tuple[int, ...], dtype: Any, start: float) -> Variable:
    """A variable that is not trained, every element of which starts from one value."""
    initial = constant_initializer(start)
    return Variable(lambda: initial(shape, dtype), trainable=False, name=name)
