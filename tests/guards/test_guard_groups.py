"""Groups of guards: passed over while nothing has changed, and never when something has, however it was done."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import types
import weakref

import pytest
from hypothesis import given, settings, strategies as st

from hybridflow.runtime.calls import guard_program
from hybridflow.runtime.calls.guard_program import GuardProgram
from hybridflow.runtime.calls.guard_steps import GuardStep, holds
from hybridflow.runtime.native import version_tags
from tests.guards.test_guard_steps import Derived, Guarded, Plain, World, X, agree, fits, loaded, root
from tests.support.garbage import collect_all

assert loaded

pytestmark = [
    pytest.mark.usefixtures("loaded"),
    pytest.mark.skipif(not version_tags.tracks_changes(), reason="no version tags to rely on"),
]


class Asked:
    """Whether a dict has these keys; counts how often it was asked, which it is not while a group is passed over."""

    is_of_keys = True

    def __init__(self, keys):
        self.keys, self.count = list(keys), 0

    def __call__(self, value):
        self.count += 1
        return list(value) == self.keys


def of_instance(owner, *names, asked=None):
    """Steps for attributes of an instance's own, and a method."""
    steps = [root(owner), GuardStep("class", 0, None, "is", type(owner)), GuardStep("own", 0, None, "type", dict)]
    steps += [GuardStep("item", 2, name, "is", vars(owner)[name]) for name in names]
    steps += [
        GuardStep("lookup", 1, "shared", "is", type(owner).shared),
        GuardStep("method", 0, "run", "is", type(owner).run),
    ]
    if asked is not None:
        steps.append(GuardStep("slot", 2, None, "call", asked))
    return steps


def made(*names):
    class Base(Plain):
        pass

    class Own(Base):
        def run(self):
            return 5

    return Own(**{name: object() for name in names})


def test_a_group_is_passed_over():
    owner = made("a", "b")
    asked = Asked("ab")
    f = Guarded(*of_instance(owner, "a", "b", asked=asked))
    assert f._dispatch[0].guards.checks == 2
    for _ in range(3):  # a split dict is combined first
        assert fits(f)
    count = asked.count
    for _ in range(5):
        assert fits(f)
    assert asked.count == count
    owner.a = owner.a  # the very same
    owner.c = 1
    assert not fits(f)
    del owner.c
    assert fits(f) and asked.count > count
    before = vars(owner)
    assert list(before) == ["a", "b"] and vars(owner) is before


CHANGES = {
    "attribute": lambda o: setattr(o, "a", object()),
    "deleted": lambda o: delattr(o, "a"),
    "object.__setattr__": lambda o: object.__setattr__(o, "a", object()),
    "item of the dict": lambda o: vars(o).__setitem__("a", object()),
    "update": lambda o: vars(o).update(a=object()),
    "update with keywords and a dict": lambda o: vars(o).update({"a": 1}, b=2),
    "|=": lambda o: vars(o).__ior__({"a": 1}),
    "cleared": lambda o: vars(o).clear(),
    "pop": lambda o: vars(o).pop("a"),
    "popitem": lambda o: vars(o).popitem(),
    "another dict": lambda o: setattr(o, "__dict__", {"a": 1, "b": o.b}),
    "a copy of the dict with another value": lambda o: setattr(o, "__dict__", {**vars(o), "a": 2}),
    "the dict deleted": lambda o: delattr(o, "__dict__"),
    "init of the dict": lambda o: vars(o).__init__(a=3),
    "another class": lambda o: setattr(o, "__class__", Derived),
    "method of the class": lambda o: setattr(type(o), "run", lambda self: 6),
    "method of the class deleted": lambda o: delattr(type(o), "run"),
    "method of the instance": lambda o: setattr(o, "run", lambda: 7),
    "method through the dict": lambda o: vars(o).update(run=len),
    "attribute of the class": lambda o: setattr(type(o), "shared", "another"),
    "attribute of a base": lambda o: setattr(type(o).__mro__[1], "shared", "another"),
    "bases": lambda o: setattr(
        type(o), "__bases__", (types.new_class("B", (Plain,), {}, lambda ns: ns.update(shared=0)),)
    ),
    "__getattribute__": lambda o: setattr(type(o), "__getattribute__", lambda self, name: 8),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("warm", [0, 1, 5])
def test_every_change_is_seen(change, warm):
    owner = made("a", "b")
    f = Guarded(*of_instance(owner, "a", "b"))
    for _ in range(warm):
        assert fits(f)
    CHANGES[change](owner)
    assert not fits(f) and not holds(f._dispatch[0].guards.steps)
    assert not fits(f)


def test_assignments_that_the_interpreter_has_specialised_are_seen():
    owner = made("a", "b")
    held = owner.a

    def assign(value):
        owner.a = value

    for _ in range(200):
        assign(held)
    f = Guarded(*of_instance(owner, "a", "b"))
    for _ in range(50):
        assert fits(f)
        assign(None)
        assert not fits(f)
        assign(held)
    other = made("a", "b")  # whose attributes lie in the instance until its dict is asked for
    for _ in range(200):
        other.a = held
    f = Guarded(*of_instance(other, "a", "b"))
    for _ in range(50):
        assert fits(f)
        other.a = None
        assert not fits(f)
        other.a = held


def test_what_is_changed_back_passes_again():
    owner = made("a", "b")
    f = Guarded(*of_instance(owner, "a", "b"))
    held, run = owner.a, type(owner).run
    for _ in range(4):
        assert fits(f) and fits(f) and fits(f)
        owner.a = None
        assert not fits(f)
        owner.a = held
        assert fits(f) and fits(f)
        type(owner).run = len
        assert not fits(f)
        type(owner).run = run


def test_copies_are_others():
    owner = Plain(a=1, b=[2])
    f = Guarded(*of_instance(owner, "a", "b"), GuardStep("item", 2, "b", "is", owner.b))
    assert fits(f) and fits(f) and fits(f)
    for twin in (copy.copy(owner), copy.deepcopy(owner), pickle.loads(pickle.dumps(owner))):
        vars(owner).update(vars(twin))
        assert fits(f) == (twin.b is f._dispatch[0].guards.steps[-1].expected)


def test_items_of_tuples_and_what_follows_from_bits():
    """Are parts of a group; items of a list have steps of their own."""

    class Settled:
        is_settled = True

        def __init__(self):
            self.count = 0

        def __call__(self, value):
            self.count += 1
            return value == 2.5

    inner = (object(), [1])
    owner = Plain(a=(inner, "x"), b=2.5)
    settled = Settled()
    steps = [
        root(owner),
        GuardStep("own", 0, None, "type", dict),
        GuardStep("item", 1, "a", "type", tuple),
        GuardStep("slot", 2, None, "length", 2),
        GuardStep("index", 2, 0, "type", tuple),
        GuardStep("index", 4, 0, "is", inner[0]),
        GuardStep("item", 1, "b", "call", settled),
        GuardStep("index", 4, 1, "type", list),
        GuardStep("index", 7, 0, "number", 1),
    ]
    f = Guarded(*steps)
    assert f._dispatch[0].guards.checks == 3
    for _ in range(6):
        assert fits(f)
    assert settled.count <= 3
    inner[1][0] = 2
    assert not fits(f)
    inner[1][0] = 1
    assert fits(f)
    owner.a = (inner, "y", "z")
    assert not fits(f)
    owner.a = ((object(), [1]), "x")
    assert not fits(f)


def test_attributes_that_are_read_by_code_are_read_again():
    """A property may give anything; a class that is given one later gives what that says."""
    owner = made("a", "b")
    steps = [*of_instance(owner, "a", "b"), GuardStep("attribute", 0, "shared", "is", Plain.shared)]
    f = Guarded(*steps)
    shared = Plain.shared
    assert fits(f) and fits(f) and fits(f)
    answers = iter([shared, shared, "other"])
    type(owner).shared = property(lambda self: next(answers))
    assert not fits(f)  # the class has another thing there
    only = Guarded(root(owner), *[GuardStep("attribute", 0, "shared", "is", shared)] * 3)
    assert not fits(only)


def test_the_dict_of_a_module_and_of_a_class():
    module = types.ModuleType("m")
    vars(module).update(a=Plain, b=len, c=None)
    kind = type("Kind", (), {"a": 1, "b": 2, "c": 3})
    for namespace, change in (
        (vars(module), vars(module).__setitem__),
        (None, lambda name, value: setattr(kind, name, value)),
    ):
        namespace = namespace or next(d for d in gc.get_referents(kind.__dict__) if type(d) is dict)
        f = Guarded(
            root(namespace),
            *(GuardStep("item", 0, name, "is", namespace[name]) for name in "abc"),
            GuardStep("item", 0, "d", "absent"),
        )
        assert f._dispatch[0].guards.checks == 2
        assert fits(f) and fits(f) and fits(f)
        change("d", 1)
        assert not fits(f)
    f = Guarded(root(kind), *(GuardStep("lookup", 0, name, "is", getattr(kind, name)) for name in "abc"))
    assert f._dispatch[0].guards.checks == 2 and fits(f) and fits(f)
    kind.b = 5
    assert not fits(f)


def family():
    """A class with two bases, and others that may take their places."""
    first, second, third = (types.new_class(name, (Plain,)) for name in ("First", "Second", "Third"))
    kind = types.new_class("Kind", (first, second))
    return kind, first, second, third


def of_order(kind, at=0):
    return GuardStep("mro", at, None, "referents", tuple(map(weakref.ref, kind.__mro__)))


ORDERS = {
    "of the class": lambda kind, owner: [root(kind), of_order(kind)],
    "of the class of an instance": lambda kind, owner: [
        root(owner),
        GuardStep("class", 0, None, "is", kind),
        of_order(kind, 1),
    ],
    "with attributes": lambda kind, owner: [*of_instance(owner, "a", "b"), of_order(kind, 1)],
}


@pytest.mark.parametrize("steps", ORDERS)
@pytest.mark.parametrize("warm", [0, 1, 5])
def test_orders_of_bases(steps, warm):
    kind, first, second, third = family()
    owner = kind(a=1, b=2)
    f = Guarded(*ORDERS[steps](kind, owner))
    assert f._dispatch[0].guards.checks == 2
    for _ in range(warm):
        assert fits(f)
    for bases in ((second, first), (first, third), (first,), (third, first, second)):
        kind.__bases__ = bases
        assert not fits(f) and not holds(f._dispatch[0].guards.steps)
        kind.__bases__ = first, second
        for _ in range(warm):
            assert fits(f)
    first.__bases__ = (third,)
    assert not fits(f)
    first.__bases__ = (Plain,)
    assert fits(f)
    for k in range(1200):  # after so many changes some versions of Python give a class no tags
        kind.shared = k
        assert steps == "with attributes" or k % 50 or fits(f)
    kind.__bases__ = second, first
    assert not fits(f)


def test_changes_of_an_instance_do_not_matter_to_what_its_class_says():
    kind, *_ = family()
    owner = kind()
    f = Guarded(*ORDERS["of the class of an instance"](kind, owner), GuardStep("lookup", 1, "run"))
    (group,) = f._dispatch[0].guards.groups
    assert group == ("class", 0)
    for k in range(5):
        owner.a = k
        assert fits(f)
    owner.__dict__ = {}
    assert fits(f)
    owner.__class__ = Plain
    assert not fits(f)


def test_what_metaclasses_say_of_the_order_of_bases():
    class Meta(type):
        def mro(cls):
            return [*super().mro()[: 1 + seen], *Plain.__mro__]

        __mro__ = ()

    seen = 0
    kind = Meta("Kind", (Plain,), {})
    f = Guarded(root(kind), of_order(Plain))
    assert not fits(f)
    f = Guarded(root(kind), GuardStep("mro", 0, None, "referents", tuple(map(weakref.ref, type.mro(kind)))))
    assert fits(f) and fits(f)
    seen = 1  # with one class twice, which Python lets pass
    kind.__bases__ = (Plain,)
    assert not fits(f)


def test_an_order_of_bases_keeps_none_alive():
    kind, first, second, third = family()
    f = Guarded(*ORDERS["of the class"](kind, None))
    for _ in range(3):
        assert fits(f)
    seen = weakref.ref(first)
    kind.__bases__ = (second, third)
    del first
    collect_all()
    assert seen() is None and not fits(f)
    for _ in range(50):  # one of them lies where the other lay
        kind.__bases__ = types.new_class("First", (Plain,)), second
        assert not fits(f)


def test_objects_without_tags_of_their_own():
    """Slots, dicts of other classes, classes as instances, instances of many items: their steps run each time."""

    class Slots:
        __slots__ = ("a",)

        def run(self): ...

    class Texts(dict):
        pass

    class Numbers(tuple):
        pass

    numbers = Numbers((1, 2, 3))
    numbers.a = numbers.b = numbers.c = 1
    slots = Slots()
    slots.a = 1
    assert agree(
        *[
            root(slots),
            *[GuardStep("method", 0, "run")] * 3,
            GuardStep("class", 0),
            GuardStep("class", 0, None, "is", Slots),
        ]
    )
    for owner, change in ((numbers, lambda: setattr(numbers, "a", 2)),):
        f = Guarded(root(owner), GuardStep("own", 0), *(GuardStep("item", 1, name, "number", 1) for name in "abc"))
        assert fits(f) and fits(f) and fits(f)
        change()
        assert not fits(f)
    held = Plain()
    held.__dict__ = Texts(a=1, b=1, c=1)
    f = Guarded(root(held), GuardStep("own", 0), *(GuardStep("item", 1, name, "number", 1) for name in "abc"))
    assert fits(f) and fits(f) and fits(f)
    held.a = 2
    assert not fits(f)


def test_a_group_holds_nothing_alive():
    owner = Plain(a=Plain(), b=Plain(), c=Plain())
    steps = [GuardStep("weak", -1, weakref.ref(owner)), GuardStep("own", 0, None, "type", dict)]
    steps += [GuardStep("item", 1, name, "weak", weakref.ref(vars(owner)[name])) for name in "abc"]
    steps += [
        GuardStep("class", 2),
        GuardStep("own", 2),
        GuardStep("method", 2, "run"),
        GuardStep("class", 3, None, "is", Plain),
    ]
    f = Guarded(*steps)
    assert fits(f) and fits(f) and fits(f)
    part = weakref.ref(owner.a)
    owner.a = None
    collect_all()
    assert part() is None and not fits(f)
    gone = weakref.ref(owner)
    del owner
    collect_all()
    assert gone() is None and not fits(f)


def test_what_takes_the_place_in_memory_is_another():
    """Objects that lie where those lay that a group knew."""
    for _ in range(300):
        owner = Plain(a=Plain(), b=None, c=None)
        steps = [
            root([owner]),
            GuardStep("index", 0, 0),
            GuardStep("own", 1),
            *(GuardStep("item", 2, name) for name in "bc"),
        ]
        steps += [GuardStep("item", 2, "a", "weak", weakref.ref(owner.a)), GuardStep("own", 5), GuardStep("class", 5)]
        f = Guarded(*steps)
        assert fits(f) and fits(f) and fits(f)
        held = steps[0].operand
        del owner, steps
        held[0] = None
        held[0] = Plain(a=Plain(), b=None, c=None)
        assert not fits(f)


def test_a_property_drops_what_a_group_found():
    class Trap:
        @property
        def sprung(self):
            vars(owner).clear()
            collect_all()
            return len([bytes(range(k % 200)) for k in range(200)])

    owner = Plain(a=Plain(x=["found"]), b=1, c=2)
    trap = Trap()
    steps = [
        root(owner),
        GuardStep("own", 0, None, "type", dict),
        *(GuardStep("item", 1, name) for name in "abc"),
        root(trap),
        GuardStep("attribute", 5, "sprung", "number", 200),
        GuardStep("own", 2),
        GuardStep("item", 7, "x", "length", 1),
        GuardStep("index", 8, 0, "text", "found"),
    ]
    f = Guarded(*steps)
    for _ in range(4):  # the first times its steps run, then the group is passed over
        assert fits(f)
        assert not fits(f)
        vars(owner).update(a=Plain(x=["found"]), b=1, c=2)
        without = Guarded(*steps[:5], GuardStep("own", 2))
        assert fits(without) and fits(without)


def test_changes_while_a_group_is_looked_at_are_seen():
    class Changing:
        is_of_keys = True

        def __call__(self, value):
            if self.armed:
                owner.a = None  # behind the step that has looked at it
            return True

    changing = Changing()
    changing.armed = False
    owner = made("a", "b")
    held = owner.a
    f = Guarded(*of_instance(owner, "a", "b", asked=changing))
    for armed in (False, True, True):
        changing.armed = armed
        owner.a = held
        fits(f)
        assert fits(f) == (owner.a is held)


def test_in_other_threads():
    owner = made("a", "b")
    f = Guarded(*of_instance(owner, "a", "b"))
    stop = threading.Event()
    held = owner.a

    def look():
        while not stop.is_set():
            f(X)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=look) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        for k in range(3000):
            owner.a = held if k % 2 else None
            if k % 100 == 0:
                type(owner).run = type(owner).run
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    for _ in range(3):
        owner.a = None
        assert not fits(f)
        owner.a = held
        assert fits(f)


class Twin(Plain):
    pass


class Changed(World):
    """A world whose changes go other ways, too."""

    def change(self):
        objects = [o for o in self.objects if type(o) in (Plain, Derived) or isinstance(o, type)]
        chosen, kind = self.random.choice(objects), self.random.randrange(9)
        name, value = self.random.choice(["a", "b", "run"]), self.value()
        try:
            if kind == 0:
                vars(chosen)[name] = value
            elif kind == 1:
                vars(chosen).update({name: value, "other": 1})
            elif kind == 2:
                vars(chosen).pop(name, None)
            elif kind == 3:
                chosen.__class__ = self.random.choice([Plain, Derived])
            elif kind == 4:
                chosen.__dict__ = dict(vars(chosen))
            elif kind == 5:
                chosen.__dict__ = {name: value}
            elif kind == 6:
                chosen.__bases__ = self.random.choice([(Plain,), (Twin,), (Twin, Plain)])
            else:
                super().change()
        except (AttributeError, TypeError):  # of classes
            setattr(chosen, name, value)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(5, 40), st.sampled_from([1, 2, 3]))
def test_random_programs_in_groups(seed, count, least):
    world = Changed(seed)
    before, guard_program.LEAST = guard_program.LEAST, least
    try:
        functions = [Guarded(*world.steps(count)) for _ in range(3)]
        for _ in range(15):
            for f in functions:
                for _ in range(world.random.randrange(1, 4)):
                    steps = f._dispatch[0].guards.steps
                    assert fits(f) == holds(steps), steps
            for _ in range(world.random.randrange(3)):
                world.change()
    finally:
        guard_program.LEAST = before


def test_without_tags_every_step_runs(monkeypatch):
    monkeypatch.setattr(version_tags, "tracks_changes", lambda: False)
    owner = made("a", "b")
    asked = Asked("ab")
    steps = of_instance(owner, "a", "b", asked=asked)
    assert GuardProgram(steps).checks == len(steps)
    f = Guarded(*steps)
    assert fits(f) and fits(f) and fits(f) and asked.count == 3
    owner.a = 1
    assert not fits(f)
