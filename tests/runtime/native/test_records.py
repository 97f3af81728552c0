"""Declared records, and references that native code owns."""

from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

from hybridflow.compiler.program import HOST
from hybridflow.core.tensor import wrap
from hybridflow.runtime import cpu
from hybridflow.runtime.calls import entry
from hybridflow.runtime.machine import host_target, machine_code
from hybridflow.runtime.native.ir_builder import I64, NULL, PTR, Module, i64
from hybridflow.runtime.native.records import HEAD, TEAM_HOST, TENSOR, WORD, Item, Items, Words, Writer
from hybridflow.runtime.threads import thread_pool
from tests.support.runtime_programs import plus_one


def test_what_is_written_is_what_is_read():
    POINT = Item("point", "x *y", tail="more")
    Items(Item("other"), POINT)
    assert POINT.pack(7, 8, x=-1, y=5) == (1, 6, -1, 5, 7, 8)
    assert [POINT.offset(name) for name in ("x", "y", "more")] == [16, 24, 32]
    head = Words("first @points last")
    writer = Writer(head)
    data = writer.pack(first=1, points=writer.items([POINT.pack(x=2, y=3)]), last=-4)
    words = struct.unpack(f"<{len(data) // WORD}q", data)
    assert words == (1, 3, -4, 1, 4, 2, 3) and head.offset("last") == 16


def test_mistakes_are_errors_of_the_declaration():
    with pytest.raises(TypeError, match="ndim"):
        TENSOR.pack(input=0, dtype=0)
    with pytest.raises(TypeError, match="axes"):
        TENSOR.pack(input=0, dtype=0, ndim=1, axes=3)
    with pytest.raises(TypeError, match="no tail"):
        Item("plain", "a").pack(1, a=2)
    with pytest.raises(TypeError, match="twice"):
        Words("a *a")
    with pytest.raises(TypeError, match="two sections"):
        Items(TENSOR)
    f = Module().function("reader", I64, PTR)
    with pytest.raises(AttributeError, match="outptus"):
        HEAD.at(f, f.args[0]).outptus  # noqa: B018
    with pytest.raises(TypeError, match="calls"):
        Writer(HEAD).pack(**dict.fromkeys(set(HEAD.names) - {"calls"}, 0))


def releases(write):
    """How often the text of a function gives references back, on all its ways together."""
    f = Module().function("probe", PTR, PTR)
    write(f, f.args[0])
    return str(f.ir).count('call void @"Py_DecRef"')


def test_every_way_out_of_a_block_gives_back():
    def early(f, value):
        with f.owned(value), f.owned(value):
            f.ret_if(f.is_null(value), NULL)
        f.ret(NULL)

    def given(f, value):
        with f.owned(value) as held:
            f.ret_if(f.is_null(value), NULL)
            f.ret(held.given())

    def often(f, value):
        with f.owned(value):
            for _ in range(10):
                f.ret_if(f.is_null(value), NULL)
            f.ret(NULL)

    assert releases(early) == 4  # of two references, by a return and by the end of the block
    assert releases(given) == releases(often) == 1  # one text for all returns


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize(
    ("chosen", "released", "returned"), [(0, 12, 100), (1, 12, 101), (2, 2, 102), (3, 123, 0), (4, 2, 102)]
)
def test_blocks_are_left_from_within_and_what_is_returned_is_from_before(chosen, released, returned, checked):
    """Each block adds its digit when it is left: the inner one first, each of them once."""
    module = Module(checked)
    module.variable("digits", I64)
    f = module.function("nested", I64, I64)
    (choice,), digits = f.args, module.symbol("digits")

    def noting(digit):
        return f.leaving(lambda: f.set(digits, f.b.add(f.b.mul(f.get(digits, I64), i64(10)), i64(digit))))

    f.set(digits, i64(0))
    with f.leaving(lambda: None), noting(2):
        with f.b.if_then(f.b.icmp_signed("<", choice, i64(2))), noting(1):
            f.ret_if(f.eq(choice, i64(0)), f.b.add(f.get(digits, I64), i64(100)))
            f.ret(f.b.add(f.get(digits, I64), i64(101)))
        with f.count(i64(9)) as k:
            f.ret_if(f.b.and_(f.eq(k, i64(5)), f.eq(f.b.and_(choice, i64(1)), i64(0))), i64(102))
        f.set(digits, i64(1))
    with noting(3):
        pass
    f.ret(i64(0))
    image = machine_code.compile_object(str(module.ir), host_target.target(), use="runtime")
    code = machine_code.load_object(image, "nested", "digits")
    found = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.addresses["nested"])(chosen)
    assert (ctypes.c_int64.from_address(code.addresses["digits"]).value, found) == (released, returned)


def called(module, name, *arguments):
    image = machine_code.compile_object(str(module.ir), host_target.target(), use="runtime")
    code = machine_code.load_object(image, name)
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * len(arguments))(code.addresses[name])(*arguments)


@pytest.mark.parametrize("checked", [True, False])
def test_words_on_the_stack_are_zero_if_they_are_not_given(checked):
    module = Module(checked)
    dirty = module.function("dirty", I64, I64)  # leaves bits where the other function has its words
    slots = dirty.local_array(I64, dirty.args[0])
    with dirty.count(dirty.args[0]) as k:
        dirty.set(dirty.element(slots, k, I64), dirty.constant(-1))
    dirty.ret(dirty.get(slots, I64))
    f = module.function("chosen", I64, I64)
    f.call("dirty", I64, f.constant(64))
    words = TEAM_HOST.on_stack(f, workers=f.constant(7), work=f.constant(9))
    f.ret(f.get(f.element(words, f.args[0], I64), I64))
    names = (*HOST, "work")
    found = {name: called(module, "chosen", k) for k, name in enumerate(names)}
    assert found == {**dict.fromkeys(names, 0), "workers": 7, "work": 9}
    with pytest.raises(TypeError, match="callbakc"):
        TEAM_HOST.on_stack(f, callbakc=f.constant(1))


def test_what_is_on_the_stack_begins_as_poison_in_checked_modules():
    for checked in (True, False):
        module = Module(checked)
        f = module.function("unset", I64, I64)
        words, one, many = f.local_words(3), f.local(I64), f.local_array(I64, f.args[0])
        given = f.local(I64, f.constant(0))
        f.set(one, f.b.and_(f.get(one, I64), f.load(words, 16, I64)))
        last = f.get(f.element(many, f.b.sub(f.args[0], f.constant(1)), I64), I64)
        f.ret(f.b.or_(f.b.and_(f.get(one, I64), last), f.get(given, I64)))
        if checked:
            assert called(module, "unset", 5) & (1 << 64) - 1 == int("a5" * 8, 16)
        assert ("memset" in str(module.ir)) == checked


def test_the_host_of_a_team_is_that_of_ctypes():
    fields = {name: getattr(thread_pool.ThreadPoolHost, name).offset for name in (*HOST, "work")}
    assert fields == {name: TEAM_HOST.offset(name) for name in fields}
    assert ctypes.sizeof(thread_pool.ThreadPoolHost) == WORD * TEAM_HOST.size


@pytest.mark.parametrize("change", [1, -1])
def test_a_call_that_is_out_of_balance_raises(change, native):
    balance = ctypes.c_int64.from_address(native["owned_references"])
    add_one, x = entry.elementwise(cpu.load(plus_one())), wrap(np.ones(3, np.float32))
    add_one(x)
    assert balance.value == 0
    balance.value = change
    with pytest.raises(SystemError, match="leaked a reference"):
        add_one(x)
    assert balance.value == 0 and add_one(x)._array[0] == 2
