"""What functions do where a call would have to trace them again."""

from __future__ import annotations

from hybridflow.errors import ArgumentError, entered

DEFAULT, FAIL, EAGER = "default", "fail_on_retrace", "eager_on_retrace"
_NAMES = (DEFAULT, FAIL, EAGER)

_now = DEFAULT


def current() -> str:
    """The name of the stance that is in force."""
    return _now


class stance:  # called like a function, and entered
    """Policy on retracing, for all functions of the process: what happens when a call would retrace a function.

    First traces are always made. As a context manager it applies until the block ends.

    Args:
        name: "default" traces again. "fail_on_retrace" raises a TraceError that says why, for programs that must not
            stop once they are warm. "eager_on_retrace" runs that call op by op.

    Raises:
        ArgumentError: for another name.

    >>> f = hf.function(lambda x: x + 1)
    >>> _ = f(hf.ones(3))
    >>> with hf.stance("eager_on_retrace"):
    ...     f(hf.ones((1, 2)))
    <Tensor f32[1,2] cpu>
    [[2. 2.]]
    """

    @entered
    def __init__(self, name: str) -> None:
        global _now
        if name not in _NAMES:
            raise ArgumentError("stance", f"{name!r} is no stance; they are {', '.join(_NAMES)}.")
        self._before, _now = _now, name

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        global _now
        _now = self._before
