"""What stands for one of several objects, of which a tensor decides which it is."""

from __future__ import annotations

from collections.abc import Container, Sequence
from types import FrameType
from typing import Any

from hybridflow.core.tensor import Tensor
from hybridflow.errors import TraceError
from hybridflow.tracing.flow.state import active
from hybridflow.tracing.flow.witnesses import reaches


def note_doubles(made: Sequence[tuple[Any, ...]], frame: FrameType | None = None) -> None:
    """Keep in mind what stands for one of several objects: none of them may be changed in place while another lives.
    It was made for ``frame``, by default the one whose statement the running code is inside of."""
    if frame is None and active.path is not None:
        frame = active.path.frame
    if frame is not None:
        active.doubles += [(frame, group) for group in made]


def kin(but: Container[int]) -> dict[int, list[Any]]:
    """By the id of each object that may be another one, or that another may be: all that it may be, itself included.
    What is noted of objects whose ids are in ``but`` does not count."""
    found: dict[int, list[Any]] = {}
    for _, group in active.doubles:
        if group and id(group[0]) not in but:
            joined = list({id(x): x for one in group for x in found.get(id(one), (one,))}.values())
            found.update((id(x), joined) for x in joined)
    return found


def check_single(value: Any, frame: FrameType) -> None:
    """Before ``value`` is changed in place by ``frame``: raise TraceError if it depends on a tensor whether another
    object that names still hold is that same one."""
    active.changes += 1
    met, frames = {id(value): value}, {frame}
    known = -1
    while known != len(met):  # what stands for one of several may be one of several again
        known = len(met)
        for own, group in active.doubles:
            if any(id(one) in met for one in group):
                met.update((id(one), one) for one in group)
                frames.add(own)
    del met[id(value)]
    names = [held for f in frames for name, held in f.f_locals.items() if name.isidentifier()] if met else []
    if met and reaches(names, met.values()):
        kind = "tensor" if isinstance(value, Tensor) else type(value).__name__
        raise TraceError(
            "convert",
            f"a {kind} is changed in place, and it depends on a tensor which of several it is. "
            "Copy it before, or make a new one instead of changing it.",
        )
