"""Functions that call themselves without end while they are traced."""

from __future__ import annotations

from collections import Counter
from types import CodeType, TracebackType

from hybridflow.autograph.runtime.conditional import Conditional
from hybridflow.errors import ConcretizationError, TraceError, is_internal

_SHOWN = 4  # functions of a circle


def endless(name: str, error: RecursionError) -> TraceError:
    """What to say of a trace that went deeper than Python goes: who calls whom, at the user's line."""
    calls = _calls(error.__traceback__)
    if not calls:
        return TraceError(name, f"{error} while it was traced.")
    (again, times), *_ = Counter(calls).most_common(1)
    first = calls.index(again)
    following = calls.index(again, first + 1) if times > 1 else len(calls)
    circle = [code.co_qualname.rpartition("<locals>.")[2] for code, _ in calls[first:following]]
    names = list(dict.fromkeys(circle))
    if len(names) == 1:
        what = f"{names[0]} calls itself"
    else:
        more = " → ..." if len(names) > _SHOWN else ""
        what = f"{' → '.join(names[:_SHOWN])}{more} → {names[0]} call each other"
    kind = ConcretizationError if _is_in_branch(error.__traceback__) else TraceError
    return kind(
        name,
        f"{what} while this is traced, deeper than Python goes. Both sides of an if whose condition is a tensor are "
        "traced, so that no tensor ends it: write a while loop, or let Python numbers end it. What does end, but "
        "deeper, needs sys.setrecursionlimit.",
        f"{again[0].co_filename}:{again[1]}",
    )


def _is_in_branch(traceback: TracebackType | None) -> bool:
    """Whether code of the user's had come to an ``if`` whose condition is a tensor, which may end the calls eagerly."""
    while traceback is not None:
        frame = traceback.tb_frame
        is_users = not is_internal(frame.f_code.co_filename)
        if is_users and any(type(value) is Conditional for value in frame.f_locals.values()):
            return True
        traceback = traceback.tb_next
    return False


def _calls(traceback: TracebackType | None) -> list[tuple[CodeType, int]]:
    """The user's functions, outermost first, and the lines in which they called on."""
    result = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_internal(code.co_filename):
            result.append((code, traceback.tb_lineno or 0))
        traceback = traceback.tb_next
    return result
