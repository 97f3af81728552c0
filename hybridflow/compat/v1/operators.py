"""Python's operators on tensors of graphs."""

from __future__ import annotations

from typing import Any

from hybridflow.compat.v1.elementwise import TABLE
from hybridflow.compat.v1.linalg import matmul
from hybridflow.compat.v1.recording import Recorded
from hybridflow.compat.v1.slicing import subscript

_OPERATORS: dict[str, Any] = {
    "getitem": subscript,
    "add": Recorded(TABLE["add"].function, "Add", "add", of_sizes=TABLE["add"].of_sizes),
    "sub": Recorded(TABLE["subtract"].function, "Sub", "sub", of_sizes=TABLE["subtract"].of_sizes),
    "mul": Recorded(TABLE["multiply"].function, "Mul", "mul", of_sizes=TABLE["multiply"].of_sizes),
    "truediv": Recorded(TABLE["truediv"].function, "RealDiv", "truediv"),
    "floordiv": Recorded(TABLE["floordiv"].function, "FloorDiv", "floordiv", of_sizes=TABLE["floordiv"].of_sizes),
    "mod": Recorded(TABLE["mod"].function, "FloorMod", "mod", of_sizes=TABLE["mod"].of_sizes),
    "pow": Recorded(TABLE["pow"].function, "Pow", "pow"),
    "matmul": Recorded(matmul.function, "MatMul", "matmul"),
    "and": Recorded(TABLE["logical_and"].function, "LogicalAnd", "and"),
    "or": Recorded(TABLE["logical_or"].function, "LogicalOr", "or"),
    "xor": Recorded(TABLE["logical_xor"].function, "LogicalXor", "xor"),
    "lt": TABLE["less"],
    "le": TABLE["less_equal"],
    "gt": TABLE["greater"],
    "ge": TABLE["greater_equal"],
    "neg": TABLE["negative"],
    "abs": TABLE["abs"],
    "invert": TABLE["logical_not"],
}


def operate(name: str, *operands: object) -> Any:
    """What an operator, by name, makes of its operands."""
    return _OPERATORS[name](*operands)
