"""Saved functions with open extents answer as the function that was saved, or say why they do not: what a trace assumed
of its extents is in the file, and no index map leaves its array."""

from __future__ import annotations

import itertools
import json
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.checkpoint import files
from hybridflow.compiler.ops import TABLE
from hybridflow.eager.dispatch import apply
from hybridflow.saved import shape_variants

pytestmark = pytest.mark.code

TABLE_OF_16 = hf.asarray(np.arange(16.0))
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 16, 17, 19, 20, 21, 30, 40)


def line(n: int) -> Any:
    return hf.asarray(np.arange(1.0, n + 1).astype("f4"))


def padded_or_cut(x: Any) -> Any:
    return hf.pad(x, ((0, 20 - x.shape[0]),)) if x.shape[0] <= 20 else x[:20]


def by_size(x: Any) -> Any:
    n = x.shape[0]
    return x * 3 if n > 20 else x + 1 if n > 7 else -x


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "from the front": lambda x: x[:10],
    "from behind": lambda x: x[-10:],
    "without the ends": lambda x: x[3:-4],
    "in steps": lambda x: x[2:20:3],
    "backwards": lambda x: x[20:2:-3],
    "halves": lambda x: x[x.shape[0] // 2 :] * 2,
    "one element": lambda x: x[7],
    "one from behind": lambda x: x[-7],
    "a branch": by_size,
    "rows of a table": lambda x: TABLE_OF_16[: x.shape[0]],
    "what a table has more": lambda x: TABLE_OF_16[x.shape[0] :],
    "rolled": lambda x: hf.roll(x, 3),
    "differences": lambda x: hf.diff(x, n=3),
    "sums of neighbours": lambda x: x[9:] + x[:-9],
    "padded or cut": padded_or_cut,
    "the largest ones": lambda x: hf.top_k(x, 4)[0],
    "a filter": lambda x: hf.nn.conv1d(x[None, :, None], hf.ones((5, 1, 1)), padding="VALID"),
    "a loop over rows": lambda x: hf.scan(lambda total, row: total + row, x[2:], hf.asarray(np.float32(0))),
    "a gradient": lambda x: gradient(x),
}


def gradient(x: Any) -> Any:
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = hf.sum(x[:10] ** 2) + hf.sum(x[5:] * 3)
    return tape.gradient(y, x)


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    try:
        return np.asarray(f(*args))
    except (ValueError, IndexError) as error:
        return error


def same(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_signature_answers_for_all_sizes(tmp_path: Path, name: str) -> None:
    f = hf.function(PROGRAMS[name], input_signature=[hf.TensorSpec((None,))])
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for n in SIZES:
        live, found = outcome(f, line(n)), outcome(loaded, line(n))
        if isinstance(live, np.ndarray):
            assert same(live, found), (n, live, found)
        else:
            assert isinstance(found, errors.HybridflowError), (n, live, found)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_never_called_is_refused(tmp_path: Path, name: str) -> None:
    """Without a signature there are programs for what was called, and for all extents where they came to be open; for
    all else there is an error that says so."""
    f = hf.function(PROGRAMS[name])
    called = [n for n in (30, 40, 16) if isinstance(outcome(f, line(n)), np.ndarray)]
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for n in SIZES:
        live, found = outcome(PROGRAMS[name], line(n)), outcome(loaded, line(n))
        assert same(live, found) or (isinstance(found, errors.ShapeError) and n not in called), (n, live, found)


def test_the_error_says_which_condition_and_what_to_do(tmp_path: Path) -> None:
    def of_ten(x: Any) -> Any:
        if x.shape[0] < 10:
            raise KeyError("too few")
        return x[:10]

    def loaded_from(f: Callable[..., Any], *sizes: int) -> Any:
        live = hf.function(f)
        for n in sizes:
            live(line(n))
        return hf.saved.load(hf.saved.save(live, tmp_path / "f"))

    loaded = loaded_from(of_ten, 30, 40)
    with pytest.raises(errors.ShapeError) as raised:
        loaded(line(5))
    assert "traced for extents where x0-10 >= 0 (x0 is 5)" in str(raised.value)
    assert "none was saved for (x: f32[5])" in str(raised.value)
    assert "before it is saved" in str(raised.value)
    with pytest.raises(errors.ShapeError, match=re.escape("Open extents (?) are 2 or more.")):
        loaded(line(1))
    loaded = loaded_from(lambda x: hf.reshape(x, (-1, 4)), 8, 12, 24)
    with pytest.raises(errors.ShapeError, match=re.escape("an extent is 4*x0_by_4 (it is 41)")):
        loaded(line(41))
    two = hf.function(lambda x, y: x[1:] + y, input_signature=[hf.TensorSpec((None,))] * 2)
    loaded = hf.saved.load(hf.saved.save(two, tmp_path / "f"))
    with pytest.raises(errors.ShapeError, match=re.escape("an extent is x0-1 (it is 9, x0 is 9)")):
        loaded(line(9), line(9))


# What extents follow from those of arguments: 0, 1, equal to others, parts of them.
DERIVED: dict[str, Callable[..., Any]] = {
    "half": lambda x: x[: x.shape[0] // 2] * 2,
    "all but three": lambda x: hf.flip(x[3:]) + 1,
    "differences": lambda x: x[1:] - x[:-1],
    "two ends": lambda x: hf.concat([x[2:], x[:-3]]),
    "rows of three": lambda x: hf.sum(hf.reshape(x[: x.shape[0] // 3 * 3], (-1, 3)), axis=1),
    "rows of all": lambda x: hf.reshape(x, (-1, 4)) * 2,
    "a product": lambda x: x[3:][:, None] * x[None, :-3],
    "even and odd ones": lambda x: x[: x.shape[0] // 2 * 2 : 2] + x[1::2],
    "more than there are": lambda x: hf.concat([x, x[: x.shape[0] // 4]]),
    "what is left of another": lambda x, y: x[1:] + y,
    "half of another": lambda x, y: x[: x.shape[0] // 2] + y,
    "parts of both": lambda x, y: x[1:] + y[2:],
}


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize("is_declared", [True, False])
def test_extents_that_follow_are_0_or_1(tmp_path: Path, name: str, is_declared: bool) -> None:
    f = DERIVED[name]
    count = f.__code__.co_argcount
    live = hf.function(f, input_signature=[hf.TensorSpec((None,))] * count if is_declared else None)
    if not is_declared:
        for n in (16, 20, 24):
            outcome(
                live,
                *map(line, {"half of another": (n, n // 2), "parts of both": (n, n + 1)}.get(name, (n, n - 1))[:count]),
            )
    loaded = hf.saved.load(hf.saved.save(live, tmp_path / "f"))
    for sizes in itertools.product(range(8), repeat=count):
        arguments = [line(n) for n in sizes]
        wanted, got = outcome(f, *arguments), outcome(loaded, *arguments)
        if isinstance(wanted, np.ndarray):
            assert same(wanted, got), (sizes, wanted, got)
        else:
            assert isinstance(got, errors.HybridflowError), (sizes, wanted, got)


def test_other_sides_that_were_traced_are_saved(tmp_path: Path) -> None:
    f = hf.function(lambda x: x[:10])
    for n in (30, 40, 5):
        f(line(n))
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for n in (30, 12, 10, 9, 5, 2):
        assert loaded(line(n)).tolist() == f(line(n)).tolist()


def test_several_symbols(tmp_path: Path) -> None:
    def f(x: Any, y: Any) -> Any:
        if x.shape[0] == y.shape[0]:
            return x * 2 + y
        if x.shape[0] > 2 * y.shape[0]:
            return x[: y.shape[0]] - y
        return hf.concat([x, y])

    live = hf.function(f, input_signature=[hf.TensorSpec((None,)), hf.TensorSpec((None,))])
    loaded = hf.saved.load(hf.saved.save(live, tmp_path / "f"))
    answered = 0
    for n in (2, 3, 5, 9, 20):
        for m in (2, 3, 5, 9, 20):
            found = outcome(loaded, line(n), line(m))
            answered += isinstance(found, np.ndarray)
            assert same(found, outcome(live, line(n), line(m))) or isinstance(found, errors.ShapeError), (n, m, found)
    assert answered >= 15


def test_multiples(tmp_path: Path) -> None:
    g = hf.function(lambda x: hf.sum(hf.reshape(x, (-1, 4)), axis=1))
    for n in (8, 12, 24):
        g(line(n))
    loaded = hf.saved.load(hf.saved.save(g, tmp_path / "g"))
    assert loaded(line(40)).tolist() == g(line(40)).tolist()
    with pytest.raises(errors.ShapeError):
        loaded(line(41))
    assert loaded(line(4)).tolist() == g(line(4)).tolist()  # for which no symbol stands


def test_within_other_functions(tmp_path: Path) -> None:
    f = hf.function(lambda x: x[:10] * 2, input_signature=[hf.TensorSpec((None,))])
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    outer = hf.function(lambda x: loaded(x) + 1)
    for n in (30, 40, 5, 12, 9, 2, 1, 0):
        assert outer(line(n)).tolist() == (line(n)[:10] * 2 + 1).tolist()


def test_what_was_read_from_outside_is_as_it_is_now(tmp_path: Path) -> None:
    """Programs that a later value of a global made stale are no programs of the file."""
    scale = [2.0]
    for signature in (None, [hf.TensorSpec((None,))]):
        f = hf.function(lambda x: x * scale[0], input_signature=signature)
        for now in (2.0, 3.0):
            scale[0] = now
            f(line(4)), f(line(6))
        loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
        assert loaded(line(4)).tolist() == (line(4) * 3).tolist()
        scale[0] = 2.0


def test_plain_values_of_small_extents(tmp_path: Path) -> None:
    """A program for an extent of 1 or 0 has the value of the argument, rather than what stands for it."""
    f = hf.function(lambda x, twice=False: x * 2 if twice else x)
    one = f.get_concrete_function(hf.TensorSpec((None,)), False)
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f", signatures=one))
    for n in (0, 1, 2, 5):
        assert loaded(line(n)).tolist() == line(n).tolist()


def test_user_errors_of_small_extents_do_not_stop_saving(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        if x.shape[0] < 4:
            raise KeyError("too few")
        return x[3:]

    saved = hf.function(f, input_signature=[hf.TensorSpec((None,))])
    loaded = hf.saved.load(hf.saved.save(saved, tmp_path / "f"))
    assert loaded(line(6)).tolist() == [4.0, 5.0, 6.0]
    assert loaded(line(4)).tolist() == [4.0]
    with pytest.raises(errors.ShapeError):
        loaded(line(3))


# ---- tables of positions: a trace takes an open extent to be the rows that there are


def rows_of(count: int) -> Any:
    return hf.asarray(np.random.default_rng(count).normal(size=(count, 2)).astype("f4"))


ROWS = {count: rows_of(count) for count in (2, 3, 16, 512)}


def both_answer(f: Callable[..., Any], loaded: Callable[..., Any], *args: Any) -> bool:
    """Whether a function gives numbers, which are then those of its file; else both raise."""
    wanted, got = outcome(f, *args), outcome(loaded, *args)
    if isinstance(wanted, np.ndarray):
        assert same(wanted, got) and wanted.tobytes() == got.tobytes(), ([x.shape for x in args], wanted, got)
    else:
        assert isinstance(got, errors.HybridflowError), ([x.shape for x in args], wanted, got)
    return isinstance(wanted, np.ndarray)


@pytest.mark.parametrize("count", ROWS)
def test_a_table_of_positions(tmp_path: Path, count: int) -> None:
    def f(x: Any) -> Any:
        return ROWS[count][: x.shape[0]] + x

    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f", input_signature=[hf.TensorSpec((None, 2))]))
    for n in {0, 1, 2, 3, 10, 511, 512, 513, count - 1, count, count + 1}:
        assert both_answer(f, loaded, rows_of(n)) or n > count, n


@pytest.mark.parametrize(("count", "batch"), [(3, "batch"), (16, None), (512, "batch")])
def test_a_table_of_positions_beside_a_batch(tmp_path: Path, count: int, batch: Any) -> None:
    mask = hf.asarray(np.tril(np.ones((count, count), "f4")))

    def f(x: Any) -> Any:
        n = x.shape[1]
        x = x + ROWS[count][:n]
        return hf.matmul(hf.matmul(x, hf.matrix_transpose(x)) * mask[:n, :n], x)

    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f", input_signature=[hf.TensorSpec((batch, None, 2))]))
    for size, n in itertools.product((0, 1, 3), {0, 1, 2, count - 1, count, count + 1}):
        assert both_answer(f, loaded, hf.stack([rows_of(n)] * size) if size else hf.zeros((0, n, 2))) or n > count


# Conditions of which no extent decides alone, and extents that a trace ties to one number.
SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "a part of both": lambda x, y: hf.concat([x, y])[3:8],
    "the last of both": lambda x, y: hf.concat([x, y])[-5:],
    "rows of a table": lambda x, y: TABLE_OF_16[: x.shape[0] + y.shape[0]] * 2,
    "a table for both": lambda x, y: TABLE_OF_16[: x.shape[0]] + x + y,
    "a table for each": lambda x, y: hf.concat([TABLE_OF_16[: x.shape[0]] + x, TABLE_OF_16[: y.shape[0]] * y]),
}


@pytest.mark.parametrize("name", SUMS)
def test_two_open_extents_together(tmp_path: Path, name: str) -> None:
    f = SUMS[name]
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f", input_signature=[hf.TensorSpec((None,))] * 2))
    answered = [
        both_answer(f, loaded, line(n), line(m)) for n in (0, 1, 2, 3, 4, 7, 16, 17) for m in (0, 1, 2, 3, 7, 16)
    ]
    assert sum(answered) >= 10


def test_the_limit_of_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more branches than there may be programs a file has the first; for others there is the error as ever."""
    monkeypatch.setattr(shape_variants, "_MOST", 2)
    loaded = hf.saved.load(hf.saved.save(by_size, tmp_path / "f", input_signature=[hf.TensorSpec((None,))]))
    assert both_answer(by_size, loaded, line(30)) and both_answer(by_size, loaded, line(1))
    found = [outcome(loaded, line(n)) for n in (20, 5)]
    assert sum(isinstance(one, errors.ShapeError) for one in found) == 1


def test_an_extent_that_divides_may_be_0(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return x[: 30 // (x.shape[0] - 2)] * 1

    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f", input_signature=[hf.TensorSpec((None,))]))
    for n in (3, 4, 7, 8, 33):
        wanted, got = outcome(f, line(n)), outcome(loaded, line(n))
        assert same(wanted, got) or isinstance(got, errors.ShapeError), (n, wanted, got)
    assert both_answer(f, loaded, line(33))
    with pytest.raises(errors.ShapeError):
        loaded(line(2))


def test_what_takes_nothing_for_granted_has_no_more_programs(tmp_path: Path) -> None:
    model = hf.Sequential([hf.Input((4,)), hf.layers.Dense(8, activation="relu"), hf.layers.Dense(2)])
    loaded = hf.saved.load(hf.saved.save(model, tmp_path / "model"))
    assert len(loaded.serving_default.programs) == 3  # for any number of samples, one, none


# ---- dicts


def test_dicts_in_any_order(tmp_path: Path) -> None:
    f = hf.function(lambda d: d["b"]["y"] - d["a"] * d["b"]["x"])
    a, x, y = line(3), line(3) * 2, line(3) * 5
    expected = f({"a": a, "b": {"x": x, "y": y}}).tolist()
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    assert loaded({"b": {"y": y, "x": x}, "a": a}).tolist() == expected
    assert loaded(d={"b": {"y": np.asarray(y), "x": np.asarray(x)}, "a": a}).tolist() == expected
    assert loaded(OrderedDict([("b", OrderedDict([("y", y), ("x", x)])), ("a", a)])).tolist() == expected
    with pytest.raises(errors.ShapeError) as raised:
        loaded({"b": {"y": y, "z": x}, "a": np.arange(1000.0)})
    assert 'd["a"]: f64[1000]' in str(raised.value) and 'd["b"]["z"]: f32[3]' in str(raised.value)
    assert "[0." not in str(raised.value) and "..." not in str(raised.value)


def test_lists_and_tuples_in_the_place_of_one_another(tmp_path: Path) -> None:
    f = hf.function(lambda pair: pair[0] - pair[1]["k"][0])
    one, two = line(3) * 4, line(3)
    expected = f((one, {"k": [two]})).tolist()
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for given in ((one, {"k": [two]}), [one, {"k": (two,)}], [one, defaultdict(list, k=[two])]):
        assert loaded(given).tolist() == expected
    with pytest.raises(errors.ShapeError):
        loaded([one, {"k": [two, two]}])


def test_code_that_sees_the_order_of_a_dict(tmp_path: Path) -> None:
    """Of two programs for two orders the one for the order of the call answers."""
    f = hf.function(lambda d: [v * k for k, v in enumerate(d.values(), 1)])
    given = {"p": line(2), "q": line(2) + 5}
    turned = dict(reversed(given.items()))
    f(given), f(turned)
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for one in (given, turned):
        assert [x.tolist() for x in loaded(one)] == [x.tolist() for x in f(one)]


# ---- what files say


def changed(path: str, change: Callable[[dict[str, Any]], None], version: str | None = None) -> str:
    file = files.File(path)
    programs = json.loads(file.texts["programs"])
    for one in programs["serving_default"]:
        change(one)
    texts = {**file.texts, "programs": json.dumps(programs), **({} if version is None else {"version": version})}
    files.write(path, {name: np.array(file.tensor(name)) for name in file.names}, texts)
    return path


def without_conditions(program: dict[str, Any]) -> None:
    program["graph"] = re.sub(r"  assume .*\n", "", program["graph"])


def test_a_file_without_its_conditions_is_refused(tmp_path: Path) -> None:
    f = hf.function(lambda x: x[:10], input_signature=[hf.TensorSpec((None,))])
    path = changed(hf.saved.save(f, tmp_path / "f"), without_conditions)
    with pytest.raises(errors.CheckpointError, match="relies on x0-10 >= 0"):
        hf.saved.load(path)


def test_files_of_the_first_format(tmp_path: Path) -> None:
    """They did not say their conditions: what index maps rely on is found again, and a warning tells of the rest."""
    f = hf.function(lambda x: x[:10], input_signature=[hf.TensorSpec((None,))])
    path = hf.saved.save(f, tmp_path / "f")

    def first(program: dict[str, Any]) -> None:
        without_conditions(program)

    file = files.File(path)
    programs = json.loads(file.texts["programs"])
    programs["serving_default"] = programs["serving_default"][:1]
    files.write(path, {}, {**file.texts, "programs": json.dumps(programs)})
    changed(path, first, "1")
    with pytest.warns(UserWarning, match=r"format 1.*Save it again"):
        loaded = hf.saved.load(path)
    assert loaded(line(30)).shape == (10,)
    with pytest.raises(errors.ShapeError, match="x0-10 >= 0"):
        loaded(line(5))


# ---- views whose extents are known at run time


CUTS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: apply(TABLE["slice"], x, start=(0,), stop=(10,), step=(1,)),
    "slice from": lambda x: apply(TABLE["slice"], x, start=(x.shape[0] - 10,), stop=(x.shape[0],), step=(2,)),
    "pad": lambda x: apply(TABLE["pad"], x, low=(x.shape[0] - 10,), high=(0,), interior=(0,), value=0),
    "first": lambda x: apply(TABLE["first_positions"], x, axis=0, descending=False, count=10),
}


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("signature", [None, [hf.TensorSpec((None,))]])
def test_no_op_leaves_its_array(name: str, signature: Any) -> None:
    """Whoever writes an op with extents that are open: the program is for calls in which it stays inside."""
    f = hf.function(CUTS[name], input_signature=signature)
    for n in (30, 40, 12):
        assert f(line(n)).tolist() == CUTS[name](line(n)).tolist()
    for n in (5, 9, 2):
        with pytest.raises(errors.HybridflowError):
            f(line(n))
    assert f(line(10)).tolist() == CUTS[name](line(10)).tolist()


def test_derivatives_of_open_cuts() -> None:
    f = hf.function(lambda x: hf.sum(x[:10] ** 2))

    def of(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    for n in (30, 40, 5, 12):
        x = line(n)
        assert of(x).tolist() == [2 * v if k < 10 else 0.0 for k, v in enumerate(x.tolist())]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: hf.take(x, hf.asarray([1]), axis=0),
        lambda x: hf.take_along_axis(x, hf.argsort(x, axis=0), axis=0),
        lambda x: hf.searchsorted(hf.sort(x), hf.asarray([1.0, 2.0], dtype="float32")),
        lambda x: hf.take(x, hf.zeros((0,), "int64"), axis=0),
    ],
)
def test_looking_up_in_nothing(tmp_path: Path, f: Any) -> None:
    """Of no elements none is found: that is an error when it runs, and none when it is saved."""
    live = hf.function(f, input_signature=[hf.TensorSpec((None,))])
    loaded = hf.saved.load(hf.saved.save(live, tmp_path / "f"))
    for n in (5, 2, 1, 0):
        a, b = outcome(live, line(n)), outcome(loaded, line(n))
        assert same(a, b) or (type(a) is type(b) and isinstance(a, errors.HybridflowError)), (n, a, b)


# ---- windows over pictures of any height and width


def filters(*shape: int) -> Any:
    return hf.asarray(np.random.default_rng(0).normal(size=shape).astype("f4"))


WINDOWS: dict[str, Callable[[Any], Any]] = {
    "a filter": lambda x: hf.nn.conv2d(x, filters(3, 2, 2, 3), padding="VALID"),
    "every second place": lambda x: hf.nn.conv2d(x, filters(5, 5, 2, 3), strides=2, padding="SAME"),
    "a wide filter": lambda x: hf.nn.conv2d(x, filters(2, 3, 2, 3), padding="VALID", dilations=2),
    "a filter for each channel": lambda x: hf.nn.depthwise_conv2d(x, filters(3, 3, 2, 1), strides=2, padding="VALID"),
    "maxima": lambda x: hf.nn.max_pool2d(x, 2, 2, "SAME"),
    "means of means": lambda x: hf.nn.avg_pool2d(hf.nn.avg_pool2d(x, 2, 1, "VALID"), 3, 2, "SAME"),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_over_pictures(tmp_path: Path, name: str) -> None:
    """Right numbers, or an error where the picture is smaller than the window."""
    f = hf.function(WINDOWS[name], input_signature=[hf.TensorSpec((2, None, None, 2), "float32")])
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for height, width in ((2, 2), (2, 9), (3, 8), (4, 2), (5, 5), (6, 7), (9, 6), (17, 1)):
        x = filters(2, height, width, 2)
        wanted, got = outcome(WINDOWS[name], x), outcome(loaded, x)
        if isinstance(wanted, np.ndarray):
            assert same(wanted, got), (height, width, wanted, got)
        else:
            assert isinstance(got, errors.ShapeError), (height, width, wanted, got)


def test_the_stem_of_a_network(tmp_path: Path) -> None:
    """Nobody asks whether an extent is odd that follows from others."""
    wide, narrow = filters(7, 7, 1, 2), filters(1, 1, 2, 2)

    def stem(x: Any) -> Any:
        x = hf.nn.max_pool2d(hf.nn.conv2d(x, wide, strides=2, padding="SAME"), 3, 2, "SAME")
        return hf.nn.avg_pool2d(hf.nn.conv2d(x, narrow, strides=2, padding="SAME"), 2, 2, "SAME")

    f = hf.function(stem, input_signature=[hf.TensorSpec((1, None, 9, 1), "float32")])
    loaded = hf.saved.load(hf.saved.save(f, tmp_path / "f"))
    for height in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 18, 33):
        x = filters(1, height, 9, 1)
        assert same(np.asarray(stem(x)), np.asarray(loaded(x))), height
