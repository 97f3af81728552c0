"""What tells one argument from another: every two values that a body can tell apart are traced apart, and no others."""

import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import gc
import operator
import pathlib
import pickle
import struct
import time
import types
import zoneinfo
from collections import namedtuple

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentTypeError


class Bits(enum.IntFlag):
    R = 1
    W = 2


class Strict(enum.Flag):
    R = 1
    W = 2


class Mode(enum.Enum):
    TRAIN = 1
    EVAL = [2]


def same_name(value):
    return enum.Enum("Mode", {"TRAIN": value})


class Level(enum.IntEnum):
    LOW = 1


Count = type("Count", (int,), {})
Ratio = type("Ratio", (float,), {})
Name = type("Name", (str,), {"__slots__": (), "__eq__": lambda a, b: True, "__hash__": lambda a: 0})
Pair = type("Pair", (tuple,), {"__eq__": lambda a, b: True, "__hash__": lambda a: 0})
Raw = type("Raw", (bytes,), {})
Held = type("Held", (frozenset,), {})
Config = namedtuple("Config", "rate size")


def nan(payload):
    return struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 | payload))[0]


def ordered(*elements):
    return frozenset(elements)


zone = datetime.timezone(datetime.timedelta(hours=1))

# Within each list every value is another, though many are equal to Python.
DIFFERENT = {
    "numbers": [1, True, 1.0, 1 + 0j, Count(1), Ratio(1.0), Level.LOW, Bits.R, fractions.Fraction(1)],
    "more numbers": [decimal.Decimal(1), decimal.Decimal("1.0"), decimal.Decimal("-1"), 2, Count(2), Ratio(2.0)],
    "zeros": [0.0, -0.0, 0, False, 0j, complex(-0.0, 0.0), complex(0.0, -0.0), Ratio(-0.0), Ratio(0.0)],
    "decimal zeros": [decimal.Decimal("0"), decimal.Decimal("-0"), decimal.Decimal("0.0"), decimal.Decimal("NaN1")],
    "nans": [nan(0), nan(1), complex(nan(0), 0), complex(nan(1), 0), Ratio(nan(0)), decimal.Decimal("NaN")],
    "texts": ["a", b"a", Name("a"), Raw(b"a"), Name("b"), Raw(b"b"), np.dtype("i4"), np.dtype("i8"), np.dtype(">i4")],
    "records": [np.dtype([("a", "i4")]), np.dtype([("b", "i4")]), np.dtype([("a", "u4")]), np.dtype("V4")],
    "flags": [Bits(0), Bits(4), Bits(8), Bits.R, Bits.R | Bits.W, Bits.R | 4, Strict(0), Strict.R, Strict.R | Strict.W],
    "members": [Mode.TRAIN, Mode.EVAL, same_name(1).TRAIN, same_name(1).TRAIN],
    "fractions": [fractions.Fraction(1, 2), fractions.Fraction(1, 3), decimal.Decimal("0.5"), 0.5],
    "days": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 1)],
    "times": [
        datetime.time(1),
        datetime.time(1, fold=1),
        datetime.time(1, tzinfo=zone),
        datetime.datetime(2020, 1, 1, 1),
        datetime.datetime(2020, 1, 1, 1, fold=1),
        datetime.datetime(2020, 1, 1, 1, tzinfo=zone),
        datetime.datetime(2020, 1, 1, 0, tzinfo=datetime.UTC),
        datetime.datetime(2020, 1, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        datetime.timedelta(1),
        datetime.timedelta(2),
        zone,
        time.gmtime(0),
        time.gmtime(1),
    ],
    "slices": [slice(1), slice(2), slice(True), slice(1.0), slice(0, 1), slice(0, 1, 1), slice(np.int64(1))],
    "NumPy slices": [slice(np.int64(2)), slice(np.int64(3)), slice(np.int32(3)), slice(3)],
    "ranges": [range(1), range(2), range(0, 2, 3), range(0)],
    "sets": [frozenset(), ordered(1), ordered(True), ordered(1.0), ordered(1, 2), Held([1]), ordered(ordered(1))],
    "set orders": [ordered(0, 8), ordered(8, 0)],
    "tuples": [Pair((1, 2)), Pair((1, True)), Pair((2, 2)), Pair((1, (2,))), Pair()],
    "named tuples": [Config(1, 2), Config(1, True), Config(2, 2), (1, 2), [1, 2], types.SimpleNamespace],
    "nothings": [None, ..., NotImplemented, False],
    "getters": [operator.itemgetter(0), operator.itemgetter(1), operator.itemgetter(0, 1), operator.attrgetter("T")],
    "paths": [pathlib.PurePosixPath("a"), pathlib.PurePosixPath("b"), pathlib.PureWindowsPath("a"), pathlib.Path("a")],
    "classes": [int, float, Count, Config],
}


@pytest.mark.parametrize("kind", DIFFERENT)
def test_values_that_differ_have_traces_of_their_own(kind):
    values = DIFFERENT[kind]
    f = hf.function(lambda x, value: x)
    concrete = [f.get_concrete_function(hf.ones(1), value) for value in values]
    assert len(set(concrete)) == len(f.concrete_functions()) == len(values)
    assert [f.get_concrete_function(hf.ones(1), value) for value in values] == concrete


def test_native_calls_tell_values_apart_too():
    f = hf.function(lambda x, value: x + len(repr(value)))
    values = [0.0, -0.0, 10, 10.0, True, "aaa", b"aaaa", None, slice(3), range(9), ordered(1), 1j, Bits.R, Count(777)]
    for value in values * 3:
        assert f(hf.ones(1), value).item() == 1 + len(repr(value))


@pytest.mark.parametrize("kind", sorted(set(DIFFERENT) - {"members", "getters", "classes", "set orders"}))
def test_equal_values_share_a_trace_whatever_object_they_are(kind):
    f = hf.function(lambda x, value: x)
    values = [value for value in DIFFERENT[kind] if not isinstance(value, (np.dtype, type))]
    for value in values:
        f(hf.ones(1), value)
    for value in values:
        f(hf.ones(1), copy.deepcopy(value))
        try:
            again = pickle.loads(pickle.dumps(value))
        except (pickle.PicklingError, AttributeError, TypeError):
            continue
        f(hf.ones(1), again)
    assert len(f.concrete_functions()) == len(values)


def test_numpy_scalars_are_tensors():
    f = hf.function(lambda x, n: x * n)
    assert [f(hf.ones(1), np.float32(k)).item() for k in range(3)] == [0.0, 1.0, 2.0]
    assert len(f.concrete_functions()) == 1


def test_a_slice_with_a_tensor_for_a_bound():
    f = hf.function(lambda x, part: x[part])
    x = hf.arange(5)
    for stop in (1, 3, 1, 4):
        bound = hf.asarray(stop)
        assert f(x, slice(bound)).tolist() == x[slice(bound)].tolist()
        del bound
        gc.collect()
    with pytest.raises(ArgumentTypeError, match="array for a bound"):
        f(x, slice(np.array(3)))


def test_flags_and_slices_mean_what_they_say_inside():
    f = hf.function(lambda x, flags: x * int(flags))
    assert [f(hf.ones(1), Bits(k)).item() for k in (0, 4, 8, 4, 0)] == [0.0, 4.0, 8.0, 4.0, 0.0]
    g = hf.function(lambda x, part: x[part])
    assert [g(hf.arange(4), slice(np.int64(k))).tolist() for k in (1, 2, 1)] == [[0], [0, 1], [0]]


class Slotted:
    __slots__ = ("k",)


@dataclasses.dataclass
class Point:
    x: int


def generator():
    yield 1


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (bytearray(b"a"), "changes"),
        (memoryview(b"a"), None),  # an array
        (types.MappingProxyType({}), "changes|parts"),
        ({1: 2}.values(), "parts"),
        ({1}, "changes"),
        (Point, None),
        (iter([1]), "parts"),
        (Slotted(), "__weakref__"),
        (Pair([np.ones(2)]), "parts"),
        (datetime.datetime(1, 1, 1, tzinfo=type("Zone", (datetime.tzinfo,), {})()), "parts"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_safe_key_is_refused_with_advice_that_helps(value, says):
    f = hf.function(lambda x, value: x)
    if says is None:
        f(hf.ones(1), value)
        return
    with pytest.raises(ArgumentTypeError, match=says) as caught:
        f(hf.ones(1), value)
    assert "value" in str(caught.value)
    assert ("__weakref__" in str(caught.value)) == (says == "__weakref__")


def test_a_subclass_with_attributes_is_not_told_by_its_value():
    count = Count(3)
    count.unit = "m"
    f = hf.function(lambda x, n: x)
    with pytest.raises(ArgumentTypeError, match="parts"):
        f(hf.ones(1), count)
