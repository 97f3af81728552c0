"""Which calls a signature takes: native code against the rules written in Python, on random signatures and calls."""

from __future__ import annotations

import random
import struct
import weakref
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hybridflow.compiler.ir.extents import Dim, value_at
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.runtime import cpu
from hybridflow.runtime.calls.argument_specs import (
    InstanceArg,
    LiteralArg,
    MappingArg,
    ObjectArg,
    SequenceArg,
    TensorArg,
    flatten_arguments,
)
from hybridflow.runtime.calls.entry import Dispatcher
from hybridflow.runtime.calls.native_call import NativeCall
from tests.support.runtime_programs import add

EXECUTABLE = []

pytestmark = pytest.mark.usefixtures("loaded")


@pytest.fixture(scope="module")
def loaded(native):
    EXECUTABLE.append(cpu.load(add()))


class Callable(Dispatcher):
    __slots__ = ()

    def _call_slow(self, *args, **kwargs):
        return None


# The rules.


def takes(signature, args, kwargs):
    """Whether the call is one of the signature's."""
    positional = len(signature.arguments) - len(signature.keywords) - len(signature.defaults)
    if len(args) != positional or tuple(kwargs) != signature.keywords:
        return False
    dims = {}
    values = (*args, *kwargs.values(), *signature.defaults)
    if not all(fits(value, argument, dims) for argument, value in zip(signature.arguments, values)):
        return False
    return all(dims[name] >= least for name, least in signature.minimums.items())


def fits(value, argument, dims):
    if isinstance(argument, LiteralArg):
        return same_literal(value, argument.value)
    if isinstance(argument, ObjectArg):
        return value is argument.reference()
    if isinstance(argument, TensorArg):
        return fitting(value, argument, dims)
    if type(value) is not argument.kind:
        return False
    if isinstance(argument, SequenceArg):
        children = list(value)
    elif isinstance(argument, MappingArg):
        keys = tuple(value)
        if len(keys) != len(argument.keys) or not all(map(same_key, keys, argument.keys)):
            return False
        if argument.kind is defaultdict and value.default_factory is not argument.factory:
            return False
        children = list(value.values())
    else:
        if argument.has_dict is not None and tuple(value.__dict__) != argument.has_dict:
            return False
        if not all(hasattr(value, name) for name in argument.names):
            return False
        children = [getattr(value, name) for name in argument.names]
    if len(children) != len(argument.children):
        return False
    return all(fits(child, part, dims) for child, part in zip(children, argument.children))


def same_key(a, b):
    """As far as native code can tell: other keys than these must be the same objects."""
    return a is b or (type(a) is type(b) and type(a) in (str, int) and a == b)


def fitting(value, argument, dims):
    """Whether it is a Tensor or an array of the argument's dtype and shape; binds symbolic extents."""
    if argument.scalar:
        return type(value) is argument.dtype.type
    array = value._array if type(value) is Tensor else value
    if not isinstance(array, np.ndarray) or (type(array) is not np.ndarray and array is not value):
        return False
    if array.dtype != argument.dtype or array.ndim != len(argument.shape):
        return False
    pairs = zip(array.shape, argument.shape)
    return all(extent == (dims.setdefault(str(e), extent) if isinstance(e, Dim) else e) for extent, e in pairs)


def same_literal(value, expected):
    """Floats, ints, str and bytes by type and bits, everything else by identity."""
    if type(value) is float and type(expected) is float:
        return struct.pack("<d", value) == struct.pack("<d", expected)
    if type(value) is type(expected) and type(value) in (int, str, bytes):
        return value == expected
    return value is expected


# Random signatures and calls.

F32, F64 = np.dtype("f4"), np.dtype("f8")
LITERALS = [None, True, False, 0, 1, -7, 1 << 62, 1 << 80, 0.0, -0.0, 1.5, float("nan"), "text", b"text", (), len]
EXTENTS = [0, 1, 2, 3, Dim("n"), Dim("m")]
KEYS = ["a", "b", "long key", 1, True, 0, 2.5, None, ("a", 1), 1 << 70]


class SubArray(np.ndarray):
    pass


class Thing:
    """Something that is known by identity."""


class Open:
    """With attributes in a dict."""


class Slots:
    __slots__ = ("a", "b", "c")


Pair = namedtuple("Pair", "x y")
THINGS = [Thing(), Thing()]


def random_argument(rng, depth=2):
    if depth and rng.random() < 0.35:
        children = tuple(random_argument(rng, depth - 1) for _ in range(rng.randrange(4)))
        kind = rng.choice([list, tuple, dict, OrderedDict, defaultdict, Pair, Open, Slots])
        if kind is Pair:
            return SequenceArg(Pair, (children * 2 + (LiteralArg(None),) * 2)[:2])
        if kind in (list, tuple):
            return SequenceArg(kind, children)
        if kind in (Open, Slots):
            names = tuple(rng.sample("abc", len(children)))
            return InstanceArg(kind, names, tuple(rng.sample(names, len(names))) if kind is Open else None, children)
        keys = distinct(rng, len(children))
        return MappingArg(kind, keys, children, rng.choice([None, list]) if kind is defaultdict else None)
    which = rng.random()
    if which < 0.4:
        return LiteralArg(rng.choice(LITERALS))
    if which < 0.5:
        return ObjectArg(weakref.ref(rng.choice(THINGS)))
    shape = tuple(rng.choice(EXTENTS) for _ in range(rng.randrange(4)))
    if rng.random() < 0.1:
        return TensorArg(rng.choice([F32, F64]), (), None, scalar=True)
    return TensorArg(rng.choice([F32, F64]), shape, None)


def distinct(rng, count):
    keys = {}
    for key in rng.sample(KEYS, len(KEYS)):
        keys.setdefault(key, key)
    return tuple(keys)[:count]


def random_signature(rng):
    arguments = [TensorArg(F32, (Dim("n"),), 0), TensorArg(F32, (Dim("n"),), 1)]
    arguments += [random_argument(rng) for _ in range(rng.randrange(4))]
    rng.shuffle(arguments)
    if rng.random() < 0.3:
        arguments[0] = SequenceArg(list, (arguments[0],))
    keywords = ["k", "l", "m"][: rng.randrange(min(4, len(arguments) + 1))]
    known = {
        str(e) for a in flatten_arguments(arguments) if isinstance(a, TensorArg) for e in a.shape if isinstance(e, Dim)
    }
    minimums = {name: rng.randrange(4) for name in sorted(known) if rng.random() < 0.5}
    defaults, extra = [], []
    if rng.random() < 0.3:
        extra = [random_argument(rng)]
        dims = {name: rng.randrange(4) for name in "nm"}
        defaults = [value_for(rng, extra[0], dims)]
        known |= {
            str(e) for a in flatten_arguments(extra) if isinstance(a, TensorArg) for e in a.shape if isinstance(e, Dim)
        }
    return NativeCall(EXECUTABLE[0], [*arguments, *extra], keywords=keywords, defaults=defaults, minimums=minimums)


def value_for(rng, argument, dims):
    """A value that fits."""
    if isinstance(argument, LiteralArg):
        value = argument.value
        return type(value)(repr(value)) if type(value) in (int, float) else value
    if isinstance(argument, ObjectArg):
        return argument.reference()
    if isinstance(argument, TensorArg):
        array = np.ones([value_at(extent, dims) for extent in argument.shape], argument.dtype)
        if argument.scalar:
            return array[()]
        return array if rng.random() < 0.3 else wrap(array)
    children = [value_for(rng, child, dims) for child in argument.children]
    if isinstance(argument, SequenceArg):
        return argument.kind(*children) if argument.kind is Pair else argument.kind(children)
    if isinstance(argument, MappingArg):
        made = defaultdict(argument.factory) if argument.kind is defaultdict else argument.kind()
        made.update(zip(argument.keys, children))
        return made
    made = argument.kind()
    by_name = dict(zip(argument.names, children))
    for name in argument.has_dict or argument.names:
        setattr(made, name, by_name[name])
    return made


def random_call(rng, signature):
    """A call that fits, more often than not, but for a few changes."""
    dims = {name: rng.randrange(4) for name in "nm"}
    own = len(signature.arguments) - len(signature.defaults)
    values = [value_for(rng, argument, dims) for argument in signature.arguments[:own]]
    for _ in range(rng.choice([0, 0, 1, 2])):
        k = rng.randrange(len(values))
        values[k] = changed(rng, values[k])
    positional = len(values) - len(signature.keywords)
    kwargs = list(zip(signature.keywords, values[positional:]))
    if rng.random() < 0.1:
        rng.shuffle(kwargs)
    if rng.random() < 0.1:
        kwargs.append(("other", 1))
    return values[: positional - (rng.random() < 0.1)], dict(kwargs)


def changed(rng, value):
    """Another value, or one that is different somewhere inside."""
    if rng.random() < 0.2:
        return rng.choice([*LITERALS, *THINGS, [], {}, OrderedDict(), Pair(1, 2), Slots(), Open()])
    if type(value) in (list, tuple):
        children = list(value)
        if children and rng.random() < 0.8:
            k = rng.randrange(len(children))
            children[k] = changed(rng, children[k])
        else:
            children.append(1)
        return type(value)(children)
    if isinstance(value, dict) and value:
        keys = list(value)
        if rng.random() < 0.5:
            value[rng.choice(keys)] = changed(rng, value[keys[0]])
        elif rng.random() < 0.5:
            key = keys[0]
            value[key] = value.pop(key)
        else:
            value.pop(keys[-1])
            value[rng.choice(KEYS)] = 1
        return value
    if type(value) is Open:
        value.a = value.__dict__.pop("a", 1)
        return value
    return rng.choice([*LITERALS, odd_tensor(rng, value), odd_tensor(rng, value)])


def odd_tensor(rng, value):
    array = value._array if type(value) is Tensor else None
    if not isinstance(array, np.ndarray):
        array = np.ones(3, F32)
    return rng.choice(
        [
            array,
            array[..., None],
            array.view(SubArray),
            wrap(array.view(SubArray)),
            np.float32(1),
            np.float64(1),
            np.ones((), F32),
            wrap(array.astype(F64)),
            wrap(array.astype(">f4")),
            wrap(array[None]),
            wrap(np.ones(4, F32)),
            wrap(np.ones(6, F32)[::2]),
            wrap(np.ones(13, np.uint8)[1:].view(F32)),
            wrap(np.asfortranarray(np.ones((3, 2), F32))),
            wrap(np.float32(1)),
            wrap(1.0),
        ]
    )


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32))
def test_random_calls(seed):
    rng = random.Random(seed)
    f = Callable()
    f._dispatch = (random_signature(rng), random_signature(rng))
    for _ in range(20):
        args, kwargs = random_call(rng, rng.choice(f._dispatch))
        expected = [takes(signature, args, kwargs) for signature in f._dispatch]
        before = [signature.calls for signature in f._dispatch]
        result = f(*args, **kwargs)
        answered = [signature.calls - calls for signature, calls in zip(f._dispatch, before)]
        assert (result is not None) == any(expected), (args, kwargs)
        assert sum(answered) == any(expected) and (not any(expected) or answered.index(1) == expected.index(True))
