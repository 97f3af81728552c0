"""How something ends: it goes on, returns, leaves a loop or begins its next iteration; and what names hold then.

A side that raises an error which nobody catches ends the program: it has no outcome."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from hybridflow.array import elementwise
from hybridflow.autograph.runtime import diagnostics, narrowing
from hybridflow.autograph.runtime.choices import is_choice
from hybridflow.autograph.runtime.mutable_locations import UNBOUND, UNREAD, is_unbound
from hybridflow.autograph.runtime.state import active
from hybridflow.autograph.runtime.type_mismatch import TypeMismatch
from hybridflow.compiler.ir import dtypes
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import scalar
from hybridflow.tracing.subtrace import SubTrace


class ExitKind:
    """A way in which a side ends; ``number`` stands for it in programs."""

    __slots__ = ("number", "what")

    def __init__(self, what: str, number: int | None = None) -> None:
        self.what, self.number = what, next(active.numbers) if number is None else number


NORMAL = ExitKind("goes on", 0)

# No names of Python's: what a function returns, and the error that a side raises.
VALUE, ERROR = ".value", ".error"
Values = dict[str, Any]


class Exits:
    """The ways in which something may have ended, and the values of each; ``code`` says which it was."""

    __slots__ = ("by_kind", "code", "common", "return_kind")

    def __init__(self, kinds: dict[ExitKind, Values], code: Tensor | None = None) -> None:
        self.by_kind, self.code = kinds, code
        self.common: Values = {}  # what names hold, however it ended, when something runs then
        self.return_kind: ExitKind | None = None  # how the function is left that goes on then

    @property
    def falls_through(self) -> bool:
        return NORMAL in self.by_kind

    @property
    def always_raises(self) -> bool:
        """Whether nothing comes after it: the program has ended with an error."""
        return not self.by_kind

    @property
    def always_falls_through(self) -> bool:
        return self.falls_through and len(self.by_kind) == 1


class Names(tuple[str, ...]):
    """Names that blocks bind.  Those of them that are ``unsure`` may be read where nothing has bound them."""

    unsure: frozenset[str] = frozenset()


@functools.cache
def bound_names(names: tuple[Any, ...]) -> Names:
    """The names of a constant in converted code: behind them those that are unsure, in a tuple of their own."""
    unsure = names[-1] if names and isinstance(names[-1], tuple) else ()
    result = Names(names[:-1] if unsure else names)
    result.unsure = frozenset(unsure)
    return result


def current_values(frame: FrameType, names: Sequence[str]) -> Values:
    """What names hold now: of those that hold nothing UNBOUND, or UNREAD if that matters to nobody."""
    held, unsure = frame.f_locals, getattr(names, "unsure", ())
    offered = active.offered.get(frame) if active.offered else None
    if offered is not None:
        held = {name: value for name, value in {**held, **offered}.items() if not is_unbound(value)}
    return {
        name: narrowing.narrow(held[name]) if name in held else UNBOUND if name in unsure else UNREAD for name in names
    }


def values_for_code(
    values: Values, names: Sequence[str], frame: FrameType, where: diagnostics.CodeLocation
) -> list[Any]:
    """Values as converted code takes them; what has none becomes UNBOUND, and it is kept why."""
    result = []
    for name in names:
        value = values.get(name, UNBOUND)
        if isinstance(value, TypeMismatch):
            active.conflicts[frame.f_code, name] = diagnostics.MismatchReport(value, where)
            value = UNBOUND
        elif is_choice(value):
            value.name, value.where = name, where.location
        result.append(UNBOUND if is_unbound(value) else value)
    return result


def literal_code(kind: ExitKind) -> Tensor:
    return scalar(kind.number, dtypes.int32, "convert")


def single_code(bundle: Exits) -> Tensor:
    """The code of the one way in which something ended."""
    return literal_code(next(iter(bundle.by_kind), NORMAL))


def relabel(bundle: Exits, alias: Mapping[ExitKind, ExitKind], region: SubTrace | None = None) -> Exits:
    """The bundle, which lies in ``region`` or in the trace that goes on, with other names for some outcomes.

    Of two that become one it has but one."""
    if not any(kind in alias for kind in bundle.by_kind):
        return bundle
    code = bundle.code
    if code is not None:
        with contextlib.nullcontext() if region is None else region.entered():
            for kind in bundle.by_kind:
                if kind in alias:
                    code = relabel_code(code, kind, alias[kind])
    kinds = {alias.get(kind, kind): values for kind, values in bundle.by_kind.items()}
    return Exits(kinds, code if len(kinds) > 1 else None)


def relabel_code(code: Tensor, kind: ExitKind, other: ExitKind) -> Tensor:
    return elementwise.where(elementwise.equal(code, kind.number), literal_code(other), code)
