"""What the calls in the log of a tape are of: ops, public functions as a whole, and what has its own derivative."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.autodiff import Record, Results
from hybridflow.compiler.ops import Kind
from hybridflow.eager.taped_calls import TapedCall
from hybridflow.runtime.calls.tape_log import Call

if TYPE_CHECKING:
    from hybridflow.compiler.ops.op_table import OpDef


_NUMBERS = frozenset({Kind.SEGMENT, Kind.CREATE})  # attributes of these hold floats, of which equal ones may differ
_MOST = 4096  # applications that are remembered
_NO_ATTRS: Mapping[str, Any] = {}
_make = tuple.__new__  # as Record(...) does, without a Python frame


class Applied:
    """An op of the table with its attributes; ``key`` is one object for all that programs do not tell apart."""

    __slots__ = ("attrs", "key", "op", "several")

    def __init__(self, op: object, attrs: Mapping[str, Any], several: bool, key: object) -> None:
        self.op, self.attrs, self.several, self.key = op, attrs, several, key


class Custom:
    """Something with a derivative of its own.  A list of outputs may get more entries."""

    __slots__ = ("outputs", "vjp")

    def __init__(self, vjp: Callable[..., Any], outputs: Sequence[Any]) -> None:
        self.vjp, self.outputs = vjp, outputs


_alone: dict[Any, Applied] = {}  # ops without attributes
_alike: dict[Any, object] = {}  # what stands for the others


def applied(op: OpDef, attrs: Mapping[str, Any], several: bool) -> Applied:
    if not attrs:
        result = _alone.get(op)
        if result is None:
            result = _alone[op] = Applied(op, attrs, several, op)
        return result
    what = (op, repr(attrs) if op.kind in _NUMBERS else (*attrs.items(),))
    key = _alike.get(what)
    if key is None:
        if len(_alike) >= _MOST:
            _alike.clear()  # whoever has a key keeps it alive
        key = _alike.setdefault(what, what)
    return Applied(op, attrs, several, key)


def record_of(call: Call) -> Record:
    definition, inputs, outputs = call
    if type(definition) is TapedCall:
        return _make(Record, (None, inputs, _NO_ATTRS, outputs, definition))
    if type(definition) is Custom:
        known = definition.outputs if type(definition.outputs) is list else outputs
        return _make(Record, (None, inputs, _NO_ATTRS, known, definition.vjp))
    several = Results(outputs) if definition.several else outputs
    return _make(Record, (definition.op, inputs, definition.attrs, several, None))
