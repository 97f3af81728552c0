"""Why a gradient is None: found in what a tape has seen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from hybridflow.compiler.autodiff import Record
from hybridflow.compiler.ir.dtypes import is_inexact
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import short_location


class Cut(NamedTuple):
    """Where a path of derivatives ended: the ids of the tensors that went in, and the variable that was assigned."""

    what: str
    inputs: tuple[int, ...]
    where: str | None

    def __str__(self) -> str:
        return self.what + (f" at {short_location(self.where)}" if self.where else "")


class Evidence(NamedTuple):
    """What a tape has seen: its records, the ids of the tensors that it tracks, where paths ended, the ``reads`` of the
    variable that is asked for, and whether it watches variables that are read."""

    records: Sequence[Record]
    tracked: Collection[int]
    cuts: Sequence[Cut]
    reads: Sequence[Tensor]
    watch_accessed: bool


def explain(source: Any, targets: Sequence[Tensor], seen: Evidence) -> str:
    """Why there is no gradient of ``targets`` with respect to ``source``."""
    if not is_inexact(source.dtype):
        return f"integer dtype: it is {source.type}, and only floats have derivatives; convert it to a float first"
    if isinstance(source, Variable):
        start = [id(t) for t in seen.reads]
        if not start:
            return _unread(source, seen.watch_accessed)
    elif id(source) in seen.tracked:
        start = [id(source)]
    else:
        return "not watched: call tape.watch(x) before x is used"
    reached = _reached(start, seen.records)
    cuts = [cut for cut in seen.cuts if not reached.isdisjoint(cut.inputs)]
    if cuts:
        return f"no derivative passes through {'; '.join(dict.fromkeys(map(str, cuts[:3])))}"
    if targets and not any(id(t) in seen.tracked for t in targets):
        return "the target was not recorded: it was not computed from anything watched while the tape was recording"
    return "not on any path: the target was computed without it"


def _unread(variable: Variable, watch_accessed: bool) -> str:
    if not variable.trainable:
        return "not watched: it is not trainable; call tape.watch(variable) before it is used"
    if not watch_accessed:
        return "not watched: the tape was made with watch_accessed_variables=False; call tape.watch(variable)"
    return "not read: nothing recorded by the tape reads the variable"


def _reached(start: Iterable[int], records: Iterable[Record]) -> set[int]:
    """The ids of all recorded tensors that depend on those in ``start``."""
    reached = set(start)
    for record in records:
        if any(id(x) in reached for x in record.inputs):
            reached.update(map(id, record.outputs))
    return reached
