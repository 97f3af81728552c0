"""Functions behind ``functools.wraps`` and ``hf.vmap``: a compiled call gives the wrapper what a plain one does."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import hybridflow as hf


def scaled(x, k=3):
    return x * k


@functools.wraps(scaled)
def twice(*args, **kwargs):
    return scaled(*[2 * a for a in args], **kwargs), len(args), sorted(kwargs)


@functools.wraps(scaled)
def fixed(x):
    return scaled(x, 2)


@functools.wraps(scaled)
def with_offset(*args, offset=1.0, **kwargs):
    return scaled(*args, **kwargs) + offset


@functools.wraps(scaled)
def filled(*args):
    return scaled(hf.ones(3), *args)


@functools.wraps(scaled)
def counted(x, *rest):
    return scaled(x, *rest), len(rest)


CALLS = [
    (twice, (), {}),
    (twice, (5,), {}),
    (twice, (), {"k": 5}),
    (fixed, (), {}),
    (with_offset, (), {}),
    (with_offset, (2,), {"offset": 4.0}),
    (filled, (), {}),
    (counted, (), {}),
    (counted, (7,), {}),
]


def same(a, b):
    np.testing.assert_equal(hf.tree.map(np.asarray, a), hf.tree.map(np.asarray, b))


@pytest.mark.parametrize("wrapper, args, kwargs", CALLS, ids=lambda part: getattr(part, "__code__", None) and "f")
def test_wrappers_are_given_what_they_are_called_with(wrapper, args, kwargs):
    x, compiled = hf.asarray([1.0, 2.0, 3.0]), hf.function(wrapper)
    for _ in range(2):
        same(compiled(x, *args, **kwargs), wrapper(x, *args, **kwargs))


def test_a_wrapper_that_fills_arguments_in_may_be_called_with_none():
    compiled = hf.function(filled)
    same(compiled(), filled())
    same(compiled(4), filled(4))
    same(compiled(), filled())


def test_methods_have_their_wrappers_parameters():
    def with_offset(function):
        @functools.wraps(function)
        def call(*args, offset=1.0, **kwargs):
            return function(*args, **kwargs) + offset * len(args)

        return call

    class Model:
        @hf.function
        @with_offset
        def apply(self, x, k=4):
            return x * k

    model = Model()
    same(model.apply(hf.ones(2)), [6.0, 6.0])
    same(model.apply(hf.ones(2), 5), [8.0, 8.0])
    same(model.apply(hf.ones(2), k=5, offset=0.0), [5.0, 5.0])


def test_defaults_are_not_mapped_over():
    weights = hf.asarray([1.0, 2.0, 3.0])
    x = hf.reshape(hf.arange(9.0), (3, 3))

    def weighted(x, w=weights):
        return x * w

    same(hf.function(hf.vmap(weighted))(x), hf.vmap(weighted)(x))
    same(hf.function(hf.vmap(scaled))(x), x * 3)
    same(hf.function(hf.vmap(scaled, in_axes=(0,)))(x), x * 3)
    same(hf.function(hf.vmap(hf.grad(lambda x, k=2.0: hf.sum(x * k))))(x), x * 0 + 2)


def test_arguments_are_counted_from_the_end_without_defaults():
    gradient = hf.grad(lambda x, k=2.0: hf.sum(x * k), argnums=-1)
    same(hf.function(gradient)(hf.ones(3)), [2.0, 2.0, 2.0])


def test_names_of_what_is_wrapped_serve_keywords_and_files(tmp_path):
    @hf.function
    @functools.wraps(scaled)
    def plain(*args, **kwargs):
        return scaled(*args, **kwargs)

    x = hf.ones(3)
    same(plain(x=x), plain(x))
    hf.saved.save(plain, tmp_path / "f.hf")
    same(hf.saved.load(tmp_path / "f.hf")(x=x), x * 3)


@functools.wraps(scaled)
def by_keyword(*args, **kwargs):
    return (scaled(*args, **kwargs) if args else scaled(100 * kwargs["x"])), len(args), sorted(kwargs)


def test_what_is_given_by_keyword_is_no_argument_by_position():
    x, compiled = hf.asarray([1.0, 2.0, 3.0]), hf.function(by_keyword)
    for args, kwargs in [((x,), {}), ((), {"x": x}), ((x, 5), {}), ((x,), {"k": 5}), ((), {"x": x})]:
        same(compiled(*args, **kwargs), by_keyword(*args, **kwargs))
        same(
            hf.function(lambda x, args=args, kwargs=kwargs: compiled(*args, **kwargs)[0])(x),
            compiled(*args, **kwargs)[0],
        )
    concrete = compiled.get_concrete_function(x=x)
    same(concrete(x=x), by_keyword(x=x))


def test_a_wrapper_that_takes_no_keywords_is_given_none():
    @functools.wraps(scaled)
    def by_place(*args):
        return scaled(*args)

    x, compiled = hf.ones(3), hf.function(by_place)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'x'; the signature is scaled\(\*args\)"):
            compiled(x=x)
        same(compiled(x, 4), by_place(x, 4))


def test_one_call_leaves_the_others_as_they_were(tmp_path):
    x, compiled = hf.asarray([2.0, 3.0, 4.0]), hf.function(filled)
    by_position = compiled.get_concrete_function(x)
    for call in ((x,), (), (x,), ()):
        same(compiled(*call), filled(*call))
    same(by_position(x), filled(x))
    same(compiled.get_concrete_function(x)(x), filled(x))
    hf.saved.save(compiled, tmp_path / "f.hf")
    loaded = hf.saved.load(tmp_path / "f.hf")
    same(loaded(), filled())
    same(loaded(x), filled(x))


def test_files_have_what_is_given_by_position_and_by_keyword(tmp_path):
    for x in (hf.ones(3), hf.asarray([2.0, 3.0])):
        compiled = hf.function(by_keyword)
        calls = [((x,), {}), ((), {"x": x}), ((x, x), {})]
        for args, kwargs in calls if len(x) == 2 else calls[::-1]:
            same(compiled(*args, **kwargs), by_keyword(*args, **kwargs))
        hf.saved.save(compiled, tmp_path / "f.hf")
        hf.saved.save(hf.saved.load(tmp_path / "f.hf"), tmp_path / "again.hf")
        for name in ("f.hf", "again.hf"):
            for args, kwargs in calls:
                same(hf.saved.load(tmp_path / name)(*args, **kwargs), by_keyword(*args, **kwargs))


def test_a_function_that_is_said_to_wrap_itself():
    def twice(x):
        return x * 2

    twice.__wrapped__ = twice
    same(hf.function(twice)(hf.ones(2)), [2.0, 2.0])
