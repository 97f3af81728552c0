"""What no program can do, as Python would have to know what a tensor decides, runs eagerly: with eager results, effects
and gradients, once, and said once."""

from __future__ import annotations

import bisect
import collections
import contextlib
import functools
import heapq
import itertools
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ConcretizationError, TraceError
from hybridflow.jit.tracer import Tracer
from tests.support.agreement import form

V, W = [0.5, -1.25, 2.0, 3.5], [-3.0, 0.75, -0.5, -8.0]
I, J = [3, 1, 3, 2], [1, 1, 1, 1]

PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {}


def program(*arguments: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, list(arguments)
        return function

    return add


@program((V,), (W,))
def returned_text(x):
    if hf.sum(x) > 0:
        return "positive"
    return "negative"


@program((V,), (W,))
def returned_texts(x):
    return ["positive" if v > 0 else "negative" for v in x], hf.sum(x)


def _kind(v):
    if v > 1:
        return "big"
    return "small" if v > 0 else "negative"


@program((V,), (W,))
def counted_texts(x):
    counts = collections.Counter(_kind(v) for v in x)
    return counts["big"], counts["small"], counts["negative"]


@program((I,), (J,))
def keys_by_tensors(x):
    counts = {}
    for v in x:
        k = int(v)
        counts[k] = counts.get(k, 0) + 1
    return len(counts)


@program((I,), (J,))
def buckets(x):
    found = [[] for _ in range(4)]
    for i in range(4):
        found[x[i]].append(x[i] * 10 + i)
    return [len(q) for q in found], found[1]


@program((V,), (W,))
def one_of_two_lists(x):
    high, low = [], []
    for v in x:
        (high if v > 0 else low).append(v)
    return high, low


@program((V,), (W,))
def sizes_of_grown_lists(x):
    kept = [v for v in x if v > 0]
    return hf.zeros(len(kept)), [0] * len(kept)


@program((V,), (W,))
def sliced_by_a_tensor(x):
    n = hf.sum(hf.astype(x > 0, "int64"))
    values = [10.0, 20.0, 30.0, 40.0]
    return sum(values[:n]), len(values[n:])


@program((V,), (W,))
def merged(x):
    a, b = sorted(x[:2]), sorted(x[2:])
    out, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    return [*out, *a[i:], *b[j:]]


@program((V,), (W,))
def heap(x):
    values: list[Any] = []
    for v in x:
        heapq.heappush(values, v)
    return [heapq.heappop(values) for _ in range(4)], bisect.bisect(sorted(x), x[0])


@program((V,), (W,))
def lazy_functions(x):
    groups = [(k, len(list(g))) for k, g in itertools.groupby(x, key=lambda v: v > 0)]
    return groups, list(itertools.takewhile(lambda v: v > -2, x))


@program((V,), (W,))
def comprehensions(x):
    kept = {i: x[i] for i in range(4) if x[i] > 0}
    first = next((i for i, v in enumerate(x) if v > 1), -1)
    return len(kept), sum(kept.values()), first


@program((V,), (W,))
def items_of_an_iterator(x):
    it = iter(x)
    first = next(it)
    for v in it:
        if v > first:
            return v
    return first


@program((V,), (W,))
def lists_of_lists(x):
    rows = [[a * b for b in x if b > 0] for a in x if a > 0]
    return len(rows), sum(sum(row) for row in rows), rows


@program((V,), (W,))
def sets(x):
    seen = set()
    for i in range(4):
        if x[i] > 0:
            seen.add(i)
    return len(seen), sorted(seen)


@program((V,), (W,))
def delegated(x):
    def positive(values: Any) -> Iterator[Any]:
        for v in values:
            if v > 0:
                yield v

    def all_of(values: Any) -> Iterator[Any]:
        yield from positive(values)
        yield hf.sum(values)

    return list(all_of(x))


@program(([[2.0, 0.0], [0.0, 2.0]],), ([[-2.0, 0.0], [0.0, 2.0]],))
def caught_decomposition(a):
    try:
        return hf.linalg.cholesky(a)
    except ValueError:
        return a * 0


@program((V,), (W,))
def caught_of_python(x):
    def host(a):
        if np.sum(a.numpy()) < 0:
            raise ValueError("negative")
        return a * 2

    try:
        return hf.py_function(host, [x], x)
    except ValueError:
        return x * 0


@program((V,), (W,))
def shapes_of_ways(x):
    with contextlib.nullcontext():
        if x[0] > 0:
            return x * 2
    return x[1]


@program(([1, 1, 2, 3, 3],), ([0, 0, 0, 5, 6],))
def runs(x):
    found: list[Any] = []
    for v in x:
        if found and found[-1][0] == v:
            found[-1][1] += 1
        else:
            found.append([v, 1])
    return found


@program(([float(k % 7) for k in range(70)],))
def many_sorted(x):
    return sorted(x, key=lambda v: v * -1)


@program((5,), (1,))
def recursion_that_a_tensor_ends(n):
    def product(k):
        return hf.asarray(1) if k <= 1 else k * product(k - 1)

    return product(n)


def _fibonacci(n):
    if n < 2:
        return n
    return _fibonacci(n - 1) + _fibonacci(n - 2)


@program((6,), (1,))
def recursion_of_two(n):
    return _fibonacci(n)


@program((V, 2), (V, 0), (W, 1), (V, 9))
def an_operand_of_a_choice(x, n):
    return hf.max(x[:n]) > 0 if n > 0 and hf.max(x[:n]) < 9 else hf.any(x > 9)


@program((V, 2), (V, 0))
def a_branch_that_fits_no_shape(x, n):
    return hf.cond(n > 0, lambda: hf.sum(x), lambda: hf.sum(x @ hf.ones((9, 9))))


@program((V, 2), (V, 0))
def an_error_of_a_branch_that_is_caught(x, n):
    try:
        return hf.cond(n > 0, lambda: hf.sum(x), lambda: hf.sum(x @ hf.ones((9, 9))))
    except ValueError:
        return hf.sum(x) * 100


@program((V, 2), (V, 9), (W, 0))
def a_branch_with_errors_of_python(x, n):
    if n > 5:
        return x * {}["no such key"] if n > 7 else [x][n - 5]
    return x


@program((V, 3), (V, 0))
def a_number_that_only_one_branch_can_read(x, n):
    return x * int("2" if n > 1 else "two") if n > 1 else x


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return form(function(*map(hf.constant, arguments)))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.runs_eagerly
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.sample(5)
def test_results_are_eager_ones(name: str) -> None:
    function, arguments = PROGRAMS[name]
    want = [_called(function, own) for own in arguments]
    compiled = hf.function(function)
    for _ in range(2):
        assert [_called(compiled, own) for own in arguments] == want


def _either(x):
    return "a" if hf.sum(x) > 0 else "b"


def test_strict_functions_and_concrete_ones_are_errors() -> None:
    with pytest.raises(ConcretizationError, match=r"\[return\].*'a'.*'b'.*test_eager_fallback.py:"):
        hf.function(_either, strict=True)(hf.constant(V))
    with pytest.raises(ConcretizationError, match=r"\[return\]"):
        hf.function(_either).get_concrete_function(hf.TensorSpec([4]))


def test_recursion_that_nothing_ends_is_an_error_of_the_trace() -> None:
    def again(x: Any) -> Any:
        return again(x + 1)

    with pytest.raises(TraceError, match=r"again calls itself.*test_eager_fallback.py:") as found:
        hf.function(again)(hf.constant(1.0))
    assert not isinstance(found.value, ConcretizationError)


@pytest.mark.runs_eagerly
def test_it_is_said_once() -> None:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("hybridflow")
    logger.addHandler(handler)
    try:
        f = hf.function(_either)
        assert [f(hf.constant(x)) for x in (V, W, V, V, W)] == ["a", "b", "a", "a", "b"]
    finally:
        logger.removeHandler(handler)
    assert len(said) == 1
    assert said[0].startswith("_either runs eagerly: [return] which value is returned depends on a tensor")


@pytest.mark.runs_eagerly
def test_effects_happen_once() -> None:
    """What the trace did before it met what no program can do is undone."""
    log: list[Any] = []
    state = hf.Variable(1.0)

    @hf.function
    def f(x):
        log.append(x)
        state.assign_add(hf.sum(x))
        return "a" if state > 0 else "b"

    assert f(hf.constant(V)) == "a" and f(hf.constant(W)) == "b"
    assert [x.tolist() for x in log] == [V, W]
    assert float(state) == 1.0 + sum(V) + sum(W)


@pytest.mark.runs_eagerly
def test_an_error_takes_assignments_back() -> None:
    state = hf.Variable(1.0)

    @hf.function
    def f(x):
        state.assign_add(1.0)
        if {"a": 0, "b": 1}[_either(x)]:
            raise ValueError("b")
        return "a" if x[0] > 0 else "b"

    assert f(hf.constant(V)) == "a"
    with pytest.raises(ValueError, match=r"^b$"):
        f(hf.constant(W))
    assert float(state) == 2.0


@pytest.mark.runs_eagerly
def test_a_function_that_calls_such_a_function() -> None:
    inner = hf.function(_either)

    @hf.function
    def outer(x):
        return x * (2.0 if inner(x) == "a" else 3.0), inner(x)

    for values, factor, text in ((V, 2.0, "a"), (W, 3.0, "b")):
        y, found = outer(hf.constant(values))
        assert y.tolist() == [factor * v for v in values] and found == text


@pytest.mark.runs_eagerly
def test_gradients_are_eager_ones() -> None:
    def f(x):
        parts: dict[bool, list[Any]] = {True: [], False: []}
        for v in x:
            parts[bool(v > 0)].append(v * v)
        return sum(parts[True]) - 3.0 * sum(parts[False])

    compiled = hf.function(f)
    for values in (V, W):
        found = []
        for function in (f, compiled):
            x = hf.constant(values)
            with hf.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            found.append(form(tape.gradient(y, x)))
        assert found[0] == found[1]


class _Holder:
    def __init__(self) -> None:
        self.count = 0


def _ufunc_out(array):
    np.add(array, 1, out=array)


def _ufunc_at(array):
    np.add.at(array, [0], 1)


def _copied_to(array):
    np.copyto(array, array + 1)


def _reshaped(array):
    array.reshape(2, 2)[0, 0] += 1


def _flat(array):
    array.flat[0] = array[0] + 1


def _put(array):
    np.put(array, [0], array[0] + 1)


def _ravelled(array):
    view = array.ravel()
    view[0] += 1


def _through_memory(array):
    memoryview(array)[0] = array[0] + 1


@pytest.mark.runs_eagerly
@pytest.mark.parametrize(
    "write", [_ufunc_out, _ufunc_at, _copied_to, _reshaped, _flat, _put, _ravelled, _through_memory]
)
def test_arrays_that_are_written_unseen_are_written_once(write: Callable[[Any], None]) -> None:
    def of(compile_: Callable[[Any], Any]) -> list[Any]:
        array = np.array([0.5, np.nan, -0.0, np.inf])

        @compile_
        def f(x):
            write(array)
            return "a" if hf.sum(x) > 0 else "b"

        return [f(hf.constant(x)) for x in (V, W, V, V, W)] + [array.tobytes()]

    assert of(hf.function) == of(lambda f: f)


def _popped(held):
    item = held["list"].pop()
    item.count += 1
    held["list"].insert(0, item)


def _popped_by_key(held):
    item = held.pop("object")
    item.count += 1
    held["object"] = item


def _popped_last(held):
    key, item = held.popitem()
    item.append(1)
    held[key] = item


def _popped_left(held):
    item = held["deque"].popleft()
    item.count += 1
    held["deque"].append(item)


def _set_by_default(held):
    held.setdefault("log", []).append(1)


def _filtered(held):
    first, *_ = filter(lambda item: item.count >= 0, held["list"])
    first.count += 1


@pytest.mark.runs_eagerly
@pytest.mark.parametrize("change", [_popped, _popped_by_key, _popped_last, _popped_left, _set_by_default, _filtered])
def test_objects_that_containers_give_away_are_changed_once(change: Callable[[Any], None]) -> None:
    def of(compile_: Callable[[Any], Any]) -> list[Any]:
        objects = [_Holder() for _ in range(5)]
        held: dict[str, Any] = {
            "list": objects[:2],
            "object": objects[2],
            "deque": collections.deque(objects[3:]),
            "log": [],
        }

        @compile_
        def f(x):
            change(held)
            return "a" if hf.sum(x) > 0 else "b"

        return [f(hf.constant(x)) for x in (V, W, V, V, W)] + [[one.count for one in objects], held["log"]]

    assert of(hf.function) == of(lambda f: f)


def test_what_a_cached_function_did_is_not_taken_back() -> None:
    """A run of the code would find the result in the cache, and not do it: that stays an error."""
    log: list[int] = []

    @functools.lru_cache
    def cached(key: int) -> int:
        log.append(key)
        return key

    @hf.function
    def f(x):
        cached(len(log))
        return "a" if hf.sum(x) > 0 else "b"

    with pytest.raises(ConcretizationError):
        f(hf.constant(V))
    assert log == [0]


def _warnings_of(run: Callable[[], Any]) -> list[str]:
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("hybridflow")
    logger.addHandler(handler)
    try:
        run()
    finally:
        logger.removeHandler(handler)
    return said


@pytest.mark.runs_eagerly
def test_the_warning_names_the_cause_and_not_an_effect_before_it() -> None:
    log: list[int] = []

    @hf.function
    def appends_and_chooses(x):
        log.append(1)
        return "a" if hf.sum(x) > 0 else "b"

    said = _warnings_of(lambda: [appends_and_chooses(hf.constant(x)) for x in (V, W, V)])
    assert len(said) == 1 and "[return] which value is returned depends on a tensor" in said[0]
    assert "test_eager_fallback.py:" in said[0] and log == [1, 1, 1]


@pytest.mark.runs_eagerly
def test_texts_that_differ_are_one_cause() -> None:
    @hf.function
    def named(x, name):
        return name if hf.sum(x) > 0 else "none"

    said = _warnings_of(lambda: [named(hf.constant(V), name) for name in ("a", "b", "c")])
    assert len(said) == 1


@pytest.mark.runs_eagerly
def test_errors_of_the_run_have_no_context_of_the_trace() -> None:
    @hf.function
    def f(x):
        text = "a" if hf.sum(x) > 0 else "b"
        if text == "b":
            raise KeyError(text)
        return text

    for _ in range(2):
        with pytest.raises(KeyError) as caught:
            f(hf.constant(W))
        assert caught.value.__context__ is None and caught.value.__cause__ is None


@pytest.mark.runs_eagerly
def test_calls_that_differ_in_numbers_and_extents_are_not_traced_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    traces = 0
    trace = Tracer._trace

    def counting(*args: Any) -> Any:
        nonlocal traces
        traces += 1
        return trace(*args)

    monkeypatch.setattr(Tracer, "_trace", counting)

    @hf.function
    def f(x, n):
        return "a" if hf.sum(x) * n > 0 else "b"

    for n in range(2, 34):
        assert f(hf.ones(3), n) == f(hf.ones(n), 2) == "a"
    assert 2 <= traces <= 24


def test_vmap_of_what_is_no_tensor_is_an_error() -> None:
    with pytest.raises(ConcretizationError, match=r"\[return\]"):
        hf.vmap(hf.function(_either))(hf.ones((3, 2)))


@pytest.mark.parametrize("size", [5, 6, 12])
@pytest.mark.parametrize("is_list", [True, False])
def test_traces_that_begin_anew_repeat_no_effect(size: int, is_list: bool) -> None:
    log: list[int] = []
    array = np.zeros(2)

    @hf.function
    def f(x, y):
        if x.shape[0] != 4:
            if is_list:
                log.append(1)
            else:
                np.add(array, 1, out=array)
        z = x + y
        return hf.reshape(z, (-1, 2)) if x.shape[0] % 2 == 0 else z

    f(hf.ones(4), hf.ones(4))
    f(hf.ones(size), hf.ones(size))
    assert (len(log) if is_list else array.tolist()) == (1 if is_list else [1.0, 1.0])


@pytest.mark.parametrize("is_list", [True, False])
def test_calls_that_find_sizes_repeat_no_effect(is_list: bool) -> None:
    log: list[int] = []
    array = np.zeros(1)

    @hf.function
    def positive(x):
        if is_list:
            log.append(1)
        else:
            np.add(array, 1, out=array)
        kept = []
        for v in x:
            if v > 0:
                kept.append(v)
        return hf.stack(kept)

    for count, x in enumerate((V, W, W, [1.0, 2.0, 3.0, 4.0], V), 1):
        assert positive(hf.constant(x)).tolist() == [v for v in x if v > 0]
        assert (len(log) if is_list else array[0]) == count


def test_filter_reads_what_it_is_given() -> None:
    numbers = [1.0, 2.0]
    f = hf.function(lambda x: x * sum(filter(lambda v: v > 0, numbers)))
    assert f(hf.ones(1)).tolist() == f(hf.ones(1)).tolist() == [3.0]
    numbers[1] = 7.0
    assert f(hf.ones(1)).tolist() == [8.0]
    numbers.append(3.0)
    assert f(hf.ones(1)).tolist() == [11.0]


def test_iterators_from_outside_are_not_taken_from_twice() -> None:
    """A run of the code would go on where the trace stopped: that stays an error."""
    items = iter([1.0, 2.0, 3.0])

    @hf.function
    def f(x):
        first = next(items)
        return "a" if x[0] > first else "b"

    with pytest.raises(hf.errors.TraceError):
        f(hf.constant(V))
    assert next(items) == 2.0


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3)])
def test_threads_that_make_the_first_calls_lose_no_effect(sizes: tuple[int, int]) -> None:
    """One thread's trace undoes what it did to a list that the other's code appends to."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(8):
            _check_appends(sizes)
    finally:
        sys.setswitchinterval(interval)


def _check_appends(sizes: tuple[int, int]) -> None:
    log: list[Any] = []

    @hf.function
    def f(x):
        if x[0] > 5:
            log.append(x)
        else:
            log.append(-x)
        return x

    gate = threading.Barrier(2)

    def work(size: int) -> None:
        gate.wait()
        for _ in range(2):
            f(hf.zeros(size) + float(size))

    threads = [threading.Thread(target=work, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(x) for x in log) == sorted([*sizes, *sizes])
