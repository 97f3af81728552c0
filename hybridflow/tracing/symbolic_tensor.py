"""Symbolic tensors: what stands for a tensor's value while a function is traced."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Node
from hybridflow.compiler.ir.types import TensorType, is_static
from hybridflow.core import devices, pytree
from hybridflow.core.context import Tracer
from hybridflow.core.shape import Shape
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.eager.dispatch import builder
from hybridflow.errors import ConcretizationError, TraceError, called_by_user, is_internal, short_location


@pytree.declare_leaf
class SymbolicTensor(Tensor):
    """The value of a node while a function is traced: it has a type, and no data yet.

    ``is_weak``: it stands for a NumPy scalar, which has no say in the dtype of what it is combined with.
    ``is_argument``: it stands for an argument, which is the caller's.  ``row_of``: a stack, and which row of it this
    is.
    """

    __slots__ = ("_node", "_row", "_trace", "is_argument", "is_weak")
    _node: Node
    _trace: Tracer

    def __init__(self, node: Node, trace: Tracer, is_weak: bool = False, is_given: bool = False) -> None:
        self._node, self._trace, self.is_weak, self.is_argument = node, trace, is_weak, is_given
        self._row: tuple[Tensor, int, Node] | None = None

    @property
    def row_of(self) -> tuple[Tensor, int] | None:
        return None if self._row is None or self._row[2] is not self._node else self._row[:2]

    def is_row(self, stack: Tensor, number: int) -> SymbolicTensor:
        """Keep in mind what the tensor, which was just made, is taken from."""
        self._row = stack, number, self._node
        return self

    def _check_rebinding(self, trace: object) -> None:
        if self.is_argument:
            raise TraceError(
                "setitem",
                f"{self!r} is an argument of {self._trace.name}, whose caller would not see the change. Change a "
                "tensor of the function's own, x = +x, and return it.",
            )
        if trace is not self._trace:
            raise TraceError(
                "setitem", f"{self!r} leaked out of the trace of {self._trace.name} and is changed elsewhere."
            )

    def _stand_in(self) -> Tensor:
        return SymbolicTensor(self._node, self._trace)

    def _hold(self, new: Tensor) -> None:
        assert isinstance(new, SymbolicTensor)
        self._node = new._node

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._node.type.dtype

    @property
    def shape(self) -> Shape:
        return Shape(self._node.type.shape)

    @property
    def type(self) -> TensorType:
        return self._node.type

    @property
    def device(self) -> str:
        """Where the function runs is decided when it is called."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: object = None) -> Tensor:
        return builder.transfer(self, device=devices.device(device).name)

    @property
    def _array(self) -> Any:
        raise TraceError(
            "trace",
            f"{self!r} has no value: it was made while tracing and is used where a value is needed. "
            "Return it from the function, or keep it in an hf.Variable.",
        )

    def _known(self) -> np.ndarray | None:
        node = self._node
        while node.op.name == "reshape":  # as which copies are recorded
            (node,) = node.inputs
        elements = self._trace.known_elements(node) if is_static(self.type.shape) else None
        return None if elements is None else elements.reshape(self.type.shape)

    def _no_value(
        self, stage: str, wish: str, remedy: str, kind: Callable[[str, str], TraceError] = ConcretizationError
    ) -> TraceError:
        asked = called_by_user()
        if asked is not None:
            return ConcretizationError(
                asked,
                f"the value of {self!r} decides a size, an axis or what is computed, and does not exist while tracing. "
                f"Make it a Python argument, or call {asked} outside of the traced function.",
            )
        return kind(stage, f"{wish} {self!r} needs its value, which does not exist while tracing. {remedy}")

    def numpy(self) -> np.ndarray:
        known = self._known()
        if known is not None and called_by_user() is not None:
            return known  # a shape, axes or paddings that an op was given as a constant
        raise self._no_value(
            "numpy",
            "turning into a NumPy array:",
            "Return it and convert the result, or make one tensor of several with hf.asarray or hf.stack.",
            TraceError,  # who asks for the value itself is told, other than where Python needs it for a decision
        )

    def item(self) -> Any:
        raise self._no_value("item", "reading the element of", "Return it and read the result.", TraceError)

    def __bool__(self) -> bool:
        why = why_unconverted(sys._getframe(1))
        remedy = why or "Choose by value with hf.where(condition, a, b), or branch on a Python argument."
        raise self._no_value("bool", "branching on", remedy, TraceError if why else ConcretizationError)

    def __int__(self) -> int:
        raise self._no_value("int", "int() of", "Convert with hf.astype(x, hf.int64), or make it a Python argument.")

    def __float__(self) -> float:
        raise self._no_value(
            "float",
            "float() of",
            "Convert with hf.astype(x, hf.float32), or make it a Python argument. An array that it is put into is made "
            "with hf.zeros.",
        )

    def __index__(self) -> int:
        known = self._known()
        if known is not None:
            return wrap(known).__index__()
        raise self._no_size()

    def _no_size(self) -> TraceError:
        return self._no_value(
            "index", "a size or position taken from", "Index with hf.take(x, i), or make the size a Python argument."
        )

    def _to_extent(self, refusal: Callable[[], TraceError] | None = None) -> Extent:
        known = self._known()
        if known is not None:
            return wrap(known)._to_extent()
        why = refusal or self._no_size
        if not dtypes.is_integer(self.dtype) or self.size != 1:
            raise why()
        find = self._trace.root.extent_finder
        if find is None:
            raise why()
        return find(self, why)

    def __reduce__(self) -> Any:
        raise self._no_value("pickle", "pickling", "Return it and pickle the result.", TraceError)

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __repr__(self) -> str:
        node = self._node
        source = f" from {short_location(node.where)}" if node.where else ""
        return f'<sym {node.type}{source} "{node.op.name}">'


_COMPREHENSIONS = frozenset(("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"))


def why_unconverted(frame: FrameType | None) -> str | None:
    """What to say where the function that branches, in this frame or outside of it, has a text that nobody knows.  Then
    its statements mean what they mean to Python; None where it was converted, or is not a user's."""
    from hybridflow.autograph.source.lookup import Missing, find
    from hybridflow.autograph.transform.instrument_bytecode import original_of
    from hybridflow.runtime.calls.guard_steps import stand_ins

    while frame is not None and (is_internal(frame.f_code.co_filename) or frame.f_code.co_name in _COMPREHENSIONS):
        frame = frame.f_back  # a comprehension has the text of the function around it
    if frame is None:
        return None
    original = original_of(frame.f_code)
    if original is None and id(frame.f_code) in stand_ins:
        return None
    reason = find(original or frame.f_code)
    if not isinstance(reason, Missing):
        return None
    return (
        f"Statements like if and while take tensors where the text of a function can be read, but that of "
        f"{frame.f_code.co_name} is not known: {reason.reason}. Define it in a file, or write hf.cond or hf.where."
    )
