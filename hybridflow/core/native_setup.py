"""What native code is told of the front end: its classes, and when calls may not take shortcuts."""

from __future__ import annotations

from hybridflow.core.context import reasons
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.runtime.calls import front_end


def introduce() -> None:
    """Tell the runtime; called once, when the package is imported."""
    front_end.setup(Tensor, Variable, reasons)
