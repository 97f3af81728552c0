"""The figures that hybridflow promises, each measured next to its limit and to what the peers take.

    python benchmarks/figures.py [--json] [--only WORDS] [--peers numpy,jax,torch,tensorflow]

Every figure is a median with quartiles over samples taken in turns (A B A B ...) where both sides can live in one
process.  NumPy always takes part; JAX, PyTorch and TensorFlow where they can be imported, each in a process of its own
with one thread, between two runs of ours, because their thread pools and allocators would disturb each other.

What the figures mean:

call            ``f(x)`` with f = hf.function(lambda x: x + 1) and four floats; and the same with five parts of that 1
                outside of the function (a global, a variable of the enclosing function, an attribute, an item of a dict
                and one of a list), each of which the call compares with what it was.
step            a compiled step over ten variables of eight floats (loss, tape, ten assign_sub), minus its arithmetic:
                the machine code of the same program, called over and over by a loop in native code.
beside          how fast another thread counts in Python while this one runs compiled steps over ten variables of half a
                million floats, as a share of its pace while this one is in NumPy, which has no interpreter's lock there
                either: that is what the machine gives two threads.  The note has the pace as a share of that beside a
                thread that sleeps.
eager add       ``x + y``, ten floats, neither compiled nor recorded.
gradient        tape, ``sum(v * v)``, ``tape.gradient``, ten floats, eagerly.
import          ``python -c 'import hybridflow'`` minus ``python -c pass``, in fresh processes, byte code being there.
first call      of a new function of 30 elementwise ops: with an empty disk cache in a process that has compiled others,
                and with everything on disk in such a process.  A fresh process for every sample.
sum             ``sum(x + y * z)`` over 16 million floats on one thread: bytes per second, as a share of what the
                fastest hand-written loop reads in the same rounds.
memory          growth of the resident set over 300 traces of one 30-op function at different lengths, per trace, after
                free memory went back to the system; and, per trace, what 300 traces of a further such function add
                for good, after five others have come and gone: those pay for room that allocators keep and use again.
pool            growth of the resident set over 400 tensors of 4 to 160 MB at random, one at a time, next to the 160 MB
                of the largest; and what is left of 700 MB in 100 tensors some time after they were dropped.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

_OVERRIDES = ("OPENBLAS_CORETYPE",)  # slows NumPy down; read when it is loaded, so this comes before any import of it
if any(name in os.environ for name in _OVERRIDES):
    os.execve(
        sys.executable,
        [sys.executable, *sys.orig_argv[1:]],
        {name: value for name, value in os.environ.items() if name not in _OVERRIDES},
    )
_BYTE_CODE = tempfile.TemporaryDirectory()
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ["HF_NUM_THREADS"] = "1"
sys.path.insert(0, _ROOT)

import numpy as np  # noqa: E402

import hybridflow as hf  # noqa: E402
from hybridflow.cli import machine_peaks, measure, output  # noqa: E402

PEERS = ("numpy", "jax", "torch", "tensorflow")


@dataclass
class Figure:
    """``ours`` in ``unit``, which should be at most ``limit`` (at least, where ``at_least``)."""

    name: str
    unit: str
    limit: float
    ours: float
    low: float
    high: float
    at_least: bool = False
    peers: dict[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def met(self) -> bool:
        return self.ours >= self.limit if self.at_least else self.ours <= self.limit


def figure(name: str, unit: str, limit: float, timing: measure.Timing, scale: float, **more: object) -> Figure:
    return Figure(
        name,
        unit,
        limit,
        timing.median * scale,
        timing.low * scale,
        timing.high * scale,
        **more,  # type: ignore[arg-type]
    )


# ---- small calls


GLOBAL_ZERO = 0.0


def guarded_call() -> Callable[[hf.Tensor], hf.Tensor]:
    """``x + 1`` where the 1 is summed from five values that lie outside of the function."""
    one, settings, zeros = types.SimpleNamespace(value=1.0), {"zero": 0.0}, [0.0]
    zero = 0.0
    return hf.function(lambda x: x + (one.value + settings["zero"] + zeros[0] + zero + GLOBAL_ZERO))


def compiled_call(peers: tuple[str, ...]) -> list[Figure]:
    array = np.ones(4, np.float32)
    x = hf.asarray(array)
    timings = measure.interleaved(
        {
            "plain": measure.calls(hf.function(lambda x: x + 1), x),
            "guarded": measure.calls(guarded_call(), x),
            "numpy": measure.calls(np.add, array, 1),
        }
    )
    found = {"numpy": timings["numpy"].median * 1e6, **peer_times("call", peers)}
    return [
        figure("compiled call, x + 1 on 4 floats", "µs", 0.2, timings["plain"], 1e6, peers=found),
        figure("compiled call, x + 1 with 5 guards", "µs", 0.3, timings["guarded"], 1e6),
    ]


def training_step(peers: tuple[str, ...]) -> list[Figure]:
    variables = [hf.Variable(np.full(8, 1 + k, np.float32)) for k in range(10)]

    @hf.function
    def step(x: hf.Tensor) -> hf.Tensor:
        with hf.GradientTape() as tape:
            loss = hf.sum(x)
            for v in variables:
                loss = loss + hf.sum(v * v)
        for v, gradient in zip(variables, tape.gradient(loss, variables)):
            v.assign_sub(0.01 * gradient)
        return loss

    x = hf.asarray(np.ones(8, np.float32))
    concrete = step.get_concrete_function(x)
    timings = measure.interleaved(
        {"ours": measure.calls(step, x), "arithmetic": arithmetic(concrete.staged.compile())}, budget=2.0
    )
    whole, inside = timings["ours"], timings["arithmetic"]
    above = measure.Timing(*(t - inside.median for t in (whole.median, whole.low, whole.high)), whole.samples)
    note = f"whole call {whole.median * 1e6:.2f} µs, arithmetic {inside.median * 1e6:.2f} µs"
    return [figure("compiled step, 10 variables, above its arithmetic", "µs", 2.0, above, 1e6, note=note)]


def beside_a_step(peers: tuple[str, ...]) -> list[Figure]:
    """Pace of a thread that counts beside steps, beside NumPy and alone, in turns."""
    variables = [hf.Variable(np.full(500_000, 1 + k, np.float32)) for k in range(10)]

    @hf.function
    def step(x: hf.Tensor) -> None:
        for v in variables:
            v.assign_sub(0.01 * (v * x))

    array = np.ones(5_000_000, np.float32)
    x, counted, over = hf.asarray(np.float32(0.5)), [0], threading.Event()

    def count() -> None:
        while not over.is_set():
            for _ in range(1000):
                pass
            counted[0] += 1000

    def pace(work: Callable[[], object], seconds: float = 0.1) -> float:
        before, started = counted[0], time.perf_counter()
        while time.perf_counter() - started < seconds:
            work()
        return (counted[0] - before) / (time.perf_counter() - started)

    for _ in range(3):
        step(x)  # traced, compiled, and its memory its own
    thread = threading.Thread(target=count)
    thread.start()
    try:
        rounds = [
            (pace(lambda: step(x)), pace(lambda: np.multiply(array, 0.99, out=array)), pace(lambda: time.sleep(0.01)))
            for _ in range(31)
        ]
    finally:
        over.set()
        thread.join()
    shares = measure.timing([beside / limit for beside, limit, _ in rounds])
    whole = measure.timing([beside / alone for beside, _, alone in rounds])
    note = f"{whole.median:.2f} of its pace alone"
    return [figure("counting beside a compiled step, 10 variables", "x", 0.9, shares, 1.0, at_least=True, note=note)]


def arithmetic(executable: object) -> measure.Sampler:
    """Calls of a program's machine code on fixed buffers, by a loop in native code: what no caller can avoid."""
    from hybridflow.compiler.ir.extents import value_at
    from hybridflow.runtime.dtypes import NUMPY
    from hybridflow.runtime.machine import host_target, machine_code

    program = executable.program  # type: ignore[attr-defined]
    buffers = [np.ones(slot.shape, NUMPY[slot.dtype]) for slot in (*program.inputs, *program.outputs)]
    buffers += [buffers[i] for i in executable.updated]  # type: ignore[attr-defined]  # over the old values
    pointers = (ctypes.c_void_p * len(buffers))(*(b.ctypes.data for b in buffers))
    extents = (ctypes.c_int64 * 1)()
    arena = np.zeros(value_at(program.memory(), {}) + 64, np.uint8)
    aligned = (arena.ctypes.data + 63) // 64 * 64
    text = """
define void @repeat(i64 %times, ptr %entry, ptr %buffers, ptr %dims, ptr %arena) {
start:
  br label %again
again:
  %i = phi i64 [ 0, %start ], [ %next, %again ]
  %status = call i32 %entry(ptr %buffers, ptr %dims, ptr %arena, ptr null)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %again, label %done
done:
  ret void
}
"""
    code = machine_code.load_object(machine_code.compile_object(text, host_target.detect()), "repeat")
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 4)
    repeat = kind(code.addresses["repeat"])

    def run(times: int) -> float:
        held = code, buffers, executable
        started = time.perf_counter()
        repeat(times, executable.address, pointers, extents, aligned)  # type: ignore[attr-defined]
        del held
        return time.perf_counter() - started

    return run


def eager_add(peers: tuple[str, ...]) -> list[Figure]:
    x, y = np.ones(10, np.float32), np.full(10, 2, np.float32)
    candidates = {"ours": measure.calls(lambda a, b: a + b, hf.asarray(x), hf.asarray(y))}
    candidates["numpy"] = measure.calls(lambda a, b: a + b, x, y)
    timings = measure.interleaved(candidates)
    found = {"numpy": timings["numpy"].median * 1e6, **peer_times("eager", peers)}
    return [figure("eager x + y, 10 floats", "µs", 1.0, timings["ours"], 1e6, peers=found)]


def eager_gradient(peers: tuple[str, ...]) -> list[Figure]:
    v = hf.Variable(np.arange(10, dtype=np.float32))

    def gradient() -> object:
        with hf.GradientTape() as tape:
            loss = hf.sum(v * v)
        return tape.gradient(loss, v)

    timings = measure.interleaved({"ours": measure.calls(gradient)})
    found = peer_times("gradient", peers)
    return [figure("eager gradient of sum(v*v), 10 floats", "µs", 12.0, timings["ours"], 1e6, peers=found)]


# ---- start-up


def in_fresh_process(source: str, environment: dict[str, str] | None = None) -> str:
    """Standard output of a Python program in a process of its own."""
    # An installed package has its byte code beside it (pip compiles it); here it is kept apart from the clone.
    merged = {**os.environ, "PYTHONPATH": _ROOT, "PYTHONPYCACHEPREFIX": _BYTE_CODE.name, **(environment or {})}
    merged.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", source], env=merged, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a measuring process failed:\n{done.stderr}")
    return done.stdout


def process_seconds(source: str) -> measure.Sampler:
    def run(times: int) -> float:
        started = time.perf_counter()
        for _ in range(times):
            in_fresh_process(source)
        return time.perf_counter() - started

    return run


def import_time(peers: tuple[str, ...]) -> list[Figure]:
    modules = {"ours": "hybridflow", **{peer: peer for peer in peers}}
    candidates = {name: process_seconds(f"import {module}") for name, module in modules.items()}
    for sampler in candidates.values():
        sampler(1)  # writes the byte code
    timings = measure.interleaved({"nothing": process_seconds("pass"), **candidates}, budget=6.0)
    empty = timings["nothing"].median
    found = {peer: timings[peer].median - empty for peer in peers}
    ours = timings["ours"]
    above = measure.Timing(*(t - empty for t in (ours.median, ours.low, ours.high)), ours.samples)
    return [figure("import hybridflow", "s", 0.12, above, 1.0, peers=found)]


_FIRST_CALL = """
import time
import numpy as np
import hybridflow as hf

def chain(x):
    for k in range(10):
        x = hf.tanh(x) * 1.25 + 0.5
    return x

hf.function(lambda x: hf.exp(x) - 3.0)(hf.ones((5,)))  # a process that has compiled before
x = hf.asarray(np.ones(1000, np.float32))
f = hf.function(chain)
started = time.perf_counter()
f(x)
print(time.perf_counter() - started)
"""


def first_call(peers: tuple[str, ...]) -> list[Figure]:
    cold, warm = [], []
    with tempfile.TemporaryDirectory() as kept:
        in_fresh_process(_FIRST_CALL, {"HF_CACHE_DIR": kept})
        for _ in range(7):
            cold.append(float(in_fresh_process(_FIRST_CALL, {"HF_CACHE_DIR": "off"})))
            warm.append(float(in_fresh_process(_FIRST_CALL, {"HF_CACHE_DIR": kept})))
    found = peer_times("first", peers, 1e3)
    return [
        figure("first call, 30 ops, compiled", "ms", 30.0, measure.timing(cold), 1e3, peers=found),
        figure("first call, 30 ops, from disk", "ms", 10.0, measure.timing(warm), 1e3),
    ]


# ---- throughput and memory


def sum_of_products(peers: tuple[str, ...]) -> list[Figure]:
    x = np.random.default_rng(0).standard_normal((3, 16_000_000), np.float32)
    tensors = [hf.asarray(row) for row in x]
    ours = hf.function(lambda x, y, z: hf.reduce_sum(x + y * z))
    reads = machine_peaks.read_samplers(x)
    timings = measure.interleaved(
        {
            "ours": measure.calls(ours, *tensors),
            **reads,
            "numpy": measure.calls(lambda x, y, z: np.sum(x + y * z), *x),
        },
        budget=4.0,
    )
    best = min(timings[name].median for name in reads)
    mine = timings["ours"]
    share = Figure(
        "sum(x + y*z), 16M floats, one thread",
        "of read bandwidth",
        0.85,
        best / mine.median,
        best / mine.high,
        best / mine.low,
        at_least=True,
        peers={"numpy": best / timings["numpy"].median},
        note=f"reads {x.nbytes / mine.median / 1e9:.1f} of {x.nbytes / best / 1e9:.1f} GB/s",
    )
    return [share]


_MEMORY = """
import ctypes, gc, logging
import numpy as np
import hybridflow as hf

def chain(x):
    for k in range(10):
        x = (x * 1.25 + 0.5) / 1.5
    return x

def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

logging.disable()  # of hints that a function is traced too often
def traces(first, count):
    f = hf.function(chain, cache_size=1000)
    for k in range(first, first + count):
        f.get_concrete_function(hf.TensorSpec((k,)))
    return resident()

traces(10, 50)
start = resident()
full = traces(1000, 300)
for k in range(2, 6):  # until the allocators have all the room that they use again
    traces(1000 * k, 300)
before = resident()
traces(6000, 300)
print((full - start) / 300e6, (resident() - before) / 300e6)
"""


def trace_memory(peers: tuple[str, ...]) -> list[Figure]:
    if not os.path.exists("/proc/self/statm"):
        return []
    rounds = [in_fresh_process(_MEMORY, {"HF_CACHE_DIR": "off"}).split() for _ in range(3)]
    held, left = ([float(row[k]) for row in rounds] for k in (0, 1))
    return [
        figure("memory per trace, 30 ops", "MB", 0.15, measure.timing(held), 1.0),
        figure("left per trace after del f", "MB", 0.005, measure.timing(left), 1.0),
    ]


_POOL = """
import gc, random, time
import numpy as np
import hybridflow as hf
from hybridflow.runtime.memory import memory_pool

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def tensor(megabytes):
    array = memory_pool.empty((int(megabytes * 1e6),), np.dtype("u1"))
    array[::4096] = 1
    return array

x = hf.ones(4)
x + x, hf.exp(x)
start, rng = resident(), random.Random(SEED)
sizes = [rng.uniform(4, 160) for _ in range(398)] + [160, 4]
for size in sizes:
    tensor(size)
held = resident() - start
hf.memory.trim()
many = [tensor(7) for _ in range(100)]
del many
time.sleep(memory_pool.AGE + 1)
for _ in range(2000):
    hf.exp(x)
print(held / 160e6, (resident() - start) / 1e6)
"""


def pool_memory(peers: tuple[str, ...]) -> list[Figure]:
    if not os.path.exists("/proc/self/statm"):
        return []
    rounds = [in_fresh_process(_POOL.replace("SEED", str(seed))).split() for seed in range(3)]
    held, left = ([float(row[k]) for row in rounds] for k in (0, 1))
    return [
        figure("memory held after a 160 MB working set of changing sizes", "x", 1.5, measure.timing(held), 1.0),
        figure("memory held some time after 700 MB were dropped", "MB", 70, measure.timing(left), 1.0),
    ]


# ---- peers

_PEER_SETUP = {
    "jax": "import os; os.environ['XLA_FLAGS'] = '--xla_cpu_multi_thread_eigen=false'\nimport jax, jax.numpy as jnp\n"
    "ones = lambda n: jnp.ones(n, jnp.float32)\ntanh = jnp.tanh\n"
    "compiled = jax.jit\nready = lambda y: y.block_until_ready()\n"
    "v = ones(10)\ndef gradient(): return jax.grad(lambda v: (v * v).sum())(v)",
    "torch": "import torch; torch.set_num_threads(1)\nones = lambda n: torch.ones(n)\ntanh = torch.tanh\n"
    "compiled = torch.compile\n"
    "ready = lambda y: y\nv = torch.ones(10, requires_grad=True)\n"
    "def gradient(): return torch.autograd.grad((v * v).sum(), v)",
    "tensorflow": "import os; os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'\nimport tensorflow as tf\n"
    "tf.config.threading.set_intra_op_parallelism_threads(1); tf.config.threading.set_inter_op_parallelism_threads(1)\n"
    "ones = lambda n: tf.ones(n)\ntanh = tf.tanh\n"
    "compiled = tf.function\nready = lambda y: y\nv = tf.Variable(tf.ones(10))\n"
    "def gradient():\n with tf.GradientTape() as t: s = tf.reduce_sum(v * v)\n return t.gradient(s, v)",
}

_PEER_RUN = {
    "call": "f = compiled(lambda x: x + 1); x = ones(4); run = lambda: ready(f(x))",
    "eager": "x = ones(10); y = ones(10); run = lambda: ready(x + y)",
    "gradient": "run = gradient",
}

_PEER_TIMED = """
import statistics, timeit
run()
timer = timeit.Timer("run()", globals=globals())
n = max(1, int(2e-3 / max(min(timer.repeat(5, 3)) / 3, 1e-9)))
print(statistics.median(t / n for t in timer.repeat(51, n)))
"""

_PEER_FIRST = """
import time
def chain(x):
    for k in range(10):
        x = tanh(x) * 1.25 + 0.5
    return x
ready(compiled(lambda x: x * 2.0 - 3.0)(ones(5)))
x, f = ones(1000), compiled(chain)
started = time.perf_counter()
ready(f(x))
print(time.perf_counter() - started)
"""


def peer_times(what: str, peers: tuple[str, ...], scale: float = 1e6) -> dict[str, float]:
    """What the peers other than NumPy take, each in a process of its own; nothing for one that fails to run it."""
    found = {}
    for peer in peers:
        if peer == "numpy":
            continue
        body = _PEER_FIRST if what == "first" else f"{_PEER_RUN[what]}\n{_PEER_TIMED}"
        try:
            found[peer] = float(in_fresh_process(f"{_PEER_SETUP[peer]}\n{body}").split()[-1]) * scale
        except RuntimeError as error:
            print(f"{peer}: {str(error).strip().splitlines()[-1]}", file=sys.stderr)
    return found


# ---- running and printing

MEASUREMENTS: dict[str, Callable[[tuple[str, ...]], list[Figure]]] = {
    "call": compiled_call,
    "step": training_step,
    "beside": beside_a_step,
    "eager": eager_add,
    "gradient": eager_gradient,
    "import": import_time,
    "first": first_call,
    "sum": sum_of_products,
    "memory": trace_memory,
    "pool": pool_memory,
}


def installed(names: str) -> tuple[str, ...]:
    wanted = tuple(name for name in names.split(",") if name)
    unknown = set(wanted) - set(PEERS)
    if unknown:
        raise SystemExit(f"unknown peers {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    return tuple(name for name in wanted if importlib.util.find_spec(name) is not None)


def show(figures: list[Figure]) -> str:
    peers = sorted({peer for f in figures for peer in f.peers}, key=PEERS.index)
    rows = []
    for f in figures:
        sign = ">=" if f.at_least else "<="
        row = [f.name, f"{f.ours:.3g} {f.unit}", f"{f.low:.3g} to {f.high:.3g}", f"{sign} {f.limit:g}"]
        row += [f"{f.peers[peer]:.3g}" if peer in f.peers else "" for peer in peers]
        rows.append([*row, "ok" if f.met else "missed", f.note])
    return output.table(["figure", "ours", "quartiles", "limit", *peers, "", ""], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", metavar="WORDS", default="", help=f"some of {','.join(MEASUREMENTS)}")
    parser.add_argument("--peers", default=",".join(PEERS), help="which to compare with, where installed")
    options = parser.parse_args()
    chosen = [word for word in options.only.split(",") if word] or list(MEASUREMENTS)
    unknown = set(chosen) - set(MEASUREMENTS)
    if unknown:
        parser.error(f"there are no figures {', '.join(sorted(unknown))}; there are {', '.join(MEASUREMENTS)}")
    peers = installed(options.peers)
    figures: list[Figure] = []
    for word in chosen:
        output.progress(word)
        figures += MEASUREMENTS[word](peers)
    output.progress("")
    if options.json:
        output.print_json([{**asdict(f), "met": f.met} for f in figures])
    else:
        print(show(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
