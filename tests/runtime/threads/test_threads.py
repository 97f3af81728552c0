"""The team of threads: whatever their number, programs have the same bits and raise the same errors."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.cli import doctor
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import NAMED
from hybridflow.errors import ArgumentError
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target, machine_code
from hybridflow.runtime.native.ir_builder import I64, PTR, VOID, Module, i64
from hybridflow.runtime.thread_pool_words import LEAST, MOST, PARALLEL_FOR, words
from hybridflow.runtime.threads import thread_count, thread_pool, thread_pool_code
from tests.support.bits import same_bits
from tests.support.everyday_programs import EVERYDAY
from tests.support.teams import threads

pytestmark = pytest.mark.skipif(thread_pool.problem() is not None, reason=str(thread_pool.problem()))

COUNTS = (2, 3, 7)
MUCH = 1 << 40  # work for which every thread is woken


def leaves(result):
    return [np.asarray(part) for part in hf.tree.flatten(result)[0]]


def arguments(name: str, sizes: dict[str, int]):
    program, rng = EVERYDAY[name], np.random.default_rng(7)
    dtypes = program.dtypes or ("float32",) * len(program.shapes)
    shapes = [[sizes[e] if isinstance(e, str) else e for e in shape] for shape in program.shapes]
    return [hf.asarray((3 * rng.random(shape)).astype(dtype)) for shape, dtype in zip(shapes, dtypes)]


def outcome(compiled, given):
    """The text of what is raised, and the results."""
    try:
        return "", leaves(compiled(*given))
    except (LookupError, ValueError) as error:
        return str(error), []


@pytest.mark.parametrize("name", EVERYDAY)
def test_everyday_programs(name):
    for sizes in ({"n": 6, "m": 4, "k": 5}, {"n": 200, "m": 130, "k": 70}):
        given = arguments(name, sizes)
        compiled = hf.function(EVERYDAY[name].body)
        with threads(1):
            error, expected = outcome(compiled, given)
        for count in COUNTS:
            with threads(count):
                for _ in range(2):  # in Python, then in native code
                    message, got = outcome(compiled, given)
                    assert message == error and len(got) == len(expected)
                    assert all(map(same_bits, got, expected)), count


X = np.random.default_rng(0).standard_normal(1 << 20, np.float32)
LARGE = {
    "map": lambda x: hf.tanh(x) * x + 1,
    "sum": lambda x: hf.sum(x * x),
    "rows": lambda x: hf.nn.softmax(x.reshape((1024, 1024))),
    "columns": lambda x: hf.mean(x.reshape((1024, 1024)), axis=0),
    "scan": hf.cumulative_sum,
    "lines": lambda x: hf.cumulative_sum(x.reshape((1024, 1024)), axis=0),
    "product": lambda x: x[: 1 << 16].reshape((256, 256)) @ x[-(1 << 16) :].reshape((256, 256)),
    "lanes": lambda x: x.reshape((4096, 256)) @ x[:256],
    "transpose": lambda x: x.reshape((512, 2048)).T + 1,
    "join": lambda x: hf.concat([x[::-1], x * 2]),
    "sort": lambda x: hf.sort(x.reshape((4096, 256))),
    "scatter": lambda x: hf.scatter_add(hf.zeros((1000,)), hf.astype(hf.abs(x) * 100, "int64"), x),
    "several": lambda x: [hf.sum(x[k::7] * k) for k in range(7)],
}


@pytest.mark.parametrize("way", LARGE)
def test_large_programs(way):
    compiled, x = hf.function(LARGE[way]), hf.asarray(X)
    with threads(1):
        expected = leaves(compiled(x))
    for count in COUNTS:
        with threads(count, all_programs=False):
            for _ in range(3):
                assert all(map(same_bits, leaves(compiled(x)), expected)), count
    assert thread_pool.started() > 0


def test_eager_operations():
    x = hf.asarray(X)
    with threads(1):
        expected = [y.numpy() for y in (x + x, x * 2.0, hf.exp(x), -x, hf.sum(x))]
    with threads(3, all_programs=False):
        for _ in range(10):
            got = [y.numpy() for y in (x + x, x * 2.0, hf.exp(x), -x, hf.sum(x))]
            assert all(map(same_bits, got, expected))


def test_the_error_is_that_of_the_first_check():
    """Whichever thread comes to a failing check first."""
    table, n = hf.arange(1000.0), 1 << 18

    @hf.function
    def taken(table, first, second):
        return hf.take(table, first), hf.take(table, second)  # the second one fails everywhere

    good, wrong = np.zeros(n, np.int64), np.full(n, 5000)
    late = good.copy()
    late[-1] = 1000
    texts = set()
    for count in (1, *COUNTS):
        with threads(count):
            for _ in range(5):
                with pytest.raises(IndexError) as caught:
                    taken(table, hf.asarray(late), hf.asarray(wrong))
                texts.add(str(caught.value))
                assert taken(table, hf.asarray(good), hf.asarray(good))[0][0].item() == 0.0
    assert len(texts) == 1


def test_state_is_as_it_was_after_an_error():
    v = hf.Variable(X)

    @hf.function
    def step(index):
        v.assign(v * 2 + hf.take(v, index))

    index = np.zeros(X.size, np.int64)
    with threads(3):
        step(index)
        before = v.numpy().copy()
        index[-5] = X.size
        with pytest.raises(IndexError):
            step(index)
        assert same_bits(v.numpy(), before)


def test_many_callers():
    """One has the team, the others do their own work; and somebody changes the number of threads meanwhile."""
    compiled = hf.function(lambda x, k: hf.sum(hf.sqrt(x * x + k)))
    given = [(hf.asarray(X), hf.asarray(np.float32(k))) for k in range(6)]
    with threads(1):
        expected = [compiled(*arguments).numpy() for arguments in given]
    wrong, over = [], threading.Event()

    def call(k):
        for _ in range(30):
            if not same_bits(compiled(*given[k]).numpy(), expected[k]):
                wrong.append(k)

    def change():
        k = 0
        while not over.is_set():
            k += 1
            hf.config.set_num_threads(1 + k % 5)
            over.wait(0.001)

    with threads(3, all_programs=False):
        changing = threading.Thread(target=change)
        callers = [threading.Thread(target=call, args=(k,)) for k in range(6)]
        for thread in (changing, *callers):
            thread.start()
        for thread in callers:
            thread.join()
        over.set()
        changing.join()
    assert not wrong


def test_what_threads_need_is_compiled_once(monkeypatch):
    """Two callers that ask for it at once get the same machine code: another one would be unloaded while it runs."""
    b = GraphBuilder(TABLE)
    x = b.parameter(TensorType((1 << 16,), dt.float32))
    program = compile_graph(b.finish([b.exp(x)]), host_target.target())
    with threads(1):
        executable = cpu.load(program)
    made, both, compiled = [], threading.Barrier(2), cpu._compiled

    def slow(*arguments):
        made.append(arguments)
        threading.Event().wait(0.05)
        return compiled(*arguments)

    def ask():
        both.wait()
        executable.share()

    monkeypatch.setattr(cpu, "_compiled", slow)
    with threads(2):
        callers = [threading.Thread(target=ask) for _ in range(2)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert len(made) == 1


def test_calls_inside_of_calls():
    """A function in Python that a program calls runs programs itself, on the thread of its caller."""
    inner, seen = hf.function(lambda y: hf.tanh(y) * 3), set()

    def called(y):
        seen.add(threading.get_ident())
        return inner(hf.asarray(y)).numpy()

    b = GraphBuilder(TABLE)
    x = b.parameter(TensorType((1 << 16,), dt.float32))
    y = b.exp(x)
    _, z = b.results(b.callback(b.token(), y, number=0, types=(y.type,)))
    graph = b.finish([b.sum(b.multiply(z, y), axes=(0,)), b.cumulative_sum(z, axis=0)])
    executable = cpu.load(compile_graph(graph, host_target.target()), [called])
    with threads(1):
        expected = executable.run([X[: 1 << 16]])
    for count in COUNTS:
        with threads(count):
            assert all(map(same_bits, executable.run([X[: 1 << 16]]), expected))
    assert seen == {threading.get_ident()}


def test_more_threads_than_cores():
    compiled = hf.function(lambda x: hf.sum(hf.exp(x)))
    with threads(1):
        expected = compiled(hf.asarray(X)).numpy()
    with threads(64, all_programs=False):
        for _ in range(20):
            assert same_bits(compiled(hf.asarray(X)).numpy(), expected)


# ---- the native code by itself


def loaded(futex: bool, placed: bool):
    """A team of its own, and tasks: one that counts up each unit's number, one that notes how its thread rounds, and
    one that notes how long each piece is."""
    module = Module()
    f = module.function("count_up", VOID, PTR, I64, I64, I64)
    args, begin, end, _ = f.args
    with f.count(f.b.sub(end, begin)) as k:
        place = f.element(args, f.b.add(begin, k), I64)
        f.set(place, f.b.add(f.get(place, I64), i64(1)))
    f.ret()
    f = module.function("note_mode", VOID, PTR, I64, I64, I64)
    args, begin, end, worker = f.args
    with f.count(f.b.sub(end, begin)) as k:
        both = f.b.or_(f.b.shl(worker, i64(32)), f.call("floating_point", I64))
        f.set(f.element(args, f.b.add(begin, k), I64), both)
    f.ret()
    f = module.function("note_length", VOID, PTR, I64, I64, I64)
    args, begin, end, _ = f.args
    f.set(f.element(args, begin, I64), f.b.sub(end, begin))
    f.ret()
    symbols = ("team_for", "team_forget", "team_started", "floating_point", "use_floating_point")
    imports = {"team_words": ctypes.addressof(words)}
    target = host_target.detect()
    image = machine_code.compile_object(thread_pool_code.build(futex, placed), target, use="runtime")
    native = machine_code.load_object(image, *symbols, imports=imports)
    tasks = machine_code.compile_object(str(module.ir), target, use="runtime")
    own = machine_code.load_object(
        tasks, "count_up", "note_mode", "note_length", imports={"floating_point": native.addresses["floating_point"]}
    )
    for code in (native, own):  # its threads live as long as the process
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    ctypes.CFUNCTYPE(None)(native.addresses["team_forget"])()
    return {**native.addresses, **own.addresses}


@pytest.fixture(scope="module", params=["futex", "condition", "elsewhere"])
def own_team(request):
    """Teams whose threads wait in either way, and one that may not say where they run."""
    futex, placed = request.param == "futex", request.param != "elsewhere"
    if (futex and not thread_count.has_futex()) or (placed and not thread_count.has_places()):
        pytest.skip("this system has not what it needs")
    return loaded(futex, placed)


def run(addresses, task, out, workers, grain=1, at_least=2):
    struct = thread_pool.ThreadPoolHost(workers=workers, work=MUCH)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 4)(addresses["team_for"])
    function(ctypes.addressof(struct), addresses[task], out.ctypes.data, out.size, grain, at_least, MUCH)


@pytest.mark.parametrize("workers", [1, 2, 3, 8, 40])
def test_every_unit_is_done_once(own_team, workers):
    for units in (0, 1, 2, 7, 100, 100_003):
        out = np.zeros(units + 1, np.int64)
        for turn in range(1, 60):
            run(own_team, "count_up", out[:units], workers, grain=(1, 3, 64)[turn % 3])
            assert (out[:units] == turn).all() and out[units] == 0


@pytest.mark.parametrize("units", [7, 600, 100_003])
def test_units_that_differ_are_pieces_of_their_own(own_team, units):
    """As far as pieces can be counted: no thread is left with two large units that lie side by side."""
    out = np.zeros(units, np.int64)
    run(own_team, "note_length", out, 2)
    assert out.sum() == units and out.max() > 1
    out[:] = 0
    run(own_team, "note_length", out, 2, at_least=0)
    assert out.sum() == units and out.max() == (1 if units < 1 << 16 else 2)


def test_it_wakes_up(own_team):
    out = np.zeros(1000, np.int64)
    for turn in range(1, 20):
        run(own_team, "count_up", out, 5)
        threading.Event().wait(0.002)  # long enough for all to sleep
        assert (out == turn).all()


def test_callers_side_by_side(own_team):
    def call():
        out = np.zeros(500, np.int64)
        for turn in range(1, 300):
            run(own_team, "count_up", out, 4)
            if not (out == turn).all():
                wrong.append(turn)

    wrong: list[int] = []
    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_threads_round_as_their_caller_does(own_team):
    """Denormal numbers are zeros to a thread in which somebody has said so: then they are to all that help it."""
    get = ctypes.CFUNCTYPE(ctypes.c_int64)(own_team["floating_point"])
    put = ctypes.CFUNCTYPE(None, ctypes.c_int64)(own_team["use_floating_point"])
    before = get()
    other = before ^ (0x8040 if host_target.detect().triple.startswith("x86") else 1 << 24)
    out = np.zeros(1 << 16, np.int64)
    seen = set()
    for mode in (other, before) * 20:
        put(mode)
        try:
            run(own_team, "note_mode", out, 3)
        finally:
            put(before)
        assert set(np.unique(out & 0xFFFFFFFF)) == {mode}
        seen |= set(np.unique(out >> 32))
    assert seen <= {0, 1, 2}


# ---- processes


def output_of(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


_PRELUDE = """
import os, signal, sys, threading, time
import numpy as np
import hybridflow as hf
from hybridflow.cli import doctor
from hybridflow.runtime.threads import thread_pool
x = hf.asarray(np.random.default_rng(0).standard_normal(1 << 20, np.float32))
f = hf.function(lambda x: hf.sum(hf.exp(x) * x))
hf.config.set_num_threads(1)
expected = f(x).item()
hf.config.set_num_threads(3)
"""


@pytest.mark.skipif(not thread_count.has_places() or len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_threads_run_on_other_cores_than_their_caller():
    """Also when the caller moves; what others say of a thread stays; more threads than cores may run anywhere."""
    found = output_of(
        _PRELUDE
        + textwrap.dedent("""
        cores = set(sorted(os.sched_getaffinity(0))[:2])
        os.sched_setaffinity(0, cores)
        old = set(os.listdir("/proc/self/task"))
        hf.config.set_num_threads(2)

        def cores_of_the_thread():
            time.sleep(0.01)  # threads are not moved twice in a millisecond
            assert f(x).item() == expected
            (new,) = set(os.listdir("/proc/self/task")) - old
            time.sleep(0.01)
            return int(new), os.sched_getaffinity(int(new))

        f(x)
        right = []
        for core in sorted(cores) * 2:
            os.sched_setaffinity(0, {core})
            thread, found = cores_of_the_thread()
            right.append(found == cores - {core})
        os.sched_setaffinity(thread, {core})
        os.sched_setaffinity(0, cores - {core})
        right.append(cores_of_the_thread()[1] == {core})
        os.sched_setaffinity(thread, cores - {core})
        right.append(cores_of_the_thread()[1] == cores - {core})
        os.sched_setaffinity(0, {core})
        right.append(cores_of_the_thread()[1] == cores - {core})
        os.sched_setaffinity(thread, cores)
        hf.config.set_num_threads(3)
        time.sleep(0.01)
        assert f(x).item() == expected
        time.sleep(0.01)
        right.append(os.sched_getaffinity(thread) == cores)
        print(right)
        """)
    )
    assert found == str([True] * 8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_forks_while_it_works():
    """A child has no threads at first, and makes its own; the parent's go on."""
    found = output_of(
        _PRELUDE
        + textwrap.dedent("""
        stop, wrong = False, []
        def work():
            while not stop:
                if f(x).item() != expected:
                    wrong.append(1)
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        while not thread_pool.started():
            time.sleep(0.001)
        ends = []
        for _ in range(10):
            process = os.fork()
            if process == 0:
                signal.alarm(300)
                none = thread_pool.started() == 0
                right = all(f(x).item() == expected for _ in range(5))
                os._exit(0 if none and right and thread_pool.started() == 2 else 1)
            ends.append(os.waitpid(process, 0)[1])
        stop = True
        for thread in threads:
            thread.join()
        print(set(ends), wrong, f(x).item() == expected, thread_pool.started() > 0)
        """)
    )
    assert found == "{0} [] True True"


def test_an_interrupt_leaves_it_usable():
    found = output_of(
        _PRELUDE
        + textwrap.dedent("""
        caught = 0
        for _ in range(3):
            f(x)  # it is compiled when interrupts come: Python drops those that meet a __del__, as LLVM's objects have
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        for turn in range(20):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 * (1 + turn % 5))
                while True:
                    f(x)
            except KeyboardInterrupt:
                caught += 1
        print(caught, f(x).item() == expected)
        """)
    )
    assert found == "20 True"


def test_the_process_ends_while_it_works():
    found = output_of(
        _PRELUDE
        + textwrap.dedent("""
        def work():
            while True:
                f(x)
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
        print("end", flush=True)
        """)
    )
    assert found == "end"


def test_without_memory_for_threads_programs_run_on_fewer():
    """The C library may have kept stacks of threads that are over, as those that compile are: a few begin on these."""
    resource = pytest.importorskip("resource")
    assert resource
    found = (
        output_of(
            _PRELUDE
            + textwrap.dedent("""
        import resource
        hf.config.set_num_threads(1)
        thread_pool.problem()
        hf.config.set_num_threads(9)
        f.get_concrete_function(x)
        size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + (6 << 20), resource.RLIM_INFINITY))
        few = f(x).item() == expected, thread_pool.started() < 8
        begun = thread_pool.started()
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        same = f(x).item() == expected, thread_pool.started() == begun  # no more attempts
        hf.config.set_num_threads(9)
        print(few, same, f(x).item() == expected, thread_pool.started())
        """)
        )
        if sys.platform == "linux"
        else "(True, True) (True, True) True 8"
    )
    assert found == "(True, True) (True, True) True 8"


def test_small_programs_need_no_threads():
    found = output_of(
        """
        import numpy as np
        import hybridflow as hf
        from hybridflow.runtime.threads import thread_pool
        hf.config.set_num_threads(4)
        f = hf.function(lambda x: hf.sum(hf.exp(x) @ x))
        x = hf.asarray(np.ones((50, 50), np.float32))
        for _ in range(100):
            f(x), x + x, hf.exp(x)
        print(thread_pool.started())
"""
    )
    assert found == "0"


# ---- how many


def test_numbers_of_threads():
    before = hf.config.get_num_threads()
    try:
        for number in (1, 5, MOST):
            hf.config.set_num_threads(number)
            assert hf.config.get_num_threads() == number
        for wrong in (0, -1, MOST + 1, 2.0, "2", True, None):
            with pytest.raises(ArgumentError, match="a number of threads from 1 to 256 is expected"):
                hf.config.set_num_threads(wrong)
        assert hf.config.get_num_threads() == MOST
    finally:
        hf.config.set_num_threads(before)


@pytest.mark.parametrize(
    ("own", "openmp", "expected"),
    [("5", "3", "5"), ("", "3", "3"), ("", " 4,2", "4"), ("", "many", None), ("", "0", None), ("", "9999", "256")],
)
def test_environment(own, openmp, expected):
    program = "import hybridflow as hf; print(hf.config.get_num_threads())"
    found = output_of(program, HF_NUM_THREADS=own, OMP_NUM_THREADS=openmp)
    assert found == (expected or str(thread_count.cores()))


@pytest.mark.parametrize("wrong", ["0x", "-2", "1000"])
def test_wrong_environment(wrong):
    program = """
        try:
            import hybridflow as hf
            hf.config.get_num_threads()
        except ValueError as error:
            print(error)
    """
    assert "HF_NUM_THREADS" in output_of(program, HF_NUM_THREADS=wrong)


def test_quotas_of_control_groups(tmp_path):
    def quota(groups: str, files: dict[str, str]) -> float | None:
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in {"groups": groups, **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return thread_count.cpu_quota(str(root / "groups"), str(root))

    assert quota("0::/\n", {"cpu.max": "max 100000\n"}) is None
    assert quota("0::/\n", {"cpu.max": "150000 100000\n"}) == 1.5
    nested = {"a/cpu.max": "400000 100000\n", "a/b/cpu.max": "max 100000\n", "cpu.max": "800000 100000"}
    assert quota("0::/a/b\n", nested) == 4.0
    assert quota("0::/seen/from/outside\n", {"cpu.max": "50000 100000"}) == 0.5
    old = {"cpu,cpuacct/x/cpu.cfs_quota_us": "200000\n", "cpu,cpuacct/x/cpu.cfs_period_us": "100000\n"}
    assert quota("4:cpu,cpuacct:/x\n2:memory:/x\n", old) == 2.0
    none = {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}
    assert quota("4:cpu:/x\n", none) is None
    assert quota("strange\n4:cpu", {}) is None
    assert thread_count.cpu_quota(str(tmp_path / "nothing"), str(tmp_path)) is None


def test_native_code_reads_what_is_set():
    with threads(4):
        assert words[LEAST] == 0 and words[PARALLEL_FOR]
    assert words[LEAST] > 0


@pytest.mark.parametrize("placed", [True, False], ids=["placed", "anywhere"])
@pytest.mark.parametrize("futex", [True, False], ids=["futex", "condition"])
@pytest.mark.parametrize(("machine", "pause"), [("aarch64", "yield"), ("x86_64", "pause")])
def test_code_for_other_machines(machine, pause, futex, placed, monkeypatch):
    monkeypatch.setattr(thread_pool_code.platform, "machine", lambda: machine)
    target = next(t for t in NAMED.values() if t.kind == "cpu" and t.triple.startswith(machine))
    code = machine_code.compile_assembly(thread_pool_code.build(futex, placed), target, use="runtime")
    assert pause in code
    assert ("syscall" in code) == futex and ("pthread_cond_wait" in code) != futex
    assert ("pthread_setaffinity_np" in code) == placed


def test_the_doctor_says_how_many():
    before = hf.config.get_num_threads()
    try:
        hf.config.set_num_threads(3)
        (finding,) = doctor._threads()
        assert finding.state == "ok" and finding.text.startswith("3 for a program")
    finally:
        hf.config.set_num_threads(before)
