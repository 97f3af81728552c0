"""Calls with arguments and results of every kind: answered by native code, and the same as in Python."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import gc
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from decimal import Decimal

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentError, ArgumentTypeError, ShapeError
from hybridflow.runtime.memory import memory_pool
from tests.support.garbage import collect_all

pytestmark = pytest.mark.usefixtures("native")

Pair = namedtuple("Pair", "x y")
OtherPair = namedtuple("OtherPair", "x y")


class SubArray(np.ndarray):
    pass


@dataclasses.dataclass
class Batch:
    x: object
    y: object = 2.0


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    y: object = 2.0


@dataclasses.dataclass(slots=True)
class Slotted:
    x: object
    y: object = 2.0


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def array(k=0):
    return np.arange(3, dtype=np.float32) + k


def tensor(k=0):
    return hf.asarray(array(k))


def native_calls(f):
    return sum(call.calls for call in f._cache.native_calls())


def answered(f, *args, **kwargs):
    """The result of a call, and whether native code gave it."""
    before = native_calls(f)
    result = f(*args, **kwargs)
    return result, native_calls(f) == before + 1


def leaves(tree):
    if dataclasses.is_dataclass(tree):
        tree = [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [tree]


def total(*args, **kwargs):
    """A number that says which leaf was where."""
    found = [leaf for leaf in leaves([args, kwargs]) if not isinstance(leaf, (str, type(None), Color, type))]
    return sum(hf.sum(leaf) * (3.0**k) for k, leaf in enumerate(found))


ARGUMENTS = {
    "dict": lambda k: {"a": tensor(k), "b": tensor(1)},
    "dict of arrays": lambda k: {"a": array(k), "b": array(1)},
    "keys of several types": lambda k: {
        1: tensor(k),
        "a": tensor(),
        (2, 3): tensor(2),
        None: tensor(1),
        1 << 70: tensor(),
    },
    "ordered dict": lambda k: OrderedDict(a=tensor(k), b=tensor(1)),
    "default dict": lambda k: defaultdict(list, a=tensor(k), b=tensor(1)),
    "default dict without": lambda k: defaultdict(None, a=tensor(k)),
    "list": lambda k: [tensor(k) for _ in range(10)],
    "tuple": lambda k: (tensor(k), array(1)),
    "empty": lambda k: [[], {}, (), tensor(k)],
    "named tuple": lambda k: Pair(tensor(k), tensor(1)),
    "dataclass": lambda k: Batch(tensor(k), array(1)),
    "frozen": lambda k: Frozen(tensor(k)),
    "slotted": lambda k: Slotted(tensor(k), array(2)),
    "array": array,
    "strided": lambda k: np.arange(9, dtype=np.float32)[k::3],
    "array of a subclass": lambda k: array(k).view(SubArray),
    "reversed": lambda k: array(k)[::-1],
    "unaligned": lambda k: np.frombuffer(b"." + array(k).tobytes(), np.float32, offset=1),
    "read-only": lambda k: np.broadcast_to(np.float32(k), (3,)),
    "scalar": np.float32,
    "whole scalar": lambda k: [np.int64(k), np.bool_(k > 1)],
    "0-d": lambda k: np.asarray(np.float64(k)),
    "strided tensor": lambda k: hf.asarray(np.arange(6, dtype=np.float32).reshape(2, 3)).T + float(k),
    "nested": lambda k: {"a": [tensor(k), {"b": (array(1), tensor(2))}], "c": Pair(Batch(tensor(3)), [])},
    "mixed": lambda k: [tensor(k), 1.5, 2, True, None, "text", Color.RED, float, -0.0],
    "deep": lambda k: [[[[[[[[tensor(k)]]]]]]]],
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name):
    make, f = ARGUMENTS[name], hf.function(total)
    f(make(0)), f(make(1))
    for k in (2, 0, 1):
        result, is_native = answered(f, make(k))
        assert is_native and result.numpy() == total(make(k)).numpy()


class Holder:
    def __init__(self, scale):
        self.scale = scale


def test_objects_and_variables():
    v, w, one, two = hf.Variable(array()), hf.Variable(array(5)), Holder(2.0), Holder(3.0)

    @hf.function
    def f(x, variables, holder):
        variables[0].assign_add(x)
        return variables[0] * holder.scale

    for variable in (v, w):
        f(tensor(1), [variable], one), f(tensor(1), [variable], one)
        result, is_native = answered(f, tensor(1), [variable], one)
        start = array() if variable is v else array(5)
        np.testing.assert_array_equal(result.numpy(), (start + 3 * array(1)) * 2)
        assert is_native
    np.testing.assert_array_equal(f(tensor(1), [v], two).numpy(), (array() + 4 * array(1)) * 3)
    one.scale = 7.0
    np.testing.assert_array_equal(f(tensor(1), [v], one).numpy(), (array() + 5 * array(1)) * 7)
    gone = weakref.ref(w)
    del w, variable
    collect_all()
    assert gone() is None
    again = hf.Variable(array())
    np.testing.assert_array_equal(f(tensor(1), [again], two).numpy(), (array() + array(1)) * 3)


def test_how_a_call_is_written():
    weights, options = tensor(2), [1.0, 2.0]

    def body(x, y=2.0, *rest, w=weights, scale=options, **more):
        return x + y + hf.sum(w) + sum(scale) + sum(rest) + sum(more.values())

    f = hf.function(body)
    x, y = tensor(), tensor(1)
    calls = [
        ((x,), {}),
        ((x, y), {}),
        ((x,), {"y": y}),
        ((), {"y": y, "x": x}),
        ((x, y, 3.0, y), {}),
        ((x, 1.0, y), {"w": y}),
        ((x,), {"z": y, "a": x}),
        ((x,), {"a": y, "z": x}),
        ((x, 1.0, 2.0), {"scale": [y, 5.0]}),
    ]
    for args, kwargs in calls:
        expected = body(*args, **kwargs).numpy()
        for k in range(3):
            result, is_native = answered(f, *args, **kwargs)
            np.testing.assert_array_equal(result.numpy(), expected)
            assert is_native or k == 0
    options.append(4.0)  # a default, which is looked at each time
    np.testing.assert_array_equal(f(x).numpy(), body(x).numpy())
    body.__defaults__ = (8.0,)
    np.testing.assert_array_equal(f(x).numpy(), body(x).numpy())
    assert answered(f, **{"".join(["x"]): x, "".join(["y"]): y})[0].shape == (3,)


def test_equal_values_that_are_other_objects():
    f = hf.function(lambda x, value: x + 1.0)
    x = tensor()
    same = {
        "text": lambda: "".join(["a ", "text"]),
        "bytes": lambda: bytes([1, 2, 3]),
        "large": lambda: int("9" * 30),
        "float": lambda: float("1.25"),
        "date": lambda: datetime.date(2020, 1, 2),
        "decimal": lambda: Decimal("1.50"),
        "complex": lambda: complex("1+2j"),
        "range": lambda: range(int("5")),
    }
    for make in same.values():
        for _ in range(40):
            f(x, make())
    assert len(f.signatures()) == len(same)
    kept = make()
    for _ in range(40):
        f(x, kept)
    assert answered(f, x, kept)[1]


def test_a_call_that_cannot_be_native_does_not_stand_in_the_way_of_others():
    f = hf.function(lambda x: x + 1.0)

    for _ in range(5):
        f(array().astype(">f4"))
    for _ in range(8):
        f(tensor())
    assert answered(f, tensor())[1]


def test_one_tensor_in_two_places():
    def body(d, x):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(d["a"][0] * x)
        return tape.gradient(y, x)

    f = hf.function(body)
    x, y = tensor(1), tensor(1)
    for k in range(4):
        for d, z in (({"a": [x]}, x), ({"a": [y]}, x), ({"a": [array(1)]}, x), ({"a": [y]}, y)):
            result, is_native = answered(f, d, z)
            np.testing.assert_array_equal(result.numpy(), array(1) * (2 if d["a"][0] is z else 1))
            assert is_native or k == 0
    both = array(1)  # of which each becomes a tensor of its own
    for _ in range(3):
        np.testing.assert_array_equal(hf.function(body)({"a": [both]}, hf.asarray(both)).numpy(), both)


def test_variables_with_strided_values():
    start = np.arange(6, dtype=np.float32).reshape(2, 3).T
    v, x = hf.Variable(hf.asarray(start)), hf.ones((3, 2))
    f = hf.function(lambda x: x + v)
    f(x), f(x)
    result, is_native = answered(f, x)
    assert is_native and np.array_equal(result.numpy(), start + 1)
    v.assign(hf.asarray(start[::-1]))
    result, is_native = answered(f, x)
    assert is_native and np.array_equal(result.numpy(), start[::-1] + 1)


# What makes a difference.


def test_order_and_types_of_keys():
    f = hf.function(lambda d: (repr(list(d)), next(iter(d.values())) + 0.0))
    x, y = tensor(), tensor(7)
    for _ in range(3):
        for d in ({"a": x, "b": y}, {"b": x, "a": y}, {"a": y}, {1: x}, {True: x}, {1.0: x}, {np.int64(1): x}):
            text, value = f(d)
            assert text == repr(list(d))
            np.testing.assert_array_equal(value.numpy(), next(iter(d.values())).numpy())
    moved = OrderedDict(a=x, b=y)
    assert [f(moved)[0] for _ in range(3)] == ["['a', 'b']"] * 3
    moved.move_to_end("a")  # the dict below does not know
    assert [f(moved)[0] for _ in range(3)] == ["['b', 'a']"] * 3


def test_types_of_containers():
    f = hf.function(lambda p: (type(p), getattr(p, "default_factory", None)))
    x = tensor()
    given = [Pair(x, x), OtherPair(x, x), (x, x), [x, x], {"x": x}, OrderedDict(x=x), Batch(x, x), Frozen(x, x)]
    given += [defaultdict(list, x=x), defaultdict(int, x=x), defaultdict(None, x=x)]
    for _ in range(3):
        for p in given:
            kind, factory = f(p)
            assert kind is type(p) and factory is getattr(p, "default_factory", None)
    for kind in (dict, list, OrderedDict):
        sub = type("Sub", (kind,), {})
        for _ in range(2):
            with pytest.raises(ArgumentTypeError, match="Sub"):
                f(sub([("a", 1)]))


def test_fields_of_instances():
    f = hf.function(lambda b: b.x * b.y)
    b = Batch(tensor(1), 2.0)
    for y in (2.0, 3.0, tensor(4), array(5)):
        b.y = y
        for _ in range(3):
            np.testing.assert_array_equal(f(b).numpy(), array(1) * np.asarray(y))
    b.extra = 1
    with pytest.raises(ArgumentTypeError, match="Batch"):
        f(b)
    del b.extra
    assert answered(f, b)[1] and answered(f, dataclasses.replace(b, x=tensor(2)))[1]
    fields = dict(vars(b))
    b.__dict__.clear()
    b.__dict__.update(reversed(fields.items()))
    np.testing.assert_array_equal(f(b).numpy(), array(1) * array(5))

    @dataclasses.dataclass
    class Changing:
        x: object

    g, c = hf.function(lambda c: c.x + 1.0), Changing(tensor())
    g(c), g(c)
    Changing.x = property(lambda self: tensor(9), lambda self, value: None)
    np.testing.assert_array_equal(g(c).numpy(), array(10))


def test_keys_that_cannot_be_compared():
    class Key:
        def __eq__(self, other):
            raise ValueError("compared")

        def __hash__(self):
            return 5

    f = hf.function(lambda d: next(iter(d.values())) + 1.0)
    for key in (Key(), Key()):
        for _ in range(3):
            np.testing.assert_array_equal(f({key: tensor()}).numpy(), array(1))
        assert answered(f, {key: tensor(), 3: tensor(), "a": tensor(), None: tensor()})[0].shape == (3,)


@dataclasses.dataclass
class Quarrelsome:
    x: object

    def __eq__(self, other):
        raise ValueError("compared")


def test_objects_that_cannot_be_compared():
    f = hf.function(lambda q: q.x + 1.0)
    for k in range(3):
        np.testing.assert_array_equal(f(Quarrelsome(tensor(k))).numpy(), array(k + 1))
    assert answered(f, Quarrelsome(tensor()))[1]


def test_what_contains_itself():
    f = hf.function(lambda x: x[0])
    assert f([tensor()]).shape == f([tensor()]).shape == (3,)
    values, table = [tensor()], {}
    values.append((values, 1))
    table["a"] = {"b": [tensor(), table]}
    for cyclic in (values, table):
        for _ in range(2):
            with pytest.raises(ArgumentError, match=f"a {type(cyclic).__name__} contains itself"):
                f(cyclic)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ArgumentError, match="nested deeper"):
        f(deep)
    while deep:
        deep = deep.pop()
    assert answered(f, [tensor()])[1]


def test_open_extents_and_dims_in_results():
    spec = hf.TensorSpec([None, 2])

    @hf.function(input_signature=[{"a": spec, "b": [spec]}])
    def f(d):
        return {"n": d["a"].shape[0], "more": (d["b"][0].shape[0] * 2 + 1, d["a"] + 1.0), "none": None}

    for n, m in ((3, 4), (5, 2), (3, 4), (7, 9)):
        a, b = np.ones((n, 2), np.float32), hf.ones((m, 2))
        result = f({"a": a, "b": [b]})
        assert list(result) == ["n", "more", "none"] and result["n"] == n and result["more"][0] == 2 * m + 1
        np.testing.assert_array_equal(result["more"][1].numpy(), a + 1)
    assert answered(f, {"a": a, "b": [b]})[1]


# Results.


@dataclasses.dataclass
class Strict:
    x: object
    y: object = 1.0

    def __post_init__(self):
        assert not isinstance(self.x, str)


RESULTS = {
    "dict": lambda x: {"b": x + 1.0, "a": x * 2.0},
    "keys": lambda x: {1: x + 1.0, (2, "c"): {None: x * 2.0}},
    "nested": lambda x: (x + 1.0, [{"a": [x * 2.0, ()], "b": None}, 3, "text"], 2.5),
    "ordered": lambda x: OrderedDict(z=x + 1.0, a=x * 2.0),
    "default": lambda x: defaultdict(list, z=x + 1.0),
    "named": lambda x: Pair(x + 1.0, {"p": Pair(x * 2.0, 1)}),
    "dataclass": lambda x: Batch(x + 1.0, Frozen(x * 2.0, Slotted(x - 1.0))),
    "strict": lambda x: Strict(x + 1.0),
    "itself": lambda x: x,
    "argument": lambda x: {"x": x, "same": [x], "y": x + 1.0},
    "nothing": lambda x: None,
    "constant": lambda x: [np.ones(2), x.shape],
    "twice": lambda x: [x + 1.0] * 2,
    "captured": lambda x, c=tensor(8): (c, x),  # noqa: B008
}


def same(a, b):
    """Whether two results have the same types, keys in the same order, and values."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        factories = [getattr(d, "default_factory", None) for d in (a, b)]
        return list(a) == list(b) and factories[0] is factories[1] and same(list(a.values()), list(b.values()))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if dataclasses.is_dataclass(a):
        return list(getattr(a, "__dict__", ())) == list(getattr(b, "__dict__", ())) and same(leaves(a), leaves(b))
    if isinstance(a, (hf.Tensor, np.ndarray)):
        return a.shape == b.shape and a.dtype == b.dtype and np.asarray(a).tobytes() == np.asarray(b).tobytes()
    return a == b


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("make", [tensor, array, lambda k: array(k)[::-1]])
def test_results(name, make):
    body = RESULTS[name]
    f = hf.function(body)
    for k in range(4):
        x = make(k)
        result, is_native = answered(f, x)
        assert same(result, body(hf.asarray(x))) and is_native == (k > 0)
        if k and name == "twice":
            assert result[0] is result[1]
        if k and name == "argument":
            assert result["x"] is result["same"][0] and (make is not tensor or result["x"] is x)


def test_a_result_never_shares_memory_with_an_array_of_the_caller():
    f = hf.function(lambda d: (d["x"], d["x"] + 0.0, d["x"][0:2], hf.reshape(d["x"], (3, 1))))
    x = array()
    for _ in range(4):
        results = f({"x": x})
        assert not any(np.shares_memory(r.numpy(), x) for r in results)
    x[:] = 100
    assert not any((r.numpy() == 100).any() for r in results)
    first = f({"x": x})[0]
    np.testing.assert_array_equal(first.numpy(), [100, 100, 100])


def test_a_constant_array_in_a_result_is_the_callers_own():
    f = hf.function(lambda x: [np.zeros(2), x + 1.0])
    for _ in range(4):
        zeros, _ = f(tensor())
        assert zeros.tolist() == [0, 0]
        zeros += 1


# Signatures.


def test_an_input_signature_over_variadic_arguments():
    spec = hf.TensorSpec([None])
    one = hf.function(lambda *xs: (len(xs), xs[0] * 2.0), input_signature=[spec])
    for n in (3, 4, 4, 1, 5):
        count, value = one(np.ones(n, np.float32))
        assert count == 1 and value.shape == (n,)
    assert one([1.0, 2.0])[1].shape == (2,)
    with pytest.raises(ArgumentTypeError, match="xs has 2 entries where 1 are expected"):
        one(tensor(), tensor())
    with pytest.raises(ShapeError, match=r"xs\[0\]"):
        one(hf.ones((2, 2)))
    two = hf.function(lambda x, *ys, k=1.0: x + ys[0] * ys[1] * k, input_signature=[spec, spec, spec])
    for _ in range(3):
        np.testing.assert_array_equal(
            two(tensor(), tensor(1), tensor(2), k=2.0).numpy(), array() + array(1) * array(2) * 2
        )
    assert answered(two, tensor(), tensor(1), tensor(2), k=2.0)[1]
    assert two.get_concrete_function().graph is not None
    free = hf.function(lambda x, *ys: x + sum(ys), input_signature=[spec])
    np.testing.assert_array_equal(free(tensor(), 1.0, tensor()).numpy(), array() * 2 + 1)
    nested = hf.function(lambda *ds: ds[1]["a"], input_signature=[spec, {"a": spec}])
    assert nested(tensor(), {"a": tensor(4)}).numpy().tolist() == [4, 5, 6]
    with pytest.raises(ArgumentError, match="input_signature has 3 entries for 2 parameters"):
        hf.function(lambda x, y: x, input_signature=[spec] * 3)(tensor(), tensor())


# Things that happen meanwhile.


def test_containers_that_change_during_the_call():
    """A field that runs code, which empties what was already looked at."""
    victims = []

    @dataclasses.dataclass
    class Trap:
        x: object

    f = hf.function(lambda values, trap: values[0]["a"] + trap.x)

    def values():
        return [{"a": hf.asarray(np.full(1000, 3.0, np.float32))}]

    for _ in range(3):
        f(values(), Trap(1.0))

    def spring(self):
        for victim in victims:
            victim[0].clear()
            victim.clear()
        victims.clear()
        hf.asarray(np.zeros(1000, np.float32))  # takes the memory, if it is free
        return 1.0

    Trap.x = property(spring, lambda self, value: None)
    for _ in range(200):
        victims.append(values())
        try:
            result = f(victims[0], Trap(1.0))
        except (IndexError, ArgumentTypeError):  # it was emptied before Python looked at it
            continue
        assert (result.numpy() == 4).all()


def test_finalizers_that_change_the_arguments():
    class Cycle:
        def __init__(self, victim):
            self.victim, self.itself = victim, self

        def __del__(self):
            self.victim.clear()

    f = hf.function(lambda d: {"r": d["a"][0] + d["b"], "s": [d["b"] * 2.0]})
    f({"a": [tensor()], "b": tensor()})
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(300):
            d = {"a": [hf.asarray(array(1))], "b": hf.asarray(array(2))}
            Cycle(d["a"]), Cycle(d)
            try:
                result = f(d)
            except (KeyError, IndexError, ArgumentTypeError):
                continue
            np.testing.assert_array_equal(result["r"].numpy(), array(1) + array(2))
    finally:
        gc.set_threshold(*threshold)


def test_threads_call_at_once():
    f = hf.function(lambda d: {"sum": d["x"] + d["parts"][0], "x": d["x"]})
    errors = []

    def work(k):
        try:
            for i in range(1500):
                d = {"x": tensor(k) if i % 3 else array(k), "parts": [array(i)]}
                result = f(d)
                np.testing.assert_array_equal(result["sum"].numpy(), array(k) + array(i))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_nothing_leaks():
    v, x, a, strided, text = hf.Variable(array()), tensor(), array(), np.arange(6, dtype=np.float32)[::2], "".join("ab")
    d = {"x": x, "list": [a, strided, 1.5, text, None], "v": v, "pair": Pair(a, Batch(x)), "o": OrderedDict(k=x)}
    f = hf.function(
        lambda d, n=None: {"x": d["x"], "a": d["list"][0], "sum": Batch(d["x"] + d["v"] + d["list"][1]), "p": d["pair"]}
    )
    watched = [v, x, a, strided, text, d, d["list"], d["pair"], d["o"], Batch, Pair, None, f, "x", 1.5, x._array]
    other = {"x": x, "list": [a, strided, 1.5, text, 3], "v": v}

    def calls(count):
        for _ in range(count):
            f(d), f(d, n=None)
        for _ in range(count // 100):
            with pytest.raises(KeyError):
                f(other)

    calls(100)
    collect_all()
    before, live = [sys.getrefcount(o) for o in watched], memory_pool.stats().live
    native = native_calls(f)
    calls(100_000 // 2)
    collect_all()
    assert native_calls(f) - native == 100_000
    after = [sys.getrefcount(o) for o in watched]
    assert [b - a for a, b in zip(before, after) if abs(b - a) > 20] == [] and memory_pool.stats().live <= live


def test_defaults_and_arguments_die_with_the_function():
    class Thing:
        pass

    thing, weights = Thing(), tensor()
    f = hf.function(lambda d, w=weights, t=thing: d["x"] + w)
    for _ in range(3):
        f({"x": tensor(), "thing": thing, "list": [Color.RED]})
    gone = [weakref.ref(thing), weakref.ref(weights)]
    del f, thing, weights
    collect_all()
    assert [reference() for reference in gone] == [None, None]


# Under tapes.


def taped(f, *args, watched, **kwargs):
    with hf.GradientTape() as tape:
        tape.watch(watched)
        result = f(*args, **kwargs)
        loss = hf.sum(result * result)
    return result.numpy(), [g if g is None else g.numpy() for g in tape.gradient(loss, watched)]


def test_calls_under_tapes():
    v = hf.Variable(array(2))

    def body(d, scale=2.0):
        return d["x"] * (d["list"][0] * v) * scale + d["y"]

    f = hf.function(body)
    for k in range(6):
        x, y = tensor(k), hf.asarray(np.arange(6, dtype=np.float32)[::2])
        # An array of the caller, and one tensor in two places: each sees the derivatives of both.
        for d in ({"x": x, "list": [y], "y": array(k)}, {"x": x, "list": [x], "y": y}):
            watched = [x, y, v]
            expected = taped(body, d, watched=watched)
            for scale in ({}, {"scale": 3.0}, {"scale": 2.0}):
                value, gradients = taped(f, d, watched=watched, **scale)
                if scale.get("scale", 2.0) == 2.0:
                    np.testing.assert_array_equal(value, expected[0])
                    assert all(same(np.asarray(a), np.asarray(b)) for a, b in zip(gradients, expected[1]))
                else:
                    assert not np.array_equal(value, expected[0])
    assert sum(variant.hits for variant in f._cache.variants()) > 20


def test_guards_hold_under_tapes_too():
    holder = Holder(2.0)
    f = hf.function(lambda x: x * holder.scale)
    x = tensor()
    for scale in (2.0, 3.0, 2.0, 4.0):
        holder.scale = scale
        for _ in range(3):
            with hf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            np.testing.assert_array_equal(tape.gradient(y, x).numpy(), np.full(3, scale, np.float32))
    assert len(f.signatures()) == 3


def test_arguments_and_results_are_the_same_values_to_a_tape():
    f = hf.function(lambda d: {"x": d["x"], "y": d["x"] * 2.0})
    for _ in range(4):
        x = tensor(1)
        with hf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            d = f({"x": x})
            assert d["x"] is x
            z = hf.sum(d["x"] * d["y"])
        np.testing.assert_array_equal(tape.gradient(z, x).numpy(), 4 * array(1))
        np.testing.assert_array_equal(tape.gradient(z, d["y"]).numpy(), array(1))


def test_open_extents_under_tapes():
    f = hf.function(lambda x, y: hf.sum(x * y), input_signature=[hf.TensorSpec([None]), hf.TensorSpec([None])])
    for n in (3, 4, 5, 1, 4, 3):
        x, y = hf.ones(n), hf.ones(n) * 2.0
        for pair in ((x, y), (x, x), (x, y)):
            with hf.GradientTape() as tape:
                tape.watch(x)
                z = f(*pair)
            np.testing.assert_array_equal(tape.gradient(z, x).numpy(), np.full(n, 2.0, np.float32))


def test_checks_that_fail_under_tapes():
    f = hf.function(lambda x, i: hf.take(x, i) * 2.0)
    x = tensor()
    for _ in range(4):
        with hf.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(IndexError):
                f(x, hf.asarray([7]))
            y = f(x, hf.asarray([2]))
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [0, 0, 2])


def test_nothing_leaks_under_tapes():
    x, d, v = tensor(1), {"x": array()}, hf.Variable(array())
    f = hf.function(lambda x, d: hf.sum(x * d["x"] * v))

    def calls(count):
        for _ in range(count):
            with hf.GradientTape() as tape:
                tape.watch(x)
                y = f(x, d)
            tape.gradient(y, [x, v])

    watched = [x, x._array, d, d["x"], v, v._tensor, f, None]
    calls(50)
    collect_all()
    before, live = [sys.getrefcount(o) for o in watched], memory_pool.stats().live
    calls(3000)
    collect_all()
    assert all(abs(sys.getrefcount(o) - n) < 20 for o, n in zip(watched, before)) and memory_pool.stats().live <= live
