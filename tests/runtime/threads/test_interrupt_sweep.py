"""A bounded part of the sweep of interrupts, with the exceptions that they raise kept in cycles: no crash, no hang."""

from __future__ import annotations

import signal

import pytest

from tests.support import interrupt_sweep

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX signals")


@pytest.mark.slow
def test_interrupts_anywhere_in_a_trace_a_compilation_and_a_run() -> None:
    total, wrong = interrupt_sweep.sweep(seed=1000, seconds=1200, attempts=40)
    assert not wrong, wrong[0]
    assert total["single"] + total["burst"] >= 40
    assert total["singles that hit"] + total["bursts that hit"] >= 3, f"interrupts come too late: {total}"
