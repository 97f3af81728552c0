"""Native code that launches a program: it walks a list of steps and calls the driver for each, without Python between.

A list (``LIST``) has the steps, the words that its launches are told, and which of these are addresses.  Addresses are
given as a *base*, a number among those that each walk is given (a buffer of this call, say), and bytes behind it.
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.cuda.command_words import (
    COOPERATIVE,
    COPY,
    GRAPH,
    LAUNCH,
    LIST,
    PRODUCT,
    RECORD,
    TO_HOST,
    WAIT,
    WORDS,
    ZERO,
)
from hybridflow.runtime.cuda.driver import WALKED
from hybridflow.runtime.native.ir_builder import I32, I64, NULL, PTR, Function, Module, i32, i64


def build(checked: bool = False) -> str:
    """The module: ``i64 walk(ptr list, ptr bases, ptr streams)`` returns 0, or the error's number, the driver's or a
    library's, and the step's in the upper half."""
    module = Module(checked)
    f = module.function("walk", I64, PTR, PTR, PTR)
    the_list, bases, streams = f.args
    field = {name: f.word(the_list, 8 * k) for k, name in enumerate(LIST)}
    words = f.local_array(I64, field["words"])
    table = f.b.inttoptr(field["table"], PTR)
    _tell(f, field, words, bases)
    parameters = f.local(ir.ArrayType(PTR, 2))
    with f.count(field["count"]) as number:
        step = f.words_after(f.b.inttoptr(field["steps"], PTR), f.b.mul(number, i64(WORDS)))
        call = _Call(f, number, step, bases, streams, table)
        with f.switch(f.word(step, 0)) as case:
            with case(LAUNCH):
                _launch(call, words, parameters)
            with case(COOPERATIVE):
                _launch(call, words, parameters, together=True)
            with case(COPY):
                _copy(call)
            with case(TO_HOST):
                call("cuMemcpyDtoHAsync_v2", call.address(1), call.address(3), call.word(5), call.stream(6))
            with case(ZERO):
                call("cuMemsetD32Async", call.address(1), i32(0), call.word(3), call.stream(6))
            with case(RECORD):
                call("cuEventRecord", call.address(1), call.stream(6))
            with case(WAIT):
                call("cuStreamWaitEvent", call.stream(6), call.address(1), i32(0))
            with case(GRAPH):
                call("cuGraphLaunch", call.word(1), call.stream(6))
            with case(PRODUCT):
                _product(call)
    f.ret(i64(0))
    return str(module.ir)


def _tell(f: Function, field: dict[str, ir.Value], words: ir.Value, bases: ir.Value) -> None:
    """The words: those of the template, with bases added to the addresses among them."""
    f.call("memcpy", PTR, words, f.b.inttoptr(field["template"], PTR), f.b.mul(field["words"], i64(8)))
    places = f.b.inttoptr(field["places"], PTR)
    with f.count(field["addresses"]) as k:
        pair = f.words_after(places, f.b.mul(k, i64(2)))
        place = f.words_after(words, f.word(pair, 0))
        f.set(place, f.b.add(f.get(place, I64), f.get(f.words_after(bases, f.word(pair, 8)), I64)))


class _Call:
    """Calls of the driver for one step."""

    def __init__(
        self, f: Function, number: ir.Value, step: ir.Value, bases: ir.Value, streams: ir.Value, table: ir.Value
    ) -> None:
        self.f, self.number, self.step, self.bases, self.streams, self.table = f, number, step, bases, streams, table

    def word(self, position: int) -> ir.Value:
        return self.f.word(self.step, 8 * position)

    def narrow(self, position: int) -> ir.Value:
        return self.f.b.trunc(self.word(position), I32)

    def address(self, position: int) -> ir.Value:
        """What a base and bytes, from ``position`` on, stand for."""
        base = self.f.get(self.f.words_after(self.bases, self.word(position)), I64)
        return self.f.b.add(base, self.word(position + 1))

    def stream(self, position: int) -> ir.Value:
        return self.f.get(self.f.words_after(self.streams, self.word(position)), I64)

    def __call__(self, name: str, *arguments: ir.Value) -> None:
        """Call the driver; the walk ends if that fails."""
        self.call(self.f.pointer(self.table, 8 * WALKED.index(name)), *arguments)

    def call(self, function: ir.Value, *arguments: ir.Value) -> None:
        """The same for any function that returns the number of an error."""
        f = self.f
        status = f.call_pointer(function, I32, *arguments)
        with f.b.if_then(f.ne(status, i32(0)), likely=False):
            f.ret(f.b.or_(f.b.zext(status, I64), f.b.shl(self.number, i64(32))))


def _launch(call: _Call, words: ir.Value, parameters: ir.Value, together: bool = False) -> None:
    """One launch: its parameters are a number, words, or both in this order."""
    f = call.f
    told = f.words_after(words, call.word(7))
    inline = f.at(call.step, 8 * 6)
    first = f.b.select(f.ne(call.word(5), i64(0)), inline, told)
    f.store(first, parameters)
    f.store(told, parameters, 8)
    one = i32(1)
    blocks, threads, stream = call.narrow(2), call.narrow(3), call.stream(4)
    launch = call.word(1), blocks, one, one, threads, one, one, call.narrow(8), stream, parameters
    if together:
        call("cuLaunchCooperativeKernel", *launch)
    else:
        call("cuLaunchKernel", *launch, NULL)


def _copy(call: _Call) -> None:
    """A copy, but for an update that lies over its input."""
    f = call.f
    target, source = call.address(1), call.address(3)
    with f.b.if_then(f.ne(target, source)):
        call("cuMemcpyDtoDAsync_v2", target, source, call.word(5), call.stream(6))


def _product(call: _Call) -> None:
    """A product by a library, which is told where its operands are."""
    f, stream = call.f, call.stream(6)
    told = _Call(f, call.number, f.b.inttoptr(call.word(1), PTR), call.bases, call.streams, call.table)
    handle, form, scale, zero, left_form, right_form, form_of_result, algorithm, size = map(told.word, range(1, 10))
    left, right, result, memory = map(told.address, range(10, 18, 2))
    operands = left, left_form, right, right_form, zero, result, form_of_result, result, form_of_result
    function = f.b.inttoptr(told.word(0), PTR)
    told.call(function, handle, form, scale, *operands, algorithm, memory, size, stream)
