"""Forked children work, whatever the other threads of the parent were doing."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

# Threads that compile, differentiate, draw numbers and update variables without end, while the main thread forks.  A
# child finds every update whole: both variables have the same value.  A child that waits for a lock of a thread that it
# does not have is ended by the alarm.  What is imported at the first compilation is imported before: a fork in the
# middle of an import leaves the child Python's own lock on that module.
_PROGRAM = """
    import os, signal, threading
    import hybridflow as hf
    from hybridflow.core.context import reasons

    x = hf.constant([1.0, 2.0, 3.0])
    v, w = hf.Variable([0.0, 0.0, 0.0]), hf.Variable([0.0, 0.0, 0.0])
    stop = False

    @hf.function
    def step(a):
        v.assign_add(a)
        w.assign(w + a)
        return hf.sum(v - w)

    def gradient(f):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x).tolist()

    def work():
        n = 0
        while not stop:
            n += 1
            gradient(hf.exp)
            hf.random.normal((2,))
            hf.function(lambda a: a + n)(x)
            for _ in range(50):
                step(x)
            gradient(step)

    def child():
        before = v.tolist()
        if before != w.tolist() or step(x).item() != 0.0 or v.tolist() != [b + a for a, b in zip(x.tolist(), before)]:
            return False
        square = hf.function(lambda a: a * a)
        good = gradient(square) == [2.0, 4.0, 6.0] and square(x).tolist() == [1.0, 4.0, 9.0]
        hf.random.normal((2,))
        return good and reasons.none_here()

    child()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    ends = []
    for _ in range(10):
        process = os.fork()
        if process == 0:
            signal.alarm(300)
            os._exit(0 if child() else 1)
        ends.append(os.waitpid(process, 0)[1])
    stop = True
    for thread in threads:
        thread.join()
    print(ends)
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=900, check=True
    )
    return done.stdout


def test_forks_while_threads_work():
    assert run(_PROGRAM) == f"{[0] * 10}\n"


def test_fork_inside_a_tape_and_a_trace():
    out = run("""
        import os
        import hybridflow as hf
        from hybridflow.core.context import busy

        x = hf.constant([1.0, 2.0])

        def forked(check):
            process = os.fork()
            if process == 0:
                os._exit(0 if check() else 1)
            return os.waitpid(process, 0)[1]

        @hf.function
        def f(a):
            b = a * a
            print(forked(lambda: busy.value == 2 and (b + 1).shape == (2,)))
            return b

        with hf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
            print(forked(lambda: busy.value == 1 and tape.gradient(y, x).tolist() == [2.0, 4.0]))
        print(busy.value, forked(lambda: busy.value == 0))
        """)
    assert out == "0\n0\n0 0\n"


# The first compilation of a process imports the compiler and LLVM.  Each child of the outer loop is such a process.
_FIRST = """
    import os, signal, sys, threading, time
    import hybridflow as hf

    x = hf.constant([1.0, 2.0, 3.0])

    def work(k):
        hf.function(lambda a: hf.exp(a) * k + hf.sum(a))(x)

    def first_compilations(seed):
        threads = [threading.Thread(target=work, args=(float(k),), daemon=True) for k in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(seed % 25 * 0.01)  # at another place each time
        process = os.fork()
        if process == 0:
            signal.alarm(300)
            os._exit(0 if hf.function(lambda a: a * a + 2.0)(x).tolist() == [3.0, 6.0, 11.0] else 1)
        return os.waitpid(process, 0)[1]

    ends = []
    for seed in range(COUNT):
        process = os.fork()
        if process == 0:
            signal.alarm(600)
            os._exit(1 if first_compilations(seed) else 0)
        ends.append(os.waitpid(process, 0)[1])
    print(set(ends), "llvmlite" in sys.modules)
"""


@pytest.mark.slow
def test_forks_during_first_compilations():
    assert run(_FIRST.replace("COUNT", os.environ.get("HF_TEST_FORKS", "12"))) == "{0} False\n"


def test_a_fork_with_threads_leaves_nothing_to_import(tmp_path):
    out = run(f"""
        import os, sys, threading
        os.environ["HF_CACHE_DIR"] = {str(tmp_path)!r}
        import hybridflow as hf

        done = threading.Event()
        thread = threading.Thread(target=done.wait)
        thread.start()
        process = os.fork()
        if process == 0:
            os._exit(0)
        os.waitpid(process, 0)
        done.set()
        before = set(sys.modules)
        x = hf.ones((4, 4))
        v = hf.Variable(1.0)

        @hf.function
        def f(x):
            v.assign_add(1.0)
            return hf.sum(hf.exp(x @ x) * v) + hf.sum(hf.cumulative_sum(hf.sort(x), axis=0)) + hf.take(x, [0], axis=0)

        with hf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        tape.gradient(y, x)
        f(x), f(x), hf.random.normal((2,)), hf.tanh(x)
        print(sorted(set(sys.modules) - before))
        """)
    assert out == "[]\n"


def test_an_interrupt_while_it_forks_leaves_nothing_locked() -> None:
    """What the handler of a signal raises that came in the middle of a fork meets the first step after it, where Python
    drops it.  Other threads write variables and compile as before."""
    program = """
        import ctypes, functools, os, signal, sys, threading

        # The last step before a fork is the first one that is registered; in C, so that nothing is raised here.
        os.register_at_fork(before=functools.partial(getattr(ctypes.CDLL(None), "raise"), signal.SIGINT))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import hybridflow as hf
        from hybridflow.runtime import background

        v, dropped = hf.Variable(1.0), []
        sys.unraisablehook = lambda found: dropped.append(found.exc_type)

        @hf.function
        def step(x):
            v.assign_add(x)

        def work():
            step(hf.asarray(1.0))
            v.assign_add(1.0)
            print(v.item(), hf.function(lambda x: x * 3.0)(hf.ones(2)).tolist())

        step(hf.asarray(1.0))
        try:
            if not os.fork():
                os._exit(0)
        except KeyboardInterrupt:
            dropped.append(KeyboardInterrupt)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(300)
        print([kind.__name__ for kind in dropped], thread.is_alive(), background._is_held, flush=True)
        os._exit(0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=900)
    assert done.stdout == "4.0 [3.0, 3.0]\n['KeyboardInterrupt'] False False\n", (done.stdout, done.stderr)


def test_steps_of_modules_that_are_imported_within_a_fork() -> None:
    """Those after it release what those before it take; another thread has what a child could need imported then."""
    program = """
        import os, sys, threading
        import hybridflow as hf

        begun, over = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: (begun.set(), over.wait()))
        thread.start()
        begun.wait()
        for _ in range(2):
            child = os.fork()
            if not child:
                import concurrent.futures.thread, logging
                locks = logging._lock, concurrent.futures.thread._global_shutdown_lock
                os._exit(0 if all(lock.acquire(timeout=10) for lock in locks) else 7)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        over.set()
        import concurrent.futures.thread, logging
        print(os.register_at_fork.__name__)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("0\n0\nregister_at_fork\n", "")


def test_calls_of_other_threads_do_not_go_on_in_a_child() -> None:
    program = """
        import os, threading
        import hybridflow as hf
        from hybridflow.core import transaction
        from hybridflow.core.context import transactions

        begun, over = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: transaction.run(lambda: (begun.set(), over.wait())))
        thread.start()
        begun.wait()

        def fork_and_show():
            child = os.fork()
            if not child:
                print(transactions.value, flush=True)
                return True
            os.waitpid(child, 0)
            return False

        print(transactions.value, flush=True)
        if fork_and_show():
            os._exit(0)
        if transaction.run(fork_and_show):
            print(transactions.value, flush=True)
            os._exit(0)
        over.set()
        thread.join()
        print(transactions.value)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr) == ("1\n0\n1\n0\n0\n", "")
