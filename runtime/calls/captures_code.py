"""LLVM code for what a program reads besides its arguments: constants, and variables, which it may update.

Small programs keep the interpreter's lock from the reading of the variables to the end, so that nobody sees anything
between.  Large ones give it up while they run, and say in the words of the variables' gates (see ``turns``) what they
do there: others wait, or leave the memory alone.  Whoever cannot go on at once is a miss, and waits in Python.

A variable's memory is written where its value is its own (the slots ``_own`` and ``_tensor`` hold the same object), no
other program reads there, and the program allows it; else the new value is a fresh tensor, which is the variable's own
from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.ir as ir

from hybridflow.runtime.calls.record_access import items
from hybridflow.runtime.calls.variable_locks import CLAIMED, ELSEWHERE, IN_PLACE, READERS, RUNNING
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import FALSE, I1, I32, PTR, TRUE, VOID, Function, Module, i32, i64
from hybridflow.runtime.native.records import CONSTANT, HEAD, VARIABLE

FITS, MISS, TARGETS = range(3)  # what gather_captures finds


def define(module: Module) -> None:
    """Add the functions to a module; they call those of ``array_match_code``, and ``fresh_tensor``."""
    _make_targets(module)
    _gather_captures(module)
    _begin(module)
    _end(module)
    _publish(module)


class _Variable:
    """A capture that is a variable, for native code."""

    def __init__(self, f: Function, item: ir.Value) -> None:
        self._f, self.item = f, VARIABLE.at(f, item)

    def slot(self, name: str) -> ir.Value:
        """The address of a slot: ``tensor`` or ``own``."""
        return self._f.at(self.item.object, getattr(self.item, name))

    def word(self, index: int) -> ir.Value:
        """The address of a word of its gate."""
        return self._f.at(self.item.words, 4 * index)

    def is_set(self, index: int) -> ir.Value:
        return self._f.ne(self._f.get(self.word(index), I32), i32(0))

    @property
    def is_updated(self) -> ir.Value:
        return self._f.b.icmp_signed(">=", self.item.update, i64(0))

    def may_be_overwritten(self) -> ir.Value:
        f = self._f
        is_exclusive = f.eq(f.get(self.slot("own"), PTR), f.get(self.slot("tensor"), PTR))
        alone = f.b.not_(f.b.or_(self.is_set(READERS), self.is_set(RUNNING)))
        return f.b.and_(f.b.and_(is_exclusive, alone), f.ne(self.item.in_place, i64(0)))


@contextmanager
def _variables(f: Function, record: ir.Value) -> Iterator[tuple[ir.Value, _Variable]]:
    """A loop over the variables among the captures; the body sees the position and the variable."""
    head = HEAD.at(f, record)
    with items(f, head.capture_items, head.captures) as (i, item), f.b.if_then(VARIABLE.is_kind(f, item)):
        yield i, _Variable(f, item)


def _make_targets(module: Module) -> None:
    """i1 make_targets(record, dims, fresh): put a fresh tensor where a new value will not go over the old one, at the
    position of the update; or false and an error."""
    f = module.function("make_targets", I1, PTR, PTR, PTR)
    record, dims, fresh = f.args
    with _variables(f, record) as (_, variable):
        needed = f.b.and_(variable.is_updated, f.b.not_(variable.may_be_overwritten()))
        with f.b.if_then(needed):
            item = variable.item
            tensor = f.call("fresh_tensor", PTR, item.dtype, item.itemsize, item.ndim, item.extents, dims)
            f.put(f.element(fresh, item.update, PTR), tensor)
            f.ret_if(f.is_null(tensor), FALSE)
    f.ret(TRUE)


def _gather_captures(module: Module) -> None:
    """i32 gather_captures(record, buffers, dims, fresh): pointers of the inputs that are no arguments, and of the
    updates; ``MISS`` where somebody is at work on a variable or it has another type, ``TARGETS`` where a new value
    needs a fresh tensor that was not made."""
    f = module.function("gather_captures", I32, PTR, PTR, PTR, PTR)
    record, buffers, dims, fresh = f.args
    head = HEAD.at(f, record)
    updates = f.element(buffers, f.b.add(head.inputs, head.outputs), PTR)
    with items(f, head.capture_items, head.captures) as (_, item):
        is_constant = CONSTANT.is_kind(f, item)
        with f.b.if_else(is_constant, likely=False) as (of_constant, of_variable):
            with of_constant:
                constant = CONSTANT.at(f, item)
                f.set(f.element(buffers, constant.input, PTR), constant.data)
            with of_variable:
                _gather_variable(f, _Variable(f, item), dims, buffers, updates, fresh)
    f.ret(i32(FITS))


def _gather_variable(
    f: Function, variable: _Variable, dims: object, buffers: object, updates: object, fresh: object
) -> None:
    item = variable.item
    tensor = f.get(variable.slot("tensor"), PTR)
    f.ret_if(f.is_null(tensor), i32(MISS))
    array = f.call("array_of", PTR, tensor)
    f.ret_if(f.is_null(array), i32(MISS))
    fits = f.call("check_array", I1, array, item.dtype, item.ndim, item.extents, dims)
    f.ret_if(f.b.not_(fits), i32(MISS))
    data = f.load(array, object_layout.ARRAY_DATA, PTR)
    f.set(f.element(buffers, item.input, PTR), data)
    with f.b.if_else(variable.is_updated) as (updated, read):
        with read:
            f.ret_if(f.eq(f.get(variable.word(RUNNING), I32), i32(IN_PLACE)), i32(MISS))
        with updated:
            f.ret_if(f.b.or_(variable.is_set(CLAIMED), variable.is_set(RUNNING)), i32(MISS))
            fresh_tensor = f.get(f.element(fresh, item.update, PTR), PTR)
            target = f.local(PTR, data)
            with f.b.if_else(f.is_null(fresh_tensor)) as (in_place, elsewhere):
                with in_place:
                    f.ret_if(f.b.not_(variable.may_be_overwritten()), i32(TARGETS))
                with elsewhere:
                    f.set(target, f.load(f.call("array_of", PTR, fresh_tensor), object_layout.ARRAY_DATA, PTR))
            f.set(f.element(updates, item.update, PTR), f.get(target, PTR))


def _begin(module: Module) -> None:
    """void begin(record, held, fresh): tell the gates that the program is about to run without the interpreter's lock,
    and hold the tensors that it reads, so that their memory stays."""
    f = module.function("begin", VOID, PTR, PTR, PTR)
    record, held, fresh = f.args
    _count(f, module.symbol("running"), 1)
    with _variables(f, record) as (i, variable):
        f.put(f.element(held, i, PTR), f.incref(f.get(variable.slot("tensor"), PTR)))
        is_updated = variable.is_updated
        with f.b.if_else(is_updated) as (updated, read):
            with updated:
                in_place = f.is_null(f.get(f.element(fresh, variable.item.update, PTR), PTR))
                f.set(variable.word(RUNNING), f.b.select(in_place, i32(IN_PLACE), i32(ELSEWHERE)))
            with read:
                _count(f, variable.word(READERS), 1)
    f.ret()


def _end(module: Module) -> None:
    """void end(record): the program has run."""
    f = module.function("end", VOID, PTR)
    (record,) = f.args
    _count(f, module.symbol("running"), -1)
    with _variables(f, record) as (_, variable), f.b.if_else(variable.is_updated) as (updated, read):
        with updated:
            f.set(variable.word(RUNNING), i32(0))
        with read:
            _count(f, variable.word(READERS), -1)
    f.ret()


def _count(f: Function, word: ir.Value, step: int) -> None:
    f.set(word, f.b.add(f.get(word, I32), i32(step)))


def _publish(module: Module) -> None:
    """void publish(record, fresh, olds): give the variables their fresh values, as their own.  What they held is left
    in ``fresh`` and ``olds``: to give it back may run Python code, which must find everything in order."""
    f = module.function("publish", VOID, PTR, PTR, PTR)
    record, fresh, olds = f.args
    with _variables(f, record) as (_, variable), f.b.if_then(variable.is_updated):
        place = f.element(fresh, variable.item.update, PTR)
        with f.b.if_then(f.b.not_(f.is_null(f.get(place, PTR)))):
            new = f.take(place)
            tensor, exclusive = variable.slot("tensor"), variable.slot("own")
            f.put(place, f.get(tensor, PTR))
            f.put(f.element(olds, variable.item.update, PTR), f.get(exclusive, PTR))
            f.set(tensor, new)
            f.set(exclusive, f.incref(new))
    f.ret()
