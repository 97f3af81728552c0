"""The guard program: native code and Python agree on every step, whatever happens to the objects between calls."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import random
import subprocess
import sys
import threading
import types
import weakref
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hybridflow import errors
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.tensor import wrap
from hybridflow.runtime import cpu
from hybridflow.runtime.calls import entry
from hybridflow.runtime.calls.entry import Dispatcher
from hybridflow.runtime.calls.guard_program import GuardProgram
from hybridflow.runtime.calls.guard_steps import CHECK, READ, GuardStep, first_failing, holds
from hybridflow.runtime.calls.native_call import NativeCall, TensorArg
from tests.support.garbage import collect_all
from tests.support.runtime_programs import plus_one

X = wrap(np.ones(3, np.float32))
EXECUTABLE = []

pytestmark = pytest.mark.usefixtures("loaded")


@pytest.fixture(scope="module")
def loaded(native):
    EXECUTABLE.append(cpu.load(plus_one()))


def _sample_function() -> None: ...


def _make(held):
    return lambda a=1, *, b=2: held


_with_all = _make([])


class Guarded(Dispatcher):
    __slots__ = ("__weakref__",)

    def __init__(self, *steps):
        arguments = [TensorArg(np.dtype("f4"), (Dim("n"),), 0)]
        self._dispatch = (NativeCall(EXECUTABLE[0], arguments, guards=GuardProgram(steps)),)

    def _call_slow(self, x):
        return None


def fits(function):
    """Whether native code answers, and owns no reference afterwards."""
    result = function(X) is not None
    assert ctypes.c_int64.from_address(entry.enable()["owned_references"]).value == 0
    return result


def agree(*steps):
    """Whether the steps pass, in native code and in Python."""
    native = fits(Guarded(*steps))
    assert native == holds(steps), (steps, native, first_failing(steps))
    return native


class Plain:
    shared = "of the class"

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def run(self):
        return 1

    @property
    def computed(self):
        return self.own

    @staticmethod
    def static():
        return 2

    @classmethod
    def of_class(cls):
        return 3


class Derived(Plain):
    def run(self):
        return super().run()


class Slotted:
    __slots__ = ("__weakref__", "own")


class Hooked(Plain):
    def __getattr__(self, name):
        return name


class Odd(Plain):
    __slots__ = ()

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class Shadowing(Plain):
    __dict__ = {"own": "not the real one"}


class Meta(type):
    answer = 42

    def made(cls):
        return cls


class WithMeta(metaclass=Meta):
    pass


class Dict(dict):
    def __missing__(self, key):
        return key

    def __getitem__(self, key):
        raise RuntimeError("not asked")


class List(list):
    def __getitem__(self, index):
        raise RuntimeError("not asked")


class Text(str):
    pass


class Key:
    """A key whose hash and comparison are Python code."""

    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return isinstance(other, Key) and self.name == other.name


Pair = namedtuple("Pair", "a b")


def root(value):
    return GuardStep("root", operand=value)


# What each read gives.

FUNCTION = Plain.__dict__["run"]
ITEMS = {"a": 1, 2: "b", (3, 4): "c", Key("k"): "d", 2.5: None}


@pytest.mark.parametrize(
    "owner, read, operand, value",
    [
        (ITEMS, "item", "a", 1),
        (ITEMS, "item", 2, "b"),
        (ITEMS, "item", 2.0, "b"),
        (ITEMS, "item", (3, 4), "c"),
        (ITEMS, "item", Key("k"), "d"),
        (ITEMS, "item", 2.5, None),
        (Dict(a="own"), "item", "a", "own"),
        (OrderedDict(a=Plain), "item", "a", Plain),
        (defaultdict(list, a=Plain), "item", "a", Plain),
        ([5, "x"], "index", 1, "x"),
        ([5, "x"], "index", -2, 5),
        ((5, "x"), "index", 0, 5),
        (Pair("p", "q"), "index", 1, "q"),
        (List([5, "x"]), "index", -1, "x"),
        (types.CellType(Plain), "cell", None, Plain),
        (_sample_function, "code", None, _sample_function.__code__),
        (_sample_function, "defaults", None, None),
        (_with_all, "defaults", None, _with_all.__defaults__),
        (_with_all, "keyword defaults", None, _with_all.__kwdefaults__),
        (_with_all, "closure", None, _with_all.__closure__),
        (Plain(), "class", None, Plain),
        (Plain, "class", None, type),
        (Plain(own="o"), "attribute", "own", "o"),
        (Plain(own="o"), "attribute", "computed", "o"),
        (Plain(), "attribute", "shared", Plain.shared),
        (Hooked(), "attribute", "anything", "anything"),
        (types, "attribute", "CellType", types.CellType),
        (WithMeta, "attribute", "answer", 42),
        (Derived, "lookup", "shared", Plain.shared),
        (Plain, "lookup", "computed", Plain.__dict__["computed"]),
        (Plain, "lookup", "static", Plain.__dict__["static"]),
        (int, "lookup", "bit_length", int.__dict__["bit_length"]),
        (Derived, "mro", None, Derived.__mro__),
        (WithMeta, "mro", None, WithMeta.__mro__),
        (int, "mro", None, int.__mro__),
        (Plain(), "method", "run", FUNCTION),
        (Derived(), "method", "run", Derived.__dict__["run"]),
        ("text", "method", "upper", str.upper),
        ([], "method", "append", list.append),
        ([], "method", "__len__", list.__len__),
    ],
)
def test_reads(owner, read, operand, value):
    assert agree(root(owner), GuardStep(read, 0, operand, "is", value))
    assert not agree(root(owner), GuardStep(read, 0, operand, "is", object()))
    assert not agree(root(owner), GuardStep(read, 0, operand, "absent"))
    assert agree(root(owner), GuardStep(read, 0, operand), GuardStep("slot", 1, None, "is", value))
    assert agree(root(owner), GuardStep(read, 0, operand), GuardStep("slot", 1, None, "type", type(value)))


@pytest.mark.parametrize(
    "owner, read, operand",
    [
        ({}, "item", "a"),
        (Dict(), "item", "a"),
        (defaultdict(list), "item", "a"),
        ([1], "index", 1),
        ([1], "index", -2),
        ([], "index", 0),
        ((), "index", -1),
        (types.CellType(), "cell", None),
        (Plain(), "attribute", "own"),
        (Plain(), "attribute", "computed"),
        (Slotted(), "attribute", "own"),
        (Slotted(), "member", Slotted.__dict__["own"]),
        (Plain, "lookup", "own"),
        (WithMeta, "lookup", "answer"),
    ],
)
def test_what_is_not_there_is_absent(owner, read, operand):
    assert agree(root(owner), GuardStep(read, 0, operand, "absent"))
    assert not agree(root(owner), GuardStep(read, 0, operand))
    assert not agree(root(owner), GuardStep(read, 0, operand, "is", None))
    assert agree(root(owner), GuardStep(read, 0, operand, "absent"), GuardStep("slot", 1, None, "absent"))
    assert not agree(root(owner), GuardStep(read, 0, operand, "absent"), GuardStep("class", 1, None))
    assert not agree(root(owner), GuardStep(read, 0, operand, "absent"), GuardStep("item", 1, "a", "absent"))


@pytest.mark.parametrize(
    "owner, read, operand",
    [
        ([1], "item", 0),
        (None, "item", "a"),
        ({0: 1}, "index", 0),
        ("text", "index", 0),
        (5, "index", 0),
        ([1], "cell", None),
        (len, "code", None),
        (len, "defaults", None),
        (Plain().run, "closure", None),
        (Plain, "keyword defaults", None),
        (Plain(), "lookup", "run"),
        (Plain(), "mro", None),
        (None, "mro", None),
        (Plain, "own", None),
        (int, "own", None),
        (5, "own", None),
        (5, "member", Slotted.__dict__["own"]),
        (type("Below", (Slotted,), {})(), "member", Slotted.__dict__["own"]),
        (Slotted(), "own", None),
        (Plain(), "method", "shared"),
        (Plain(), "method", "static"),
        (Plain(), "method", "of_class"),
        (Plain(), "method", "computed"),
        (Plain(), "method", "nothing"),
        (Plain(run=len), "method", "run"),
        (Hooked(), "method", "run"),
        (Odd(), "method", "run"),
        (Plain, "method", "run"),
        (WithMeta, "method", "made"),
        (types, "method", "CellType"),
        (Plain().run, "method", "__call__"),
    ],
)
def test_what_cannot_be_read_fails(owner, read, operand):
    assert not agree(root(owner), GuardStep(read, 0, operand))
    assert not agree(root(owner), GuardStep(read, 0, operand, "absent"))


def test_the_dict_of_an_instance():
    for owner in (Plain(a=1), Derived(), types.SimpleNamespace(a=1), types, Shadowing()):
        real = vars(owner) if type(owner) is not Shadowing else None
        if real is not None:
            assert agree(root(owner), GuardStep("own", 0, None, "is", real))
        for name in ("a", "own"):
            assert agree(root(owner), GuardStep("own", 0), GuardStep("item", 1, name)) != agree(
                root(owner), GuardStep("own", 0), GuardStep("item", 1, name, "absent")
            )
    shadowing = Shadowing()
    shadowing.own = 5
    assert agree(root(shadowing), GuardStep("own", 0), GuardStep("item", 1, "own", "number", 5))


# What each check says.

NAN, BIG = float("nan"), 10**40


@pytest.mark.parametrize(
    "value, check, expected, passes",
    [
        (2.5, "number", float("2.5"), True),
        (0.0, "number", -0.0, False),
        (NAN, "number", NAN, True),
        (float("nan"), "number", NAN, True),
        (2.0, "number", 2, False),
        (2, "number", 2.0, False),
        (True, "number", 1, False),
        (BIG, "number", int(str(BIG)), True),
        (BIG, "number", BIG + 1, False),
        (-BIG, "number", BIG, False),
        (np.float64(2.5), "number", 2.5, False),
        ("text", "text", "".join(["te", "xt"]), True),
        ("text", "text", "texT", False),
        (b"text", "text", "text", False),
        (b"text", "text", bytes(bytearray(b"text")), True),
        (Text("text"), "text", "text", False),
        ([1, 2], "length", 2, True),
        ([1, 2], "length", 3, False),
        ((1, 2), "length", 2, True),
        ({1: 2}, "length", 1, True),
        ({1, 2}, "length", 2, True),
        (frozenset(), "length", 0, True),
        ("näh", "length", 3, True),
        (b"abc", "length", 3, False),
        (List([1]), "length", 1, False),
        (Pair(1, 2), "length", 2, False),
        ((Plain, int), "referents", (weakref.ref(Plain), weakref.ref(int)), True),
        ((Plain, int), "referents", (weakref.ref(int), weakref.ref(Plain)), False),
        ((Plain, int), "referents", (weakref.ref(Plain),), False),
        ((Plain,), "referents", (weakref.ref(Plain), weakref.ref(int)), False),
        ((Plain, None), "referents", (weakref.ref(Plain), weakref.ref(Plain())), False),
        ((), "referents", (), True),
        ([], "referents", (), False),
        (Pair(Plain, int), "referents", (weakref.ref(Plain), weakref.ref(int)), False),
        (True, "type", bool, True),
        (True, "type", int, False),
        (Derived(), "type", Plain, False),
        (Plain, "type", type, True),
        ([], "call", lambda v: v == [], True),
        ([], "call", lambda v: v, False),
        ([], "call", lambda v: 1 // len(v), False),
        ([], "call", lambda v: np.ones(2), False),  # whose truth is an error
        (None, "is", None, True),
    ],
)
def test_checks(value, check, expected, passes):
    assert agree(GuardStep("root", -1, value, check, expected)) == passes
    assert agree(root([value]), GuardStep("index", 0, 0, check, expected)) == passes
    assert agree(root(Plain(own=value)), GuardStep("attribute", 0, "computed", check, expected)) == passes
    assert agree(root({}), GuardStep("item", 0, 1, "absent"), GuardStep("slot", 1, None, check, expected)) is False


def test_same():
    a, b = [], []
    owner = {"a": a, "b": b, "c": a}
    steps = [root(owner), *(GuardStep("item", 0, key) for key in "abc")]
    assert agree(*steps, GuardStep("slot", 3, None, "same", 1))
    assert not agree(*steps, GuardStep("slot", 3, None, "same", 2))
    assert not agree(root(owner), GuardStep("item", 0, "x", "absent"), GuardStep("slot", 0, None, "same", 1))


def test_weak_references():
    owner, expected = Plain(), Plain()
    owner.own = expected
    weak_owner, weak_expected = weakref.ref(owner), weakref.ref(expected)
    f = Guarded(GuardStep("weak", -1, weak_owner), GuardStep("attribute", 0, "own", "weak", weak_expected))
    assert fits(f)
    owner.own = None
    assert not fits(f)
    owner.own = expected
    assert fits(f)
    del owner.own, expected
    assert weak_expected() is None and not fits(f)
    owner.own = None  # as a dead reference is
    assert not fits(f) and not holds(f._dispatch[0].guards.steps)
    del owner
    assert weak_owner() is None and not fits(f)
    assert agree(GuardStep("weak", -1, weak_owner, "absent"))


def test_a_dying_object_is_dead():
    """Of a long chain that goes, the interpreter keeps some objects for later: without references, but with weak ones.
    Finalizers run meanwhile."""
    seen = []

    class Late:
        def __init__(self, reference):
            self.function = Guarded(GuardStep("weak", -1, reference))

        def __del__(self):
            seen.append(fits(self.function))

    class Link:
        __slots__ = ("__weakref__", "a_next", "b_late")  # cleared in this order

    first = None
    for _ in range(300):
        link = Link()
        link.a_next, link.b_late = first, Late(weakref.ref(first)) if first is not None else None
        assert first is None or fits(link.b_late.function)
        first = link
    del first, link
    collect_all()
    assert seen == [False] * 299


# Errors.


class Failing:
    error: BaseException = RuntimeError("no")

    @property
    def value(self):
        raise self.error

    def __hash__(self):
        if self.error is not None:
            raise self.error
        return 1

    def __bool__(self):
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("no"), AttributeError("no"), RecursionError("no"), StopIteration()])
def test_exceptions_make_a_guard_fail(error):
    owner = Failing()
    owner.error = None
    key = GuardStep("item", 0, owner)
    f = Guarded(root({owner: 1}), key)
    assert fits(f)
    owner.error = error
    assert not fits(f) and not holds(f._dispatch[0].guards.steps)
    assert not agree(root(owner), GuardStep("attribute", 0, "value"))
    assert agree(root(owner), GuardStep("attribute", 0, "value", "absent")) == isinstance(error, AttributeError)
    assert not agree(GuardStep("root", -1, owner, "call", bool))
    assert not agree(GuardStep("root", -1, owner, "call", lambda value: value))
    assert sys.exc_info() == (None, None, None)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_other_exceptions_reach_the_caller(error):
    owner = Failing()
    owner.error = None
    in_key = Guarded(root({owner: 1}), GuardStep("item", 0, owner))
    owner.error = error("stop")
    functions = [
        in_key,
        Guarded(root(owner), GuardStep("class", 0), GuardStep("attribute", 0, "value"), GuardStep("slot", 1)),
        Guarded(GuardStep("root", -1, owner, "call", bool)),
        Guarded(GuardStep("root", -1, owner, "call", lambda value: value)),
    ]
    for f in functions:
        with pytest.raises(error, match="stop"):
            fits(f)
        with pytest.raises(error, match="stop"):
            holds(f._dispatch[0].guards.steps)
        assert ctypes.c_int64.from_address(entry.enable()["owned_references"]).value == 0


@pytest.mark.parametrize(
    "steps",
    [
        [GuardStep("nonsense")],
        [GuardStep("root", check="nonsense")],
        [GuardStep("item", 0, "a")],
        [root({}), GuardStep("item", 1, "a")],
        [root({}), GuardStep("item", -1, "a")],
        [root({}), GuardStep("item", 0, [])],
        [GuardStep("weak", -1, Plain)],
        [root([]), GuardStep("index", 0, "0")],
        [root([]), GuardStep("index", 0, 1 << 70)],
        [root([]), GuardStep("attribute", 0, 5)],
        [root([]), GuardStep("member", 0, type.__dict__["__basicsize__"])],
        [root([]), GuardStep("lookup", 0, Text("name"))],
        [GuardStep("root", -1, [], "same", 0)],
        [GuardStep("root", -1, [], "type", 5)],
        [GuardStep("root", -1, [], "number", True)],
        [GuardStep("root", -1, [], "text", 5)],
        [GuardStep("root", -1, [], "length", -1)],
        [GuardStep("root", -1, [], "weak", Plain)],
        [GuardStep("root", -1, (), "referents", (Plain,))],
        [GuardStep("root", -1, (), "referents", [])],
        [GuardStep("root", -1, [], "call", 5)],
    ],
)
def test_steps_without_meaning_are_refused(steps):
    with pytest.raises(errors.ArgumentError, match="guards"):
        Guarded(*steps)


def test_any_number_of_steps():
    """Their values are on the heap, for threads with small stacks, too."""
    chain = [root([]), *(GuardStep("slot", k) for k in range(30_000))]
    found = []
    before = threading.stack_size(64 << 10)
    try:
        thread = threading.Thread(
            target=lambda: found.extend((agree(*chain), agree(*chain, GuardStep("slot", 29_999, None, "length", 1))))
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [True, False]


# Code that runs in between may drop anything.


class Treacherous:
    """Whose attribute drops what an earlier step found."""

    def __init__(self, owner):
        self.owner = owner

    @property
    def trap(self):
        self.owner.clear()
        collect_all()
        rubbish = [bytes(range(k % 200)) for k in range(200)]  # takes the memory that became free
        return len(rubbish)


class TreacherousKey(Key):
    __hash__ = Key.__hash__

    def __eq__(self, other):
        self.owner.clear()
        rubbish = [bytes(range(k % 200)) for k in range(200)]
        return bool(rubbish)


def test_a_property_drops_what_was_found():
    for key in ("attribute", "call"):
        owner = {"a": {"b": Plain(own=["x"])}}
        trap = Treacherous(owner)
        middle = (
            GuardStep("attribute", 1, "trap", "number", 200)
            if key == "attribute"
            else GuardStep("slot", 1, None, "call", lambda value: value.trap)
        )
        steps = [
            root(owner),
            root(trap),
            GuardStep("item", 0, "a"),
            middle,
            GuardStep("item", 2, "b"),
            GuardStep("attribute", 4, "own", "length", 1),
            GuardStep("index", 5, 0, "text", "x"),
        ]
        f = Guarded(*steps)
        assert fits(f) and not owner  # the objects lived as long as steps needed them
        assert not fits(f)


def test_a_key_drops_what_was_found():
    a, b = TreacherousKey("k"), TreacherousKey("k")
    owner = {"a": {"b": Plain()}}
    a.owner = b.owner = owner
    steps = [
        root(owner),
        root({a: 1}),
        GuardStep("item", 0, "a"),
        GuardStep("item", 1, b),
        GuardStep("item", 2, "b", "type", Plain),
    ]
    f = Guarded(*steps)
    assert fits(f) and not owner and not fits(f)


def test_the_value_of_a_predicate_outlives_its_owner():
    owner = {"a": [1, 2, 3]}
    kept = []

    def predicate(value):
        owner.clear()
        kept.append(list(value))
        return value == [1, 2, 3]

    assert fits(Guarded(root(owner), GuardStep("item", 0, "a", "call", predicate))) and kept == [[1, 2, 3]]


def test_a_guard_drops_its_own_signature():
    def predicate(value):
        f._dispatch = ()
        collect_all()
        return True

    f = Guarded(root({"a": 1}), GuardStep("item", 0, "a", "call", predicate), GuardStep("item", 0, "a", "number", 1))
    assert fits(f) and not fits(f)


def test_other_threads_change_what_is_read():
    owner = Plain(own={"a": [1]})
    stop = threading.Event()

    def change():
        while not stop.is_set():
            owner.own = {"a": [1], "b": object()}
            del owner.own["a"]

    def slow(value):
        return sum(range(50)) > 0

    thread = threading.Thread(target=change)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        f = Guarded(
            root(owner),
            GuardStep("attribute", 0, "own"),
            GuardStep("slot", 1, None, "call", slow),
            GuardStep("item", 1, "a"),
            GuardStep("slot", 3, None, "call", slow),
            GuardStep("index", 3, 0, "number", 1),
        )
        for _ in range(3000):
            f(X)
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    owner.own = {"a": [1]}
    assert fits(f), "what was read meanwhile left its mark"


# References.


def every_kind():
    """Steps of every read and check that pass, and a change that makes some of them fail."""
    target = Plain(a=1)
    owner = Plain(own=[1, "two", target], computed_too=5)
    slotted = Slotted()
    slotted.own = target
    mapping = {"o": owner, "f": 2.5, "i": BIG, "t": "text", "c": types.CellType(owner)}
    steps = [
        root(mapping),
        GuardStep("item", 0, "o", "type", Plain),
        GuardStep("weak", -1, weakref.ref(owner), "same", 1),
        GuardStep("slot", 1, None, "weak", weakref.ref(owner)),
        GuardStep("class", 1, None, "is", Plain),
        GuardStep("lookup", 4, "run", "is", FUNCTION),
        GuardStep("method", 1, "run", "same", 5),
        GuardStep("own", 1),
        GuardStep("item", 7, "own"),
        GuardStep("attribute", 1, "computed", "same", 8),
        GuardStep("slot", 9, None, "length", 3),
        GuardStep("index", 8, 1, "text", "two"),
        GuardStep("index", 8, 2, "is", target),
        GuardStep("item", 7, "run", "absent"),
        GuardStep("item", 0, "f", "number", float("2.5")),
        GuardStep("item", 0, "i", "number", int(str(BIG))),
        GuardStep("item", 0, "c"),
        GuardStep("cell", 16, None, "same", 1),
        GuardStep("slot", 9, None, "call", lambda value: value[1] == "two"),
        GuardStep("attribute", 1, "nothing", "absent"),
        GuardStep("code", 5, None, "is", FUNCTION.__code__),
        root(_with_all),
        GuardStep("defaults", 21, None, "type", tuple),
        GuardStep("keyword defaults", 21, None, "type", dict),
        GuardStep("closure", 21, None, "length", 1),
        root(slotted),
        GuardStep("member", 25, Slotted.__dict__["own"], "is", target),
        GuardStep("mro", 4, None, "referents", tuple(map(weakref.ref, Plain.__mro__))),
    ]
    return steps, mapping, owner, target


def test_every_kind_passes_and_every_exit_gives_back():
    steps, mapping, owner, target = every_kind()
    assert {step.read for step in steps} == set(READ) and {step.check for step in steps} == set(CHECK)
    assert agree(*steps)
    functions = [Guarded(*steps)]
    for k, step in enumerate(steps):  # each as the one that fails
        wrong = step._replace(check="any" if step.check == "absent" else "absent", expected=None)
        functions.append(Guarded(*steps[:k], wrong, *steps[k + 1 :]))
        assert first_failing(functions[-1]._dispatch[0].guards.steps) == k
        raising = GuardStep("slot", 0, None, "call", exec)  # of a dict: a TypeError
        functions.append(Guarded(*steps[:k], raising) if k else Guarded(GuardStep("root", -1, {}, "call", exec)))
    watched = [
        *(mapping, owner, target, owner.own, Plain, vars(owner), FUNCTION, mapping["c"], mapping["f"], None, exec),
        *(step.operand for step in steps),
        *(step.expected for step in steps),
    ]

    def calls():
        assert fits(functions[0])
        for f in functions[1:]:
            assert not fits(f)

    calls()
    collect_all()
    before = list(map(sys.getrefcount, watched))
    for _ in range(100):
        calls()
    collect_all()
    after = list(map(sys.getrefcount, watched))
    assert all(abs(b - a) <= 5 for a, b in zip(before, after)), list(zip(before, after))


def test_what_guards_hold_goes_with_them():
    steps, mapping, owner, target = every_kind()
    f = Guarded(*steps)
    assert fits(f)
    signature, owner_ref, target_ref = weakref.ref(f._dispatch[0]), weakref.ref(owner), weakref.ref(target)
    del steps, mapping, owner, target, f
    collect_all()
    assert signature() is None and owner_ref() is None and target_ref() is None


def test_without_the_private_functions_of_the_interpreter():
    """Where the process does not offer them, native code asks Python."""
    program = """
from hybridflow.runtime.native import object_layout
object_layout.finds_methods = object_layout.finds_in_classes = lambda: False
import pytest, sys
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", *sys.argv[1:]]))
"""
    chosen = [f"{__file__}::{name}" for name in IN_PYTHON]
    done = subprocess.run([sys.executable, "-c", program, *chosen], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


IN_PYTHON = [
    "test_reads",
    "test_what_is_not_there_is_absent",
    "test_what_cannot_be_read_fails",
    "test_every_kind_passes_and_every_exit_gives_back",
]


# Random graphs of objects, random programs, random changes.

NAMES = ["a", "b", "run", "own"]
SCALARS = [None, True, 0, 1, BIG, 0.0, -0.0, NAN, "a", "text", b"a", len, Plain, int]


class World:
    """Objects that refer to each other, and changes of them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.objects = [
            *({}, Dict(), OrderedDict(), [], List(), Plain(), Derived(), Hooked(), Odd(), WithMeta()),
            *(types.CellType(), Slotted(), types.SimpleNamespace(), type("Made", (Plain,), {}), (1, 2), Pair("a", [])),
        ]
        for _ in range(40):
            self.change()

    def value(self):
        chosen = self.random.choice([*self.objects, *SCALARS])
        return copy.copy(chosen) if type(chosen) in (str, float, list) and self.random.random() < 0.5 else chosen

    def change(self):
        chosen, name, value = self.random.choice(self.objects), self.random.choice(NAMES), self.value()
        remove = self.random.random() < 0.4
        try:
            if isinstance(chosen, dict):
                dict.pop(chosen, name, None) if remove else dict.__setitem__(chosen, name, value)
            elif isinstance(chosen, list):
                (list.pop if remove and len(chosen) else list.append)(
                    chosen, *([] if remove and len(chosen) else [value])
                )
            elif isinstance(chosen, types.CellType):
                if remove:
                    del chosen.cell_contents
                else:
                    chosen.cell_contents = value
            elif isinstance(chosen, tuple):
                k = self.random.randrange(len(self.objects))
                if isinstance(self.objects[k], tuple):
                    self.objects[k] = (value, *chosen[:2])
            elif remove:
                delattr(chosen, name)
            else:
                setattr(chosen, name, value)
        except (AttributeError, TypeError):
            pass

    def steps(self, count):
        """A program whose steps mostly pass now."""
        steps = []
        for _ in range(count):
            for _ in range(30):  # most combinations mean nothing
                candidates = self.candidates(steps)
                passing = [c for c in candidates if first_failing([*steps, c]) is None]
                if passing or self.random.random() < 0.002:
                    break
            steps.append(self.random.choice(passing or candidates))
        return steps

    def candidates(self, steps):
        """A step that reads something, with every check."""
        read = self.random.choice([*READ]) if steps else "root"
        owner = -1 if read in ("root", "weak") else self.random.randrange(len(steps))
        step = GuardStep(read, owner, self.operand(read))
        if read == "weak" and step.operand is None:
            step = GuardStep("root", -1, self.value())
        return [step._replace(check=check, expected=expected) for check, expected in self.expectations(steps, step)]

    def operand(self, read):
        if read == "weak":
            try:
                return weakref.ref(self.random.choice(self.objects))
            except TypeError:
                return None
        return {
            "root": self.random.choice(self.objects),
            "item": self.random.choice([*NAMES, 1, 2.5, Key("k"), (1, "a")]),
            "index": self.random.randrange(-4, 4),
            "attribute": self.random.choice([*NAMES, "shared", "computed", "upper"]),
            "member": Slotted.__dict__["own"],
            "lookup": self.random.choice([*NAMES, "shared", "computed"]),
            "method": self.random.choice([*NAMES, "append", "upper", "computed"]),
        }.get(read)

    def expectations(self, steps, step):
        """Every check, with an expected value that fits what is there."""
        seen = []
        first_failing([*steps, step._replace(check="call", expected=lambda value: seen.append(value) or True)])
        value = seen[0] if seen else self.value()
        yield "any", None
        yield "absent", None
        yield "is", value
        yield "type", type(value)
        if type(value) in (int, float):
            yield "number", type(value)(repr(value))
        if type(value) in (str, bytes):
            yield "text", value[:1] + value[1:]
        if type(value) in (list, tuple, dict, str):
            yield "length", len(value)
        yield "call", lambda found: found is value or found == []
        if type(value) is tuple and value and all(isinstance(each, type) for each in value):
            yield "referents", tuple(map(weakref.ref, value))
        if steps:
            yield "same", self.random.randrange(len(steps))
        with contextlib.suppress(TypeError):
            yield "weak", weakref.ref(value)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_random_programs(seed, count):
    world = World(seed)
    functions = [Guarded(*world.steps(count)) for _ in range(3)]
    for _ in range(12):
        for f in functions:
            steps = f._dispatch[0].guards.steps
            assert fits(f) == holds(steps), (first_failing(steps), steps)
        for _ in range(3):
            world.change()
