"""The collector of cycles is held back for as long as anybody asks, and is then as it was."""

from __future__ import annotations

import gc
import os
import threading

import pytest

from hybridflow.runtime import gc_pause


@pytest.fixture(autouse=True)
def as_before():
    on = gc.isenabled()
    yield
    (gc.enable if on else gc.disable)()


@pytest.mark.parametrize("on", [True, False])
def test_it_is_afterwards_as_before(on):
    (gc.enable if on else gc.disable)()
    with pytest.raises(ZeroDivisionError), gc_pause.paused():
        with gc_pause.paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled() == on


def _in_a_thread(entered, leave):
    with gc_pause.paused():
        entered.set()
        leave.wait(300)


def test_the_last_thread_lets_go():
    gc.enable()
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=_in_a_thread, args=(entered, leave))
    with gc_pause.paused():
        thread.start()
        assert entered.wait(300)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("inside", [True, False])
def test_a_child_waits_for_no_thread_of_its_parent(inside):
    gc.enable()
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=_in_a_thread, args=(entered, leave))
    thread.start()
    assert entered.wait(300)

    def answer():
        process = os.fork()
        if process == 0:
            os._exit(gc.isenabled())
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    if inside:
        with gc_pause.paused():
            assert answer() == 0
    else:
        assert answer() == 1
    leave.set()
    thread.join()
    assert gc.isenabled()
