"""A child of a fork computes cached properties that another thread was computing."""

from __future__ import annotations

import functools
import os
import sys
import threading

import pytest

from hybridflow.runtime import fork_safe_locks


class Slow:
    """Is found in a module of hybridflow's, as the classes of the compiler are."""

    @functools.cached_property
    def value(self) -> int:
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            go_on.wait(300)
        return 1


inside, go_on = threading.Event(), threading.Event()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_property_that_another_thread_computes_at_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_safe_locks, "Slow", Slow, raising=False)
    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    assert inside.wait(300)
    child = os.fork()
    if not child:
        import signal

        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(300)
        os._exit(Slow().value)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1, sys.version
