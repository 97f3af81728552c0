"""What a call of a compiled function costs, by the kind of its arguments and results.

    python benchmarks/calls.py [--json] [--only WORDS] [--rounds N]

Every case calls a small program (a few ops on 10 floats) whose arithmetic costs nothing, so that what is left is the
way there and back.  Where JAX is installed its ``jit`` runs the same case, in turn with ours: one round times a batch
of calls of each.  Figures are microseconds of the processor per call, of which nothing waits for anything: the median
of the rounds, and how far the middle half of them spreads.  Cases that JAX has nothing like (variables, tapes) show
ours alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import statistics
import sys
import threading
import time
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HF_OPT", "2")  # what is timed runs the code that calls have at last

import numpy as np

import hybridflow as hf

if importlib.util.find_spec("jax") is not None:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
else:
    jax = None  # type: ignore[assignment]

Call = Callable[[], Any]
Pair = namedtuple("Pair", "x y")


@dataclasses.dataclass
class Batch:
    x: Any
    y: Any
    z: Any


if jax is not None:
    jax.tree_util.register_dataclass(Batch, data_fields=["x", "y", "z"], meta_fields=[])


class Ours:
    """hybridflow, as a case uses it."""

    jit = staticmethod(hf.function)
    asarray = staticmethod(hf.asarray)


class Theirs:
    """JAX, as a case uses it."""

    jit = staticmethod(jax.jit if jax is not None else hf.function)

    @staticmethod
    def asarray(value: Any) -> Any:
        return jax.numpy.asarray(value)


def _array(k: int = 0) -> np.ndarray:
    return np.arange(10, dtype=np.float32) + k


def first_and_last(tree: Any) -> Any:
    """The sum of two leaves of anything nested."""
    leaves = list(_leaves(tree))
    return leaves[0] + leaves[-1]


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    elif dataclasses.is_dataclass(tree):
        tree = [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    if isinstance(tree, (list, tuple)):
        for part in tree:
            yield from _leaves(part)
    else:
        yield tree


# Cases of both: given a library, what makes one call.


def flat(lib: Any) -> Call:
    f, x, y = lib.jit(lambda x, y: x + y), lib.asarray(_array()), lib.asarray(_array(1))
    return lambda: f(x, y)


def numpy_arguments(lib: Any) -> Call:
    f, x, y = lib.jit(lambda x, y: x + y), _array(), _array(1)
    return lambda: f(x, y)


def numpy_strided(lib: Any) -> Call:
    f, x = lib.jit(lambda x: x + x), np.arange(20, dtype=np.float32)[::2]
    return lambda: f(x)


def numpy_scalar(lib: Any) -> Call:
    f, x, y = lib.jit(lambda x, y: x + y), lib.asarray(_array()), np.float32(2)
    return lambda: f(x, y)


def transposed(lib: Any) -> Call:
    f, x = lib.jit(lambda x: x + x), lib.asarray(_array().reshape(5, 2)).T
    return lambda: f(x)


def dict_of_6(lib: Any) -> Call:
    f, batch = lib.jit(first_and_last), {f"part{k}": lib.asarray(_array(k)) for k in range(6)}
    return lambda: f(batch)


def numpy_dict_of_6(lib: Any) -> Call:
    f, batch = lib.jit(first_and_last), {f"part{k}": _array(k) for k in range(6)}
    return lambda: f(batch)


def ordered_dict(lib: Any) -> Call:
    f, batch = lib.jit(first_and_last), OrderedDict((f"part{k}", lib.asarray(_array(k))) for k in range(6))
    return lambda: f(batch)


def list_of_10(lib: Any) -> Call:
    f, values = lib.jit(first_and_last), [lib.asarray(_array(k)) for k in range(10)]
    return lambda: f(values)


def tuple_of_4(lib: Any) -> Call:
    f, values = lib.jit(first_and_last), tuple(lib.asarray(_array(k)) for k in range(4))
    return lambda: f(values)


def named_tuple(lib: Any) -> Call:
    f, pair = lib.jit(lambda p: p.x + p.y), Pair(lib.asarray(_array()), lib.asarray(_array(1)))
    return lambda: f(pair)


def dataclass(lib: Any) -> Call:
    f, batch = lib.jit(lambda b: b.x + b.z), Batch(*(lib.asarray(_array(k)) for k in range(3)))
    return lambda: f(batch)


def nested_two_deep(lib: Any) -> Call:
    f, tree = lib.jit(first_and_last), {name: [lib.asarray(_array(k)) for k in range(3)] for name in "abc"}
    return lambda: f(tree)


def tree_of_50(lib: Any) -> Call:
    f = lib.jit(first_and_last)
    tree = [{name: [lib.asarray(_array()) for _ in range(5)] for name in "ab"} for _ in range(5)]
    return lambda: f(tree)


def keyword(lib: Any) -> Call:
    f, x, y = lib.jit(lambda x, y: x + y), lib.asarray(_array()), lib.asarray(_array(1))
    return lambda: f(x, y=y)


def default(lib: Any) -> Call:
    f, x = lib.jit(lambda x, y=2.0, z=None: x + y), lib.asarray(_array())
    return lambda: f(x)


def none(lib: Any) -> Call:
    f, x = lib.jit(lambda x, mask: x + 1.0 if mask is None else x), lib.asarray(_array())
    return lambda: f(x, None)


def python_number(lib: Any) -> Call:
    f, x = lib.jit(lambda x, y: x + y), lib.asarray(_array())
    return lambda: f(x, 2.5)


def variadic(lib: Any) -> Call:
    f, x, y = lib.jit(lambda *xs: xs[0] + xs[1]), lib.asarray(_array()), lib.asarray(_array(1))
    return lambda: f(x, y)


def variadic_keywords(lib: Any) -> Call:
    f, x, y = lib.jit(lambda **xs: xs["x"] + xs["y"]), lib.asarray(_array()), lib.asarray(_array(1))
    return lambda: f(x=x, y=y)


def returned_argument(lib: Any) -> Call:
    f, x = lib.jit(lambda x: (x, x + x)), lib.asarray(_array())
    return lambda: f(x)


def returns_dict(lib: Any) -> Call:
    f, x = lib.jit(lambda x: {"loss": x + x, "more": x * x, "scale": x - 1.0}), lib.asarray(_array())
    return lambda: f(x)


def returns_nested(lib: Any) -> Call:
    f, x = lib.jit(lambda x: (x + x, {"a": [x * x, x - 1.0], "b": None})), lib.asarray(_array())
    return lambda: f(x)


def returns_dataclass(lib: Any) -> Call:
    f, x = lib.jit(lambda x: Batch(x + x, x * x, x - 1.0)), lib.asarray(_array())
    return lambda: f(x)


def returns_named_tuple(lib: Any) -> Call:
    f, x = lib.jit(lambda x: Pair(x + x, x * x)), lib.asarray(_array())
    return lambda: f(x)


# Cases of ours alone.


class _Config:
    scale = 2.0


def object_argument(lib: Any) -> Call:
    f, x, config = lib.jit(lambda x, c: x * c.scale), lib.asarray(_array()), _Config()
    return lambda: f(x, config)


def variable_argument(lib: Any) -> Call:
    f, x, v = lib.jit(lambda x, v: x + v), lib.asarray(_array()), hf.Variable(_array())
    return lambda: f(x, v)


def dict_of_variables(lib: Any) -> Call:
    f, x, tree = lib.jit(lambda x, t: x + t["w"] + t["b"]), lib.asarray(_array()), {}
    tree.update(w=hf.Variable(_array()), b=hf.Variable(_array()))
    return lambda: f(x, tree)


def default_tensor(lib: Any) -> Call:
    y = lib.asarray(_array(1))
    f, x = lib.jit(lambda x, y=y: x + y), lib.asarray(_array())
    return lambda: f(x)


def signature_and_tuple(lib: Any) -> Call:
    f = hf.function(lambda x, pair: x + pair[0], input_signature=[hf.TensorSpec([None]), (hf.TensorSpec([None]),)])
    x = lib.asarray(_array())
    return lambda: f(x, (x,))


_RATE = 2.0
_SHAPE = (2, 5)


def rebound_global(lib: Any) -> Call:
    global _RATE, _SHAPE
    f, x = lib.jit(lambda x: x.reshape(_SHAPE) * _RATE), lib.asarray(_array())
    f(x)
    f(x)
    _RATE, _SHAPE = float("2.0"), tuple(map(int, "25"))
    return lambda: f(x)


def tape_in_another_thread(lib: Any) -> Call:
    entered, over = threading.Event(), threading.Event()

    def hold() -> None:
        with hf.GradientTape():
            entered.set()
            over.wait(20)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    entered.wait()
    call = flat(lib)
    call.over = over  # type: ignore[attr-defined]
    return call


def idle_tape(lib: Any) -> Call:
    call = flat(lib)

    def run() -> Any:
        with hf.GradientTape():
            return call()

    return run


def gradient_through(lib: Any) -> Call:
    f, x = lib.jit(lambda x: hf.sum(x * x)), lib.asarray(_array())

    def run() -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return run


def gradient_compiled(lib: Any) -> Call:
    def loss_gradient(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(x * x)
        return tape.gradient(y, x)

    f, x = lib.jit(loss_gradient), lib.asarray(_array())
    return lambda: f(x)


BOTH = (
    *(flat, numpy_arguments, numpy_strided, numpy_scalar, transposed),
    *(dict_of_6, numpy_dict_of_6, ordered_dict, list_of_10, tuple_of_4, named_tuple, dataclass),
    *(nested_two_deep, tree_of_50, keyword, default, none, python_number, variadic, variadic_keywords),
    *(returned_argument, returns_dict, returns_nested, returns_dataclass, returns_named_tuple),
)
ALONE = (
    *(object_argument, variable_argument, dict_of_variables, default_tensor, signature_and_tuple, rebound_global),
    *(tape_in_another_thread, idle_tape, gradient_through, gradient_compiled),
)


def _batch(call: Call, count: int) -> float:
    """Microseconds per call."""
    start = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - start) / count * 1e6


def _calls_in(call: Call, seconds: float) -> int:
    for _ in range(20):
        call()
    return max(5, int(seconds * 1e6 / max(_batch(call, 20), 0.05)))


def measure(case: Callable[[Any], Call], with_jax: bool, rounds: int) -> dict[str, Any]:
    """The medians of the case in microseconds, and the quarters of the rounds around them."""
    libraries = [("ours", Ours)] + ([("jax", Theirs)] if with_jax and jax is not None else [])
    calls = [(name, case(library)) for name, library in libraries]
    counts = [_calls_in(call, 0.01) for _, call in calls]
    times: dict[str, list[float]] = {name: [] for name, _ in calls}
    for _ in range(rounds):
        for (name, call), count in zip(calls, counts):
            times[name].append(_batch(call, count))
    for _, call in calls:
        if hasattr(call, "over"):
            call.over.set()
    found: dict[str, Any] = {"case": case.__name__}
    for name, samples in times.items():
        low, middle, high = statistics.quantiles(samples, n=4)
        found[name] = {"median": round(middle, 3), "quarters": [round(low, 3), round(high, 3)]}
    return found


def _line(found: dict[str, Any]) -> str:
    parts = [f"{found['case']:24}"]
    for name in ("ours", "jax"):
        if name in found:
            low, high = found[name]["quarters"]
            parts.append(f"{found[name]['median']:9.3f} ({low:.2f}-{high:.2f})".ljust(27))
    if "jax" in found:
        parts.append(f"{found['jax']['median'] / found['ours']['median']:6.1f}x")
    return " ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="cases whose names contain one of these words")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    words = options.only.split()
    if not options.json:
        print(f"{'µs per call':24} {'hybridflow (quarters)':>18} {'JAX' if jax is not None else '':>18}")
    results = []
    for case in (*BOTH, *ALONE):
        if not words or any(word in case.__name__ for word in words):
            results.append(measure(case, case in BOTH, options.rounds))
            if not options.json:
                print(_line(results[-1]), flush=True)
    if options.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
