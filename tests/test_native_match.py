"""Which calls a signature takes: native code against the rules written in Python, on random signatures and calls."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hybridflow.compiler.ir.extents import Dim, value_at
from hybridflow.core.tensor import Tensor, wrap
from hybridflow.runtime import cpu
from hybridflow.runtime.calls.entry import Dispatcher
from hybridflow.runtime.calls.native_call import LiteralArg, NativeCall, TensorArg
from tests.runtime_programs import add

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
    positional = len(signature.arguments) - len(signature.keywords)
    if len(args) != positional or tuple(kwargs) != signature.keywords:
        return False
    dims = {}
    for argument, value in zip(signature.arguments, (*args, *kwargs.values())):
        if isinstance(argument, LiteralArg):
            if not same_literal(value, argument.value):
                return False
        elif not fitting(value, argument, dims):
            return False
    return all(dims[name] >= least for name, least in signature.minimums.items())


def fitting(value, argument, dims):
    """Whether it is a Tensor of the argument's dtype and shape, C-contiguous and aligned; binds symbolic extents."""
    if type(value) is not Tensor or type(value._array) is not np.ndarray:
        return False
    array = value._array
    if array.dtype != argument.dtype or array.ndim != len(argument.shape):
        return False
    if not (array.flags.c_contiguous and array.flags.aligned):
        return False
    pairs = zip(array.shape, argument.shape)
    return all(extent == (dims.setdefault(str(e), extent) if isinstance(e, Dim) else e) for extent, e in pairs)


def same_literal(value, expected):
    """Floats and ints by type and bits, everything else by identity."""
    if type(value) is float and type(expected) is float:
        return struct.pack("<d", value) == struct.pack("<d", expected)
    if type(value) is int and type(expected) is int and -(1 << 63) <= expected < 1 << 63:
        return value == expected
    return value is expected


# Random signatures and calls.

F32, F64 = np.dtype("f4"), np.dtype("f8")
LITERALS = [None, True, False, 0, 1, -7, 1 << 62, 1 << 80, 0.0, -0.0, 1.5, float("nan"), "text", (), len]
EXTENTS = [0, 1, 2, 3, Dim("n"), Dim("m")]


def random_signature(rng):
    arguments = [TensorArg(F32, (Dim("n"),), 0), TensorArg(F32, (Dim("n"),), 1)]
    for _ in range(rng.randrange(4)):
        if rng.random() < 0.5:
            arguments.append(LiteralArg(rng.choice(LITERALS)))
        else:
            shape = tuple(rng.choice(EXTENTS) for _ in range(rng.randrange(4)))
            arguments.append(TensorArg(rng.choice([F32, F64]), shape, None))
    rng.shuffle(arguments)
    keywords = ["k", "l", "m"][: rng.randrange(min(4, len(arguments) + 1))]
    known = {str(e) for a in arguments if isinstance(a, TensorArg) for e in a.shape if isinstance(e, Dim)}
    minimums = {name: rng.randrange(4) for name in sorted(known) if rng.random() < 0.5}
    return NativeCall(EXECUTABLE[0], arguments, keywords=keywords, minimums=minimums)


def random_call(rng, signature):
    """A call that fits, more often than not, but for a few changes."""
    dims = {name: rng.randrange(4) for name in "nm"}
    values = []
    for argument in signature.arguments:
        if isinstance(argument, LiteralArg):
            value = argument.value
            values.append(type(value)(repr(value)) if type(value) in (int, float) else value)
        else:
            shape = [value_at(extent, dims) for extent in argument.shape]
            values.append(wrap(np.ones(shape, argument.dtype)))
    for _ in range(rng.choice([0, 0, 1, 2])):
        k = rng.randrange(len(values))
        values[k] = rng.choice([*LITERALS, odd_tensor(rng, values[k]), odd_tensor(rng, values[k])])
    positional = len(values) - len(signature.keywords)
    kwargs = list(zip(signature.keywords, values[positional:]))
    if rng.random() < 0.1:
        rng.shuffle(kwargs)
    if rng.random() < 0.1:
        kwargs.append(("other", 1))
    return values[: positional - (rng.random() < 0.1)], dict(kwargs)


def odd_tensor(rng, value):
    array = value._array if type(value) is Tensor else None
    if not isinstance(array, np.ndarray):
        array = np.ones(3, F32)
    return rng.choice(
        [
            array,  # no tensor
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
