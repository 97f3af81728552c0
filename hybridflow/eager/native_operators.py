"""Python's operators, and the elementwise functions of one operand or two, as calls of native code.

This module is loaded when operators have been used for a while (see ``quick``).  Where native code does not know the
operands, the methods in Python answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.dtypes import INTEGERS, SHORT, is_complex, part_dtype
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import TABLE, Kind, OpDef
from hybridflow.eager.executable import executable_for
from hybridflow.errors import HybridflowError
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.calls import operators
from hybridflow.runtime.calls.op_calls import Application, ElementwiseOp
from hybridflow.runtime.native.records import ELEMENT_LEFT, ELEMENT_RIGHT

_OPS = {  # the op behind each slot
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "neg": "negative",
    "abs": "abs",
    "invert": "bitwise_invert",
    "square": "square",  # which is a power by 2
}


def install() -> dict[OpDef, Callable[..., Any]]:
    """Make operators native; the same ops, and others of two operands, as native functions.  None at all where there is
    no native code."""
    return _functions() if operators.install(native_ops()) else {}


is_ready = operators.is_ready


def give(op: OpDef, whole: Callable[..., Any]) -> None:
    """Let operators whose op this is call ``whole``, which tells a tape of it, where somebody has to be told."""
    for name, of_slot in _OPS.items():
        if of_slot == op.name:
            operators.give(name, whole)


@uninterruptible.once
def _functions() -> dict[OpDef, Callable[..., Any]]:
    """The native functions, which are made once: an op holds the definition of one that somebody may still hold."""
    result = {}
    for op, native in {**{TABLE[_OPS[name]]: native for name, native in native_ops().items()}, **_others()}.items():
        function = operators.function(native, op.arity or 0, op.name)
        assert function is not None, "slots are made of the same code"
        result[op] = function
    return result


@uninterruptible.once
def native_ops() -> dict[str, ElementwiseOp]:
    """The ops behind the slots, which are made once: native code keeps their addresses."""
    return {name: _elementwise(TABLE[op]) for name, op in _OPS.items()}


@uninterruptible.once
def _others() -> dict[OpDef, ElementwiseOp]:
    """Ops of two operands that no operator stands for, such as ``maximum``."""
    known = set(_OPS.values())
    of_two = [op for op in TABLE.values() if op.kind is Kind.ELEMENTWISE and op.arity == 2]
    return {op: _elementwise(op) for op in of_two if op.name not in known}


def _elementwise(op: OpDef) -> ElementwiseOp:
    def make(dtype: np.dtype[Any], form: int) -> Application | None:
        try:
            return _application(op, dtype, form)
        except HybridflowError:  # a dtype that the op does not take, or that native code cannot be made for
            return None

    return ElementwiseOp(make)


def _application(op: OpDef, dtype: np.dtype[Any], form: int) -> Application | None:
    """The op on n elements, or on n and a single one on the right or on the left."""
    takes = dtype in op.dtypes or (op.pairs is not None and is_complex(dtype))
    if op.kind is not Kind.ELEMENTWISE or not takes:
        return None
    n = (Dim("n"),)
    single = {ELEMENT_RIGHT: 1, ELEMENT_LEFT: 0}.get(form)
    b = GraphBuilder(TABLE, op.name)
    parameters = [b.parameter(TensorType(() if k == single else n, dtype)) for k in range(op.arity or 0)]
    operands = [b.broadcast(x, shape=n, axes=()) if k == single else x for k, x in enumerate(parameters)]
    executable: Any = executable_for(b.finish([b.emit(op, *operands)]))
    if op.name == "pow" and form == ELEMENT_RIGHT:
        return Application(executable, dtype)  # powers by Python numbers may be other ops, see ``elementwise.pow``
    return Application(executable, dtype, *_numbers(dtype))


def _numbers(dtype: np.dtype[Any]) -> tuple[str, int, int]:
    """Which Python numbers are what the dtype has in their place, and the ints among them."""
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        return "int", int(limits.min), min(int(limits.max), 2**63 - 1)
    weak = SHORT[dtype] if part_dtype(dtype).name in ("float32", "float64") else "none"
    most = 2 ** (np.finfo(dtype).nmant + 1) if weak != "none" else 0
    return weak, -most, most
