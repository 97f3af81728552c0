"""Sizes that depend on values: compiled calls find them, and give the bits that eager code gives."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

RNG = np.random.default_rng(7)
WHOLE = [RNG.standard_normal(12).astype("f4") for _ in range(3)]
WHOLE += [np.full(12, -1, "f4"), np.full(12, 2, "f4"), np.float32([np.nan, -0.0, np.inf] * 4), WHOLE[0]]
COUNTS = [3, 5, 1, 0, 12, 7, 3]


def leaves(result: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in hf.tree.flatten(result)[0]]


def agree(found: Any, expected: Any) -> None:
    pairs = list(zip(leaves(found), leaves(expected), strict=True))
    for one, other in pairs:
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_array_equal(one, other)
        assert np.array_equal(np.signbit(one), np.signbit(other)) or np.isnan(one).any()


def _branches(x: Any, n: Any) -> Any:
    if hf.sum(x) > 0:
        y = x[x > 0]
        return hf.sum(y) * n
    y = x[x <= 0][1:]
    return hf.sum(y * y)


def _walk(x: Any, n: Any) -> Any:
    total = hf.zeros(())
    for value in x[x > -0.5]:
        total = total * 0.5 + value
    return total


def _count(x: Any, n: Any) -> Any:
    chosen = x[x > 0]
    if len(chosen) > 4:
        return hf.sum(chosen)
    return hf.zeros(()) + len(chosen)


def _assigned(x: Any, n: Any) -> Any:
    y = +x
    y[x > 0] = hf.sort(x[x > 0])
    y[:n] = 7
    return y


def _least(x: Any, n: Any) -> Any:
    y = x[:n]
    if n > 0:
        return hf.min(y), y[n - 1] * 2
    return hf.sum(y), y.dtype.type(0)


def _pairs(x: Any, n: Any) -> Any:
    total, y = hf.sum(x), x[:n]
    while n > 3 and total > -9:
        total = total - hf.abs(hf.max(y)) - y[3] * y[3] - 1
    return total


def _where_it_fits(x: Any, n: Any) -> Any:
    y = hf.zeros(())
    if n == 12:
        y = hf.sum(hf.add(x[:n], x))
    return y


def _helper(x: Any) -> Any:
    return hf.boolean_mask(x, x > 0.25)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "mask": lambda x, n: x[x > 0],
    "masks alike": lambda x, n: x[x > 0] * x[x > 0],
    "mask and its rest": lambda x, n: hf.concat([x[x > 0], x[hf.logical_not(x > 0)]]),
    "mask of a mask": lambda x, n: (lambda y: y[y < 1])(x[x > -1]),
    "mask over two axes": lambda x, n: hf.reshape(x, (3, 4))[hf.reshape(x, (3, 4)) > 0],
    "mask of rows": lambda x, n: hf.reshape(x, (4, 3))[hf.reshape(x, (4, 3))[:, 1] > 0],
    "boolean_mask": lambda x, n: _helper(x),
    "nonzero": lambda x, n: hf.nonzero(hf.reshape(x, (2, 6)) > 0),
    "unique": lambda x, n: hf.unique(hf.floor(x), return_index=True, return_inverse=True, return_counts=True),
    "unique_all": lambda x, n: tuple(hf.unique_all(hf.floor(x))),
    "unique_values": lambda x, n: hf.unique_values(x > 0),
    "repeat each": lambda x, n: hf.repeat(x, hf.astype(x > 0, hf.int64) * n),
    "repeat": lambda x, n: hf.repeat(x, n),
    "bincount": lambda x, n: hf.bincount(hf.astype(x > 0, hf.int64) * n, minlength=2),
    "segment_sum": lambda x, n: hf.segment_sum(x, hf.astype(x > 0, hf.int64) * n - 1),
    "prefix": lambda x, n: x[:n] * 2,
    "suffix": lambda x, n: x[n:],
    "window": lambda x, n: x[n : n + 3],
    "between two": lambda x, n: x[n : n + n - 1],
    "between arguments": lambda x, n: x[n : hf.count_nonzero(x > 0)],
    "least of some": _least,
    "a loop that may not run": _pairs,
    "where it fits": _where_it_fits,
    "last ones": lambda x, n: x[-n:],
    "zeros": lambda x, n: hf.zeros((n, 2)) + n,
    "shape that is a tensor": lambda x, n: hf.ones(hf.stack([n, n + 1])),
    "reshape": lambda x, n: hf.reshape(x[: 2 * (n // 2)], (-1, 2)),
    "reshape to n": lambda x, n: hf.reshape(hf.repeat(x, n + 1), (n + 1, -1)),
    "broadcast_to": lambda x, n: hf.broadcast_to(x, (n, 12)),
    "arange": lambda x, n: hf.arange(n),
    "arange looked up": lambda x, n: x[hf.arange(n)],
    "arange, computed with": lambda x, n: (hf.arange(0, n, 2) * 3 + 1).astype("float32") / 2,
    "eye": lambda x, n: hf.eye(n),
    "one_hot": lambda x, n: hf.one_hot(hf.asarray([0, 2]), n),
    "pad": lambda x, n: hf.pad(x, ((n, 1),)),
    "top_k": lambda x, n: hf.top_k(hf.where(hf.isnan(x), 0, x), n)[0],
    "branches": _branches,
    "a loop over them": _walk,
    "how many": _count,
    "assigned": _assigned,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_calls_find_sizes(name: str) -> None:
    program = PROGRAMS[name]
    compiled = hf.function(program)
    for x, n in zip(map(hf.asarray, WHOLE), map(hf.asarray, COUNTS), strict=True):
        try:
            expected = program(x, n)
        except errors.HybridflowError as error:
            with pytest.raises(type(error)):
                compiled(x, n)
            continue
        agree(compiled(x, n), expected)
        agree(compiled(x, n), expected)


@pytest.mark.parametrize("name", ["mask", "masks alike", "mask of a mask", "prefix", "branches", "unique_values"])
@pytest.mark.parametrize("threads", [1, 3])
def test_derivatives_pass_through_what_is_selected(name: str, threads: int) -> None:
    program, compiled = PROGRAMS[name], hf.function(PROGRAMS[name])
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(threads)
    try:
        for x, n in zip(map(hf.asarray, WHOLE[:5]), map(hf.asarray, COUNTS)):
            found = []
            for run in (program, compiled):
                with hf.GradientTape() as tape:
                    tape.watch(x)
                    y = hf.sum(hf.astype(run(x, n), hf.float32))
                found.append(tape.gradient(y, x, unconnected_gradients="zero"))
            agree(found[1], found[0])
    finally:
        hf.config.set_num_threads(before)


def test_derivatives_inside_of_the_function() -> None:
    def slope(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.mean(hf.exp(x[x > 0]))
        return tape.gradient(y, x)

    compiled = hf.function(slope)
    for x in map(hf.asarray, WHOLE[:3]):
        np.testing.assert_allclose(compiled(x), slope(x), rtol=1e-6)


def test_one_program_serves_many_sizes() -> None:
    @hf.function
    def chosen(x: Any, limit: Any) -> Any:
        return hf.sum(x[x > limit])

    x = hf.asarray(np.arange(40, dtype="f4"))
    for k in range(2, 38):
        assert chosen(x, hf.asarray(float(k))).item() == sum(range(k + 1, 40))
    traces = re.search(r"(\d+) traces", repr(chosen))
    assert traces is not None
    assert int(traces[1]) < 8


def test_what_was_done_before_a_size_was_found_is_done_once() -> None:
    count, weights = hf.Variable(0), hf.Variable(hf.zeros(3))

    @hf.function
    def step(x: Any) -> Any:
        count.assign_add(1)
        noise = hf.random.uniform((5,))
        weights.assign_add(hf.ones(3))
        chosen = x[x > 0]
        weights.assign(weights * 2)
        return hf.sum(chosen), noise

    def eager(x: Any) -> Any:
        return hf.sum(x[x > 0]), noise_of()

    def noise_of() -> Any:
        return hf.random.uniform((5,))

    for k, x in enumerate(map(hf.asarray, WHOLE[:5]), 1):
        hf.random.set_seed(k)
        expected = eager(x)
        hf.random.set_seed(k)
        agree(step(x), expected)
        assert count.item() == k
    assert weights.numpy().tolist() == [62.0] * 3


def test_layers_are_built_before_and_after_a_size_is_found() -> None:
    before, after = hf.layers.Dense(4), hf.layers.Dense(2)

    def program(x: Any) -> Any:
        y = before(x[:, None])
        return after(y[x > 0])

    class Chosen(hf.layers.Layer):
        def call(self, x: Any) -> Any:
            return hf.sum(x[x > 0])

    layer = Chosen()
    for run in (program, lambda x: layer(x) * 2):
        compiled = hf.function(run)
        for x in map(hf.asarray, WHOLE[:3]):
            found = compiled(x)
            agree(found, run(x))
        assert "anew" not in repr(compiled)


def test_a_loss_may_leave_out_what_has_no_label() -> None:
    rows = RNG.standard_normal((64, 3)).astype("f4")
    labels = np.where(RNG.random((64, 1)) < 0.4, np.nan, rows.sum(1, keepdims=True)).astype("f4")

    def loss(labels: Any, found: Any) -> Any:
        known = hf.isfinite(labels)
        return hf.mean(hf.square(labels[known] - found[known]))

    histories = []
    for run_eagerly in (False, True):
        hf.random.set_seed(1)
        model = hf.models.Sequential([hf.layers.Input((3,)), hf.layers.Dense(1)])
        model.compile("sgd", loss, run_eagerly=run_eagerly)
        histories.append(model.fit(rows, labels, batch_size=16, epochs=3, shuffle=False, verbose=0).history["loss"])
    assert histories[0] == histories[1]
    assert histories[0][-1] < histories[0][0]


def _assigned_to(n: Any) -> Any:
    x = hf.arange(n)
    x[0] = 9
    return x


def _used_in_a_loop(n: Any) -> Any:
    x, total = hf.arange(n), hf.asarray(0)
    for _ in range(n):
        total += hf.sum(x)
    return total


def _carried(n: Any) -> Any:
    x = hf.arange(n)
    for _ in range(n):
        x = x + 1
    return x


def _of_a_branch(n: Any) -> Any:
    x = hf.arange(n)
    if n > 3:
        x = x * 2
    return x


def _walked(n: Any) -> Any:
    total = hf.asarray(0)
    for k in hf.arange(n):
        total += k
    return total


def _asked_for_its_type(n: Any) -> Any:
    return hf.asarray(1 if isinstance(hf.arange(n), hf.Tensor) else 2)


@pytest.mark.runs_eagerly
@pytest.mark.parametrize(
    "program", [_assigned_to, _used_in_a_loop, _carried, _of_a_branch, _walked, _asked_for_its_type]
)
def test_an_arange_is_a_tensor_to_all_but_loops(program: Callable[[Any], Any]) -> None:
    compiled = hf.function(program)
    for n in map(hf.asarray, (4, 2, 5, 5)):
        agree(compiled(n), program(n))


@pytest.mark.runs_eagerly
def test_an_arange_may_be_kept() -> None:
    class Holder:
        range: Any = None

    held = Holder()

    @hf.function
    def keep(n: Any) -> Any:
        held.range = hf.arange(n)
        return n

    for n in (4, 3):
        keep(hf.asarray(n))
        agree(held.range, hf.arange(n))


def test_threads_call_with_sizes_of_their_own() -> None:
    chosen = hf.function(lambda x, n: x[x > 0] + hf.zeros(n))
    wrong: list[Any] = []

    def call(seed: int) -> None:
        own = np.random.default_rng(seed)
        for _ in range(12):
            x = own.standard_normal(20).astype("f4")
            found = chosen(hf.asarray(x), hf.asarray(np.count_nonzero(x > 0)))
            if not np.array_equal(found, x[x > 0]):
                wrong.append(found)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_cannot_be_found_is_refused_or_runs_eagerly() -> None:
    x = hf.asarray(WHOLE[0])
    with pytest.raises(errors.TraceError, match=r"selects as many elements .* \(test_data_dependent_sizes.py:\d+\)"):
        hf.vmap(lambda row: hf.sum(row[row > 0]))(hf.reshape(x, (3, 4)))
    f = hf.function(lambda x: x[x > 0])
    with pytest.raises(errors.TraceError, match="size="):
        f.get_concrete_function(x)
    agree(f(x), x[x > 0])

    def body(x: Any, k: Any) -> Any:
        return x + hf.sum(x[x > 0])

    with pytest.raises(errors.TraceError, match="selects"):
        hf.function(lambda x: hf.scan(lambda c, k: (body(c, k), c), x, hf.arange(3)))(x)


def test_two_arguments_bound_a_slice() -> None:
    def cleared(x: Any, a: Any, b: Any) -> Any:
        y = +x
        y[a:b] = 0.0
        return y, x[a:b], x[a:], x[:b]

    compiled, x = hf.function(cleared), hf.asarray(WHOLE[0])
    for bounds in ((2, 5), (0, 12), (5, 2), (-3, 99), (2, 5)):
        a, b = map(hf.asarray, bounds)
        agree(compiled(x, a, b), cleared(x, a, b))


_SHAPE = hf.asarray([2, 6])


@pytest.mark.parametrize(
    "program",
    [
        lambda x: hf.zeros(hf.asarray([2, 3])) + x[0],
        lambda x: hf.tile(x, hf.asarray([2, 1])),
        lambda x: hf.repeat(x, hf.asarray([2, 0] * 6)),
        lambda x: hf.repeat(x, hf.asarray(2)),
        lambda x: hf.broadcast_to(x, hf.asarray([2, 12])),
        lambda x: hf.pad(x, hf.asarray([[2, 1]])),
        lambda x: hf.permute_dims(hf.reshape(x, _SHAPE), hf.asarray([1, 0])),
        lambda x: hf.sum(hf.reshape(x, _SHAPE), axis=hf.asarray(1)),
        lambda x: hf.ones(_SHAPE) * x[0],
    ],
)
def test_shapes_and_axes_may_be_constants_of_the_function(program: Callable[[Any], Any]) -> None:
    x = hf.asarray(WHOLE[0])
    agree(hf.function(program, strict=True)(x), program(x))


@pytest.mark.runs_eagerly
def test_a_size_that_each_turn_of_a_loop_has_of_its_own_runs_eagerly() -> None:
    def parts(x: Any, n: Any) -> Any:
        total = hf.zeros(())
        for k in range(n):
            total += hf.sum(x[:k])
        return total

    x = hf.asarray(WHOLE[0])
    for n in map(hf.asarray, (4, 0, 7)):
        agree(hf.function(parts)(x, n), parts(x, n))


def test_layers_of_functional_models_find_them_when_they_are_called() -> None:
    inputs = hf.layers.Input((4,))
    model = hf.Model(inputs, hf.layers.Lambda(lambda x: x[x > 0])(inputs))
    for rows in (2, 3):
        x = hf.asarray(RNG.standard_normal((rows, 4)).astype("f4"))
        agree(model(x), x[x > 0])


def test_a_signature_may_be_declared() -> None:
    @hf.function(input_signature=[hf.TensorSpec([None])])
    def positive(x: Any) -> Any:
        return x[x > 0]

    for n in (4, 7, 1, 0, 9):
        x = hf.asarray(RNG.standard_normal(n).astype("f4"))
        agree(positive(x), x[x > 0])


def test_sizes_that_equal_others_are_found_natively() -> None:
    @hf.function
    def like_another(x: Any, weights: Any) -> Any:
        y = x[x > 0]
        return y * weights if y.shape[0] == weights.shape[0] else y

    @hf.function
    def like_its_own(x: Any) -> Any:
        y = hf.concat([x, x[:1]])
        y = y[y > 0]
        return y[1:] + x if y.shape[0] == x.shape[0] + 1 else y

    weights = hf.asarray(np.arange(4.0))
    for step in range(3):
        for x in (np.array([1.0, 2.0, 3.0, 4.0, -1.0]), np.array([5.0, -1.0, 2.0]), np.arange(1.0, 5.0)):
            x = hf.asarray(x + step / 4)
            kept = x.numpy()[x.numpy() > 0]
            np.testing.assert_array_equal(like_another(x, weights), kept * weights if len(kept) == 4 else kept)
            twice = np.append(kept, kept[0])
            np.testing.assert_array_equal(like_its_own(x), twice[1:] + x if len(kept) == len(x) else twice)
    for function in (like_another, like_its_own):
        assert [row["in Python since"] for row in function.signatures() if row["in Python since"]] == []


def test_messages_say_nothing_of_sizes_as_arguments() -> None:
    @hf.function
    def positive(x: Any) -> Any:
        return x[x > 0]

    for k in (3, 4):
        positive(hf.asarray(np.arange(k, dtype="f4")))
    for call in (positive, positive.explain):
        with pytest.raises(TypeError, match=r"the signature is positive\(x: Any\)|missing"):
            call()
    causes = {retrace.argument for retrace in positive.retraces()}
    assert causes <= {"sizes that values decide", "x"}
    assert "sizes that values decide" in causes


def test_programs_of_the_last_sizes_can_be_looked_at() -> None:
    f = hf.function(lambda x: hf.exp(x[x > 0]))
    x = hf.asarray(WHOLE[0])
    with pytest.raises(errors.TraceError, match="size="):
        f.explain(x)
    f(x)
    count = int(np.count_nonzero(WHOLE[0] > 0))
    assert f"f32[{count}]" in f.ir(x)
    assert f"int {count}" in str(f.explain(x))
    assert len(f.kernels(x)) > 0
    assert len(f.profile(x, runs=2).kernels) > 0
    assert f.diff(f, x) == ""
    assert f.concrete_functions()
    assert len(f.profile(x[:3], runs=2).kernels) > 0  # which has other sizes than the last call
    assert "-1 calls ago" not in repr(f)


def test_errors_after_a_size_are_those_of_eager_code() -> None:
    @hf.function
    def wrong(x: Any, n: Any) -> Any:
        return x[x > 0] + hf.zeros(n)

    x = hf.asarray([1.0, -1.0, 2.0, 3.0])
    for n in (2, 4, 5):
        with pytest.raises(errors.ShapeError):
            wrong(x, hf.asarray(n))
    assert wrong(x, hf.asarray(3)).tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(errors.ShapeError, match="negative"):
        hf.function(lambda n: hf.zeros(n))(hf.asarray(-2))


def test_who_asks_before_a_call_is_told_that_calls_find_sizes() -> None:
    function = hf.function(lambda x: x[x > 0])
    x = hf.asarray(np.array([1.0, -2.0, 3.0]))
    for ask in (function.explain, function.profile, function.ir):
        with pytest.raises(errors.TraceError) as caught:
            ask(x)
        assert any("Calls find such sizes" in note for note in caught.value.__notes__)
    function(x)
    assert "f64[2]" in str(function.explain(x))
