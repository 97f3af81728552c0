"""Methods that are hf.functions leave no trace on their instances, and let them go."""

import copy
import gc
import json
import pickle
import weakref
from dataclasses import dataclass

import pytest

import hybridflow as hf
from hybridflow.jit import instance_functions


class Model:
    def __init__(self, rate):
        self.rate = rate

    @hf.function
    def scaled(self, x):
        return x * self.rate


class Slotted:
    __slots__ = ("__weakref__", "rate")
    __hash__ = None

    def __init__(self, rate):
        self.rate = rate

    def __eq__(self, other):
        return True

    @hf.function
    def scaled(self, x):
        return x * self.rate


@dataclass(frozen=True)
class Frozen:
    rate: float

    @hf.function
    def handed(self, x):
        return x * self.rate, self


def is_freed_at_once(instance):
    """Whether the last reference was the caller's, who passes it in a list."""
    reference = weakref.ref(instance.pop())
    return reference() is None


def test_vars_hold_what_the_user_put_there():
    model = Model(2.0)
    assert model.scaled(hf.ones(1)).item() == 2.0
    assert json.dumps(vars(model)) == '{"rate": 2.0}'
    frozen = Frozen(3.0)
    assert frozen.handed(hf.ones(1))[1] == frozen
    gc.collect()
    assert vars(frozen) == {"rate": 3.0} and not [name for name in vars(Frozen) if name.startswith("_hf")]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_duplicates_start_without(duplicate):
    model = Model(2.0)
    model.scaled(hf.ones(1))
    other = duplicate(model)
    other.rate = 5.0
    assert other.scaled(hf.ones(1)).item() == 5.0 and model.scaled(hf.ones(1)).item() == 2.0
    assert len(other.scaled.signatures()) == len(model.scaled.signatures()) == 1


def test_unhashable_instances_with_slots_that_are_all_equal():
    one, two = Slotted(2.0), Slotted(3.0)
    assert one.scaled(hf.ones(1)).item() == 2.0 and two.scaled(hf.ones(1)).item() == 3.0
    assert one.scaled == one.scaled and one.scaled != two.scaled


@pytest.mark.parametrize("kind", [Model, Slotted])
def test_instances_go_with_their_last_reference(kind):
    gc.disable()
    try:
        instance = kind(2.0)
        for _ in range(3):
            instance.scaled(hf.ones(1))
        function = weakref.ref(instance.scaled._function)
        held = [instance]
        del instance
        assert is_freed_at_once(held) and function() is None
    finally:
        gc.enable()


def test_a_new_object_at_the_address_of_an_old_one_is_new():
    for rate in range(50):
        model = Model(float(rate))
        assert model.scaled(hf.ones(1)).item() == rate
        del model


def handing_itself_through():
    class Local:
        @hf.function
        def f(self, x):
            return x + 1.0, self

    return Local()


def handing_through_what_refers_back():
    class Child:
        pass

    class Local:
        def __init__(self):
            self.child = Child()
            self.child.parent = self

        @hf.function
        def f(self, x):
            return x + 1.0, self.child

    return Local()


def with_a_gradient_of_its_own():
    class Local:
        rate = 2.0

        @hf.function
        def f(self, x):
            @hf.custom_gradient
            def clip(x):
                return x + 1.0, lambda g: g * self.rate

            return clip(x)

    return Local()


def with_children_that_know_their_parent():
    class Child:
        def __init__(self, parent):
            self.parent, self.rate = parent, 2.0

    class Local:
        def __init__(self):
            self.children = [Child(self)]

        @hf.function
        def f(self, x):
            return x * self.children[0].rate

    return Local()


def in_the_closure_of_its_method():
    class Local:
        @hf.function
        def f(self, x):
            return x * holder.rate

    class Holder:
        rate = 2.0

    holder = Holder()
    holder.local = Local()
    return holder.local


def of_a_class():
    class Meta(type):
        @hf.function
        def f(cls, x):
            return x + 1.0, cls

    return Meta("Local", (), {})


@pytest.mark.parametrize(
    "make",
    [
        handing_itself_through,
        handing_through_what_refers_back,
        with_a_gradient_of_its_own,
        with_children_that_know_their_parent,
        in_the_closure_of_its_method,
        of_a_class,
    ],
)
def test_cycles_through_what_was_traced_are_collected(make):
    instance = make()
    for _ in range(3):
        with hf.GradientTape() as tape:
            x = hf.ones(1)
            tape.watch(x)
            instance.f(x)
        instance.f(x)
    # The method's own Function lives as long as its class.
    kind = None if make is in_the_closure_of_its_method else type(instance)
    references = [weakref.ref(instance), weakref.ref(instance.f._function)]
    gc.collect()
    assert references[0]() is instance and len(instance.f.signatures()) == 1  # a collection takes nothing away
    assert not [name for name in vars(instance) if name.startswith("_hf")]
    del instance, tape
    gc.collect()
    assert [reference() for reference in references] == [None, None], kind


def test_many_instances_and_collections():
    """The table holds no more than the instances that are alive."""
    models = [Model(float(k)) for k in range(20)] + [Frozen(float(k)) for k in range(20)]
    for k, model in enumerate(models):
        (model.handed if isinstance(model, Frozen) else model.scaled)(hf.ones(1))
        if k % 7 == 0:
            gc.collect()
    del models[::2], model
    gc.collect()
    table = Model.__dict__["scaled"]._instances
    assert sum(held.instance() in models for held in table._held.values()) == len(table._held) == 10


def test_collections_are_heard_once(monkeypatch):
    """However often the last table has gone when the next one comes."""

    class Passing:
        @hf.function
        def call(self, x):
            return x

    for _ in range(3):
        monkeypatch.setattr(instance_functions, "_tables", set())
        Passing().call(hf.ones(2))
    assert gc.callbacks.count(instance_functions._around_collection) == 1
