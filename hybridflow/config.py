"""Settings of the process that are changed while it runs."""

from __future__ import annotations

from hybridflow.context import add_process_reason

_eager = False


def run_functions_eagerly(on: bool) -> None:
    """Whether the bodies of all functions run as plain Python at each call, op by op, for debugging.

    Traces made before are kept, and used again when it is turned off.
    """
    global _eager
    if bool(on) != _eager:
        _eager = bool(on)
        add_process_reason(1 if _eager else -1)  # native calls must not bypass it


def functions_run_eagerly() -> bool:
    """Whether ``run_functions_eagerly(True)`` is in force."""
    return _eager
