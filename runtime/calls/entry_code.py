"""The native entry: LLVM code that takes a Python call to a compiled program and back without a Python frame.

``call`` is the ``__call__`` of functions: it walks the records of the known native calls, and runs the program of the
first that fits.  ``elementwise`` is one op over tensors of any one shape.  Both give up, by calling Python, on
whatever they do not know; they never guess.  A record says what a call must look like (see ``records``).

Python code can run while an object is allocated (a finalizer) or a guard is read (a property), and nothing else may
change under us: records are held by a reference to their table, arguments by the caller, and the pointers of
variables are read after the last such moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.ir as ir

from hybridflow.compiler.program import INTERRUPTED
from hybridflow.runtime import thread_pool_words as team
from hybridflow.runtime.calls import (
    argument_match_code,
    array_match_code,
    captures_code,
    fast_path_check_code,
    guard_steps_code,
    op_code,
    result_steps_code,
    tape_log_code,
)
from hybridflow.runtime.calls.record_access import extent_of, is_type, items
from hybridflow.runtime.native import object_layout
from hybridflow.runtime.native.ir_builder import (
    BALANCE,
    FALSE,
    I1,
    I32,
    I64,
    NULL,
    PTR,
    TRUE,
    VOID,
    Function,
    Module,
    i32,
    i64,
)
from hybridflow.runtime.native.records import (
    HEAD,
    OUTPUT,
    PROGRAM,
    RELEASE_GIL_WORK,
    TEAM_HOST,
    WORD,
    Offsets,
    TapeOffsets,
    View,
)

MAX_NDIM = 64  # NumPy's bound
_NO_MEMORY = "there is no memory for the values that the program makes on its way to the results"
UNDER_WAY = "calls_under_way"  # in a checked module: of all threads, and nested ones


def build(offsets: Offsets, checked: bool = False) -> str:
    """The module's text.  A ``checked`` one counts the references that it owns, and a call that does not end with as
    many as before raises SystemError."""
    module = new_module(checked)
    fast_path_check_code.define(module)
    array_match_code.define(module, offsets)
    guard_steps_code.define(module)
    argument_match_code.define(module, offsets)
    define_make_tensor(module, offsets)
    define_run(module)
    _fail(module)
    _fresh_tensor(module)
    _make_outputs(module)
    captures_code.define(module)
    result_steps_code.define(module)
    _attempt(module, offsets)
    _bind(module, offsets)
    tape_log_code.define(module, offsets.tape)
    _notify_python(module)
    _try_plans(module, offsets)
    _try_notified(module, offsets)
    _untouched_here(module, offsets)
    _try_taped(module, offsets)
    _try_all(module, offsets)
    _call(module)
    op_code.define(module, offsets)
    for name, body in op_code.BODIES.items():
        _export(module, name, body)
    _holds(module, offsets)
    _export(module, "answer", "attempt", keywords=True)
    _export(module, "bind", "try_bind", keywords=True)
    _sample(module)
    module.function("nothing", I32, PTR, PTR, PTR, PTR).ret(i32(0))  # i32 nothing(buffers, dims, arena, host)
    _forget_state(module, offsets.tape)
    return str(module.ir)


def new_module(checked: bool) -> Module:
    """A module of functions that Python calls, which give back ``miss`` for what they do not know: an address
    (``native_functions.MISS``) that is the same in all modules, as some call each other's functions."""
    module = Module(checked)
    if checked:
        module.variable(UNDER_WAY, I64)
        module.text("unbalanced", "hybridflow: a native call leaked a reference, or gave one back twice")
    return module


def define_make_tensor(module: Module, offsets: Offsets) -> None:
    """PyObject *tensor_over(array): a Tensor over an array, which it takes, or null and an error.

    PyObject *make_tensor(descr, i32 ndim, shape, i64 bytes): a Tensor over a fresh array, or null and an error.
    """
    f = module.function("tensor_over", PTR, PTR, inline=True)
    with f.owned(f.args[0]) as array:
        # Python's collector is not told of it: nothing that a tensor refers to refers back.
        tensor = f.call("_PyObject_GC_New", PTR, module.symbol("Tensor_Type"))
        f.ret_if(f.is_null(tensor), NULL)
        for place in range(object.__basicsize__, offsets.tensor_size, WORD):
            f.store(NULL, tensor, place)
        f.store(array.given(), tensor, offsets.tensor_array)
        f.ret(tensor)

    f = module.function("make_tensor", PTR, PTR, I32, PTR, I64, inline=True)
    array = f.call("make_array", PTR, *f.args)
    f.ret_if(f.is_null(array), NULL)
    f.ret(f.call("tensor_over", PTR, array))


def define_run(module: Module) -> None:
    """i32 run(program, buffers, dims, i64 arena, i64 scratch, i64 work, i1 release): the program that a record's
    ``PROGRAM`` names, with the code that it has now; -1 when there is no memory.

    i1 ask(program, owner, i64 work): have Python compile what threads need, where it is wanted now; or false and an
    error.
    """
    f = module.function("run", I32, PTR, PTR, PTR, I64, I64, I64, I1, inline=True)
    program, buffers, dims, arena_size, scratch, work, release = f.args
    head = PROGRAM.at(f, program)
    entry, host, size = f.local(PTR, f.get(head.entry, PTR)), f.local(PTR, NULL), f.local(I64, arena_size)
    with f.b.if_then(f.b.icmp_signed(">=", work, _team_word(f, team.LEAST)), likely=False):
        shared, workers = f.get(head.shared, I64), _team_word(f, team.THREADS)
        parallel_for = _team_word(f, team.PARALLEL_FOR)
        is_shared = f.b.icmp_unsigned(">", shared, i64(team.CORE_QUERY))
        ready = f.b.and_(f.b.icmp_signed(">", workers, i64(1)), f.ne(parallel_for, i64(0)))
        with f.b.if_then(f.b.and_(is_shared, ready)):
            f.set(entry, f.b.inttoptr(shared, PTR))
            f.set(host, TEAM_HOST.on_stack(f, parallel_for=parallel_for, workers=workers, work=work))
            more = f.b.mul(f.b.sub(workers, i64(1)), scratch)
            f.set(size, f.b.add(arena_size, more))
    arena = f.local(PTR, NULL)
    with f.b.if_then(f.ne(f.get(size, I64), i64(0))):
        f.set(arena, f.call("pool_allocate", PTR, f.get(size, I64)))
        f.ret_if(f.is_null(f.get(arena, PTR)), i32(-1))
    status = f.local(I32)
    arguments = (buffers, dims, f.get(arena, PTR), f.get(host, PTR))
    with f.b.if_else(release, likely=False) as (large, small):
        with large:
            thread = f.call("PyEval_SaveThread", PTR)
            f.set(status, f.call_pointer(f.get(entry, PTR), I32, *arguments))
            f.call("PyEval_RestoreThread", VOID, thread)
        with small:
            f.set(status, f.call_pointer(f.get(entry, PTR), I32, *arguments))
    with f.b.if_then(f.ne(f.get(size, I64), i64(0))):
        f.call("pool_release", VOID, f.get(arena, PTR))
    f.ret(f.get(status, I32))

    f = module.function("ask", I1, PTR, PTR, I64, inline=True)
    program, owner, work = f.args
    with f.b.if_then(f.b.icmp_signed(">=", work, _team_word(f, team.LEAST)), likely=False):
        wanted = f.eq(f.get(PROGRAM.at(f, program).shared, I64), i64(team.CORE_QUERY))
        with f.b.if_then(f.b.and_(wanted, f.ne(_team_word(f, team.THREADS), i64(1))), likely=False):
            arguments = f.local(PTR, owner)
            is_shared = f.call("PyObject_VectorcallMethod", PTR, module.symbol("Name_share"), arguments, i64(1), NULL)
            with f.owned(is_shared) as nothing:
                f.ret(f.b.not_(f.is_null(nothing.value)))
    f.ret(TRUE)


def _team_word(f: Function, number: int) -> ir.Value:
    return f.load(f.module.symbol("team_words"), WORD * number, I64)


def _fail(module: Module) -> None:
    """void fail(owner, i32 status): set the Python error that a nonzero status stands for."""
    f = module.function("fail", VOID, PTR, I32)
    owner, status = f.args
    with f.b.if_then(f.eq(status, i32(-1))):
        error = f.get(module.symbol("PyExc_MemoryError"), PTR)
        f.call("PyErr_SetString", VOID, error, module.text("no_memory", _NO_MEMORY))
        f.ret()
    with f.owned(f.call("PyLong_FromLong", PTR, f.b.sext(status, I64))) as number:
        with f.b.if_then(f.is_null(number.value)):
            f.ret()
        arguments = f.local_array(PTR, i64(2))
        f.store(owner, arguments)
        f.store(number.value, arguments, WORD)
        raised = f.call("PyObject_VectorcallMethod", PTR, module.symbol("Name_fail"), arguments, i64(2), NULL)
        with f.owned(raised):
            f.ret()


def _fresh_tensor(module: Module) -> None:
    """PyObject *fresh_tensor(descr, i64 itemsize, i64 ndim, extents, dims): a tensor of these extents, or null and an
    error."""
    f = module.function("fresh_tensor", PTR, PTR, I64, I64, PTR, PTR)
    descr, itemsize, ndim, extents, dims = f.args
    shape = f.local_array(I64, i64(MAX_NDIM))
    size = f.local(I64, itemsize)
    with f.count(ndim) as axis:
        extent = extent_of(f, f.get(f.element(extents, axis, I64), I64), dims)
        f.set(f.element(shape, axis, I64), extent)
        product = f.b.umul_with_overflow(f.get(size, I64), extent)
        with f.b.if_then(f.b.extract_value(product, 1), likely=False):
            f.ret(f.call("PyErr_NoMemory", PTR))
        f.set(size, f.b.extract_value(product, 0))
    f.ret(f.call("make_tensor", PTR, descr, f.b.trunc(ndim, I32), shape, f.get(size, I64)))


def _make_outputs(module: Module) -> None:
    """i1 make_outputs(record, dims, outs): put a fresh tensor per output; or false and an error, the rest null."""
    f = module.function("make_outputs", I1, PTR, PTR, PTR)
    record, dims, outs = f.args
    head = HEAD.at(f, record)
    with items(f, head.output_items, head.outputs) as (i, item):
        output = OUTPUT.at(f, item)
        tensor = f.call("fresh_tensor", PTR, output.dtype, output.itemsize, output.ndim, output.extents, dims)
        f.put(f.element(outs, i, PTR), tensor)
        f.ret_if(f.is_null(tensor), FALSE)
    f.ret(TRUE)


def _attempt(module: Module, offsets: Offsets) -> None:
    """PyObject *attempt(known, args, i64 positional, kwnames): the call's result, or null with an error, or the
    address of ``miss`` when the NativeCall does not fit."""
    f = module.function("attempt", PTR, PTR, PTR, I64, PTR)
    with _fitting(f, offsets) as (record, objects, buffers, dims):
        with f.b.if_then(f.ne(HEAD.at(f, record).updates, i64(0)), likely=False):
            # Within a transaction writes are noted, by Python.
            open_calls = f.get(f.module.symbol("transactions"), I32)
            f.ret_if(f.ne(open_calls, i32(0)), f.module.symbol("miss"))
        with f.b.if_then(f.b.not_(f.is_null(HEAD.at(f, record).python)), likely=False):
            _answer_in_python(f, record, objects, buffers, dims)
        handed_count = HEAD.at(f, record).handed
        with f.room(handed_count, NULL) as room, f.owned_array(handed_count, None, room) as handed:
            with f.b.if_then(f.ne(handed_count, i64(0)), likely=False):
                _go_on_if(f, f.call("hand_through", I32, record, objects, buffers, dims, handed))
            _answer(f, f.args[0], record, buffers, dims, handed)


def _bind(module: Module, offsets: Offsets) -> None:
    """PyObject *try_bind(known, args, i64 positional, kwnames): the tensors among the arguments, see ``inputs``, of a
    call that fits; null with an error; or the address of ``miss``."""
    f = module.function("try_bind", PTR, PTR, PTR, I64, PTR)
    with _fitting(f, offsets) as (record, objects, buffers, dims):
        f.ret(f.call("inputs", PTR, record, objects, buffers, dims))


@contextmanager
def _fitting(f: Function, offsets: Offsets) -> Iterator[tuple[ir.Value, ir.Value, ir.Value, ir.Value]]:
    """The record of a call that fits, with the objects, buffers of inputs and dims that its arguments are; returns a
    miss, or an error, where it does not fit."""
    known, args, positional, kwnames = f.args
    holder = f.load(known, offsets.call_record, PTR)
    f.ret_if(f.is_null(holder), f.module.symbol("miss"))
    record = f.at(holder, object_layout.BYTES_DATA)
    head = HEAD.at(f, record)
    roots = f.b.add(f.b.add(head.positional, head.keywords), head.defaults)
    buffer_count = f.b.add(f.b.add(head.inputs, head.outputs), head.updates)
    words = f.b.add(f.b.add(buffer_count, head.dims), f.b.add(head.nodes, head.inputs))
    copies = f.local(PTR, NULL)
    with f.room(words, NULL) as buffers:
        dims = f.element(buffers, buffer_count, PTR)
        nodes = f.element(dims, head.dims, I64)
        inputs = f.element(nodes, head.nodes, PTR)
        with f.count(head.dims) as i:
            f.set(f.element(dims, i, I64), i64(-1))
        # Tensors may be given other arrays meanwhile, so those that are read are held.
        with (
            f.owned_array(head.nodes, roots, nodes) as objects,
            f.owned_slot(copies),
            f.owned_array(head.inputs, None, inputs) as arrays,
        ):
            destinations = (objects, buffers, dims, copies, arrays)
            fits = f.call("match_arguments", I32, record, args, positional, kwnames, *destinations)
            _miss_if_repeated(f, head, fits)
            _go_on_if(f, fits)
            with f.b.if_then(f.b.not_(f.is_null(head.guards)), likely=False):
                _go_on_if(f, f.call("match_guards", I32, head.guards))
            yield record, objects, buffers, dims


def _holds(module: Module, offsets: Offsets) -> None:
    """PyObject *holds(program, args, i64 nargs): whether every step of a GuardProgram passes."""
    f = module.function("holds", PTR, PTR, PTR, I64)
    holder = f.load(f.args[0], offsets.guard_record, PTR)
    verdict = f.call("match_guards", I32, f.at(holder, object_layout.BYTES_DATA))
    f.ret_if(f.eq(verdict, i32(guard_steps_code.ERROR)), NULL)
    passes = f.eq(verdict, i32(guard_steps_code.HOLDS))
    answer = f.b.select(passes, module.symbol("_Py_TrueStruct"), module.symbol("_Py_FalseStruct"))
    f.ret(f.incref(answer))


def _miss_if_repeated(f: Function, head: View, verdict: ir.Value) -> None:
    """Where there is no memory for copies of strided arguments, and calls that fail are made again: a miss."""
    failed = f.b.and_(f.eq(verdict, i32(guard_steps_code.ERROR)), f.ne(head.repeats, i64(0)))
    with f.b.if_then(failed, likely=False):
        kind = f.get(f.module.symbol("PyExc_MemoryError"), PTR)
        with f.b.if_then(f.ne(f.call("PyErr_ExceptionMatches", I32, kind), i32(0))):
            f.call("PyErr_Clear", VOID)
            f.ret(f.module.symbol("miss"))


def _go_on_if(f: Function, verdict: ir.Value) -> None:
    """Return an error, or a miss, unless the verdict is HOLDS."""
    with f.b.if_then(f.ne(verdict, i32(guard_steps_code.HOLDS)), likely=False):
        f.ret_if(f.eq(verdict, i32(guard_steps_code.ERROR)), NULL)
        f.ret(f.module.symbol("miss"))


def _answer(
    f: Function, known: ir.Value, record: ir.Value, buffers: ir.Value, dims: ir.Value, handed: ir.Value
) -> None:
    """Run the program of a call that fits, and return its result."""
    head = HEAD.at(f, record)
    outputs = head.outputs
    f.ret_if(f.b.not_(f.call("ask", I1, record, known, extent_of(f, head.work, dims))), NULL)
    with f.room(outputs, NULL) as results, f.owned_array(outputs, None, results) as outs:
        f.ret_if(f.b.not_(f.call("make_outputs", I1, record, dims, outs)), NULL)
        with f.count(outputs) as i:
            array = f.call("array_of", PTR, f.get(f.element(outs, i, PTR), PTR))
            f.set(f.element(buffers, f.b.add(head.inputs, i), PTR), f.load(array, object_layout.ARRAY_DATA, PTR))
        without_captures = f.eq(head.captures, i64(0))
        with f.b.if_else(without_captures, likely=True) as (alone, with_captures):
            with alone:
                *needs, large = _needs(f, record, dims)
                status = f.call("run", I32, record, buffers, dims, *needs, large)
                _fail_if(f, known, record, status)
            with with_captures:
                _run_with_captures(f, known, record, buffers, dims)
        f.set(head.address("calls"), f.b.add(head.calls, i64(1)))
        f.ret(f.call("result", PTR, record, outs, handed, dims))


def _answer_in_python(f: Function, record: ir.Value, objects: ir.Value, buffers: ir.Value, dims: ir.Value) -> None:
    """Return what the record's function in Python gives for a call that fits."""
    head = HEAD.at(f, record)
    with f.owned(f.call("inputs", PTR, record, objects, buffers, dims)) as inputs:
        f.ret_if(f.is_null(inputs.value), NULL)
        told = f.local(PTR, inputs.value)
        called = f.call("PyObject_Vectorcall", PTR, head.python, told, i64(1), NULL)
        with f.owned(called) as result:
            f.ret_if(f.is_null(result.value), NULL)
            f.ret_if(f.eq(result.value, f.module.symbol("_Py_NotImplementedStruct")), f.module.symbol("miss"))
            f.set(head.address("calls"), f.b.add(head.calls, i64(1)))
            f.ret(result.given())


def _needs(f: Function, record: ir.Value, dims: ir.Value) -> tuple[ir.Value, ...]:
    """Bytes of the arena, and of the scratch memory of a worker; the work; and whether to run without the interpreter's
    lock."""
    head = HEAD.at(f, record)
    arena, scratch, work = (extent_of(f, word, dims) for word in (head.arena, head.scratch, head.work))
    without_lock = f.b.or_(f.b.icmp_signed(">=", work, i64(RELEASE_GIL_WORK)), f.ne(head.looks, i64(0)))
    return arena, scratch, work, without_lock


def _fail_if(f: Function, known: ir.Value, record: ir.Value, status: ir.Value) -> None:
    with f.b.if_then(f.ne(status, i32(0)), likely=False):
        head = HEAD.at(f, record)
        interrupted = f.b.and_(f.ne(head.looks, i64(0)), f.eq(status, i32(INTERRUPTED)))
        final = f.b.or_(f.eq(status, i32(-1)), interrupted)
        f.ret_if(f.b.and_(f.ne(head.repeats, i64(0)), f.b.not_(final)), f.module.symbol("miss"))
        f.call("fail", VOID, known, status)
        f.ret(NULL)


def _run_with_captures(f: Function, known: ir.Value, record: ir.Value, buffers: ir.Value, dims: ir.Value) -> None:
    """Run the program, and give variables their new values; or return a miss, or an error.  Between the reading of the
    variables and the setting of the new values no Python code of this thread runs, and nothing is allocated through
    Python."""
    head = HEAD.at(f, record)
    miss, captures, updates = f.module.symbol("miss"), head.captures, head.updates
    *needs, large = _needs(f, record, dims)
    closed = f.ne(f.get(f.module.symbol("closed"), I32), i32(0))
    f.ret_if(f.b.and_(large, closed), miss)
    count = f.b.add(captures, f.b.mul(updates, i64(2)))
    with f.room(count, NULL) as room, f.owned_array(count, None, room) as held:
        fresh = f.element(held, captures, PTR)
        olds = f.element(fresh, updates, PTR)
        gathered = f.local(I32, f.call("gather_captures", I32, record, buffers, dims, fresh))
        elsewhere = f.eq(f.get(gathered, I32), i32(captures_code.TARGETS))
        with f.b.if_then(elsewhere, likely=False):
            f.ret_if(f.b.not_(f.call("make_targets", I1, record, dims, fresh)), NULL)
            f.set(gathered, f.call("gather_captures", I32, record, buffers, dims, fresh))
        f.ret_if(f.ne(f.get(gathered, I32), i32(captures_code.FITS)), miss)
        with f.b.if_then(large, likely=False):
            f.call("begin", VOID, record, held, fresh)
        status = f.call("run", I32, record, buffers, dims, *needs, large)
        with f.b.if_then(large, likely=False):
            f.call("end", VOID, record)
        _fail_if(f, known, record, status)
        with f.b.if_then(elsewhere, likely=False):
            f.call("publish", VOID, record, fresh, olds)


def _notify_python(module: Module) -> None:
    """i1 tell_python(tape, known, result, args, i64 nargs): tell of a call (see ``front_end.Reasons``); or false and an
    error."""
    f = module.function("tell_python", I1, PTR, PTR, PTR, PTR, I64)
    tape, known, result, args, nargs = f.args
    count = f.b.add(nargs, i64(3))
    told = f.local_array(PTR, count)
    for place, value in enumerate((tape, known, result)):
        f.store(value, told, place * WORD)
    with f.count(nargs) as i:
        f.set(f.element(told, f.b.add(i, i64(3)), PTR), f.get(f.element(args, i, PTR), PTR))
    done = f.call("PyObject_VectorcallMethod", PTR, module.symbol("Name_record"), told, count, NULL)
    with f.owned(done) as nothing:
        f.ret(f.b.not_(f.is_null(nothing.value)))


def _try_taped(module: Module, offsets: Offsets) -> None:
    """PyObject *try_taped(self, args, i64 nargs, kwnames): as ``try_all``, where a tape alone has to be told."""
    f = module.function("try_taped", PTR, PTR, PTR, I64, PTR)
    self, args, nargs, kwnames = f.args
    miss = module.symbol("miss")
    here = f.call("state_here", PTR)
    f.ret_if(f.is_null(here), miss)
    with f.owned(here) as state:
        tape = f.load(state.value, offsets.tape.only_tape, PTR)
        f.ret_if(f.is_null(tape), miss)
        f.ret_if(f.eq(tape, module.symbol("_Py_NoneStruct")), miss)
        f.incref(tape)
    named = f.local(I64, i64(0))
    with f.b.if_then(f.b.not_(f.is_null(kwnames)), likely=False):
        f.set(named, f.load(kwnames, object_layout.SIZE, I64))
    total = f.b.add(nargs, f.get(named, I64))
    with f.owned(tape):
        with f.b.if_then(f.call("is_untouched", I1, tape, args, total), likely=False):
            _try_untouched(f, offsets, tape)
        f.ret(f.call("try_told", PTR, self, args, nargs, kwnames, tape, total))


def _untouched_here(module: Module, offsets: Offsets) -> None:
    """i1 untouched_here(args, i64 count): whether the running context has but a tape, which tracks none of these."""
    f = module.function("untouched_here", I1, PTR, I64)
    here = f.call("state_here", PTR)
    f.ret_if(f.is_null(here), FALSE)
    with f.owned(here) as state:
        tape = f.load(state.value, offsets.tape.only_tape, PTR)
        f.ret_if(f.is_null(tape), FALSE)
        f.ret_if(f.eq(tape, module.symbol("_Py_NoneStruct")), FALSE)
        f.ret(f.call("is_untouched", I1, tape, *f.args))


def _try_untouched(f: Function, offsets: Offsets, tape: ir.Value) -> None:
    """Return the result of a call of which no tape has to be told, if a NativeCall that has no tapes in mind fits."""
    self, args, nargs, kwnames = f.args
    miss, table = f.module.symbol("miss"), f.load(self, offsets.dispatch_table, PTR)
    result = f.local(PTR, miss)
    with f.b.if_then(f.b.not_(f.is_null(table))), f.b.if_then(is_type(f, table, "PyTuple_Type")):
        f.set(result, f.call("try_plans", PTR, table, args, nargs, kwnames, tape))
    f.ret_if(f.ne(f.get(result, PTR), miss), f.get(result, PTR))


def _try_plans(module: Module, offsets: Offsets) -> None:
    """PyObject *try_plans(table, args, i64 nargs, kwnames, tape): the result by the first NativeCall that fits and
    reads nothing but arguments, and defaults that the tape does not track, or ``miss``."""
    f = module.function("try_plans", PTR, PTR, PTR, I64, PTR, PTR)
    table, args, nargs, kwnames, tape = f.args
    miss = module.symbol("miss")
    with f.owned(f.incref(table)), f.count(f.load(table, object_layout.SIZE, I64)) as i:
        known = f.get(f.element(f.at(table, object_layout.TUPLE_ITEMS), i, PTR), PTR)
        with f.b.if_then(is_type(f, known, "NativeCall_Type"), likely=True):
            holder = f.load(known, offsets.call_record, PTR)
            f.ret_if(f.is_null(holder), miss)
            head = HEAD.at(f, f.at(holder, object_layout.BYTES_DATA))
            untouched = f.call("is_untouched", I1, tape, head.default_objects, head.defaults)
            with f.b.if_then(f.b.and_(untouched, f.eq(head.captures, i64(0))), likely=True):
                result = f.call("attempt", PTR, known, args, nargs, kwnames)
                with f.b.if_then(f.ne(result, miss), likely=True):
                    f.ret(result)
    f.ret(miss)


def _try_notified(module: Module, offsets: Offsets) -> None:
    """PyObject *try_told(self, args, i64 nargs, kwnames, tape, i64 total): the result by the first NativeCall that
    fits, of which the tape is told, or ``miss``."""
    f = module.function("try_told", PTR, PTR, PTR, I64, PTR, PTR, I64)
    self, args, nargs, kwnames, tape, total = f.args
    miss, table = module.symbol("miss"), f.load(self, offsets.taped_table, PTR)
    f.ret_if(f.is_null(table), miss)
    f.ret_if(f.b.not_(is_type(f, table, "PyTuple_Type")), miss)
    f.ret_if(f.eq(f.load(table, object_layout.SIZE, I64), i64(0)), miss)
    values = f.local_array(PTR, total)
    with f.owned(f.incref(table)), f.owned_array(total) as read:
        with f.count(total) as i:  # variables stand for their values
            value = f.local(PTR, f.get(f.element(args, i, PTR), PTR))
            with f.b.if_then(is_type(f, f.get(value, PTR), "Variable_Type"), likely=False):
                tensor = f.call("read_variable", PTR, tape, f.get(value, PTR))
                f.ret_if(f.eq(tensor, miss), miss)
                f.put(f.element(read, i, PTR), tensor)
                f.ret_if(f.is_null(tensor), NULL)
                f.set(value, tensor)
            f.set(f.element(values, i, PTR), f.get(value, PTR))
        with f.count(f.load(table, object_layout.SIZE, I64)) as i:
            known = f.get(f.element(f.at(table, object_layout.TUPLE_ITEMS), i, PTR), PTR)
            with f.b.if_then(is_type(f, known, "NativeCall_Type"), likely=True):
                result = f.call("attempt", PTR, known, values, nargs, kwnames)
                with f.b.if_then(f.ne(result, miss), likely=True):
                    f.ret_if(f.is_null(result), NULL)
                    with f.owned(result) as held:
                        _notify_tape(f, tape, known, held.value, values, total)
                        f.ret(held.given())
    f.ret(miss)


def _notify_tape(
    f: Function, tape: ir.Value, known: ir.Value, result: ir.Value, args: ir.Value, count: ir.Value
) -> None:
    """Tell a tape of a call; return an error."""
    told = f.call("tell", I32, tape, known, result, args, count)
    f.ret_if(f.eq(told, i32(tape_log_code.FAILED)), NULL)
    with f.b.if_then(f.eq(told, i32(tape_log_code.UNKNOWN)), likely=False):
        f.ret_if(f.b.not_(f.call("tell_python", I1, tape, known, result, args, count)), NULL)


def _try_all(module: Module, offsets: Offsets) -> None:
    """PyObject *try_all(self, args, i64 nargs, kwnames): the result by the first NativeCall that fits, or ``miss``."""
    f = module.function("try_all", PTR, PTR, PTR, I64, PTR)
    self, args, nargs, kwnames = f.args
    miss = module.symbol("miss")
    with f.b.if_then(f.b.not_(fast_path_check_code.is_idle(f)), likely=False):
        f.ret(f.call("try_taped", PTR, *f.args))
    table = f.load(self, offsets.dispatch_table, PTR)
    f.ret_if(f.is_null(table), miss)
    f.ret_if(f.b.not_(is_type(f, table, "PyTuple_Type")), miss)
    with f.owned(f.incref(table)), f.count(f.load(table, object_layout.SIZE, I64)) as i:
        known = f.get(f.element(f.at(table, object_layout.TUPLE_ITEMS), i, PTR), PTR)
        with f.b.if_then(is_type(f, known, "NativeCall_Type"), likely=True):
            result = f.call("attempt", PTR, known, args, nargs, kwnames)
            with f.b.if_then(f.ne(result, miss), likely=True):
                f.ret(result)
    f.ret(miss)


def _call(module: Module) -> None:
    """PyObject *call(self, args, i64 nargs, kwnames): ``self(*args, **kwargs)``."""
    f = module.function("call", PTR, PTR, PTR, I64, PTR)
    self, args, nargs, kwnames = f.args
    result = balanced(f, "try_all", *f.args)
    f.ret_if(f.ne(result, module.symbol("miss")), result)
    method = f.call("PyObject_GetAttr", PTR, self, module.symbol("Name_slow"))
    with f.owned(method, counted=False) as slow:  # other calls begin and end while it runs
        f.ret_if(f.is_null(slow.value), NULL)
        f.ret(f.call("PyObject_Vectorcall", PTR, slow.value, args, nargs, kwnames))


def _export(module: Module, name: str, body: str, keywords: bool = False) -> None:
    """PyObject *name(kernel, args, i64 nargs[, kwnames]): what ``body`` gives, NotImplemented for a miss."""
    f = module.function(name, PTR, PTR, PTR, I64, *([PTR] if keywords else []))
    result = balanced(f, body, *f.args)
    f.ret_if(f.ne(result, module.symbol("miss")), result)
    f.ret(f.incref(module.symbol("_Py_NotImplementedStruct")))


def balanced(f: Function, body: str, *args: ir.Value) -> ir.Value:
    """Call a function; in a checked module, when no call is under way any more, SystemError for references that are
    still owned, or were given back too often."""
    if not f.module.checked:
        return f.call(body, PTR, *args)
    under_way, balance = (f.module.ir.globals[name] for name in (UNDER_WAY, BALANCE))
    f.set(under_way, f.b.add(f.get(under_way, I64), i64(1)))
    result = f.local(PTR, f.call(body, PTR, *args))
    left = f.b.sub(f.get(under_way, I64), i64(1))
    f.set(under_way, left)
    wrong = f.b.and_(f.eq(left, i64(0)), f.ne(f.get(balance, I64), i64(0)))
    with f.b.if_then(wrong, likely=False):
        f.set(balance, i64(0))
        error = f.get(f.module.symbol("PyExc_SystemError"), PTR)
        f.call("PyErr_SetString", VOID, error, f.module.symbol("unbalanced"))
        f.set(result, NULL)
    return f.get(result, PTR)


def _sample(module: Module) -> None:
    """i32 sample(buffers, dims, arena, host): a program for the self-test: inverts the bits of float32[n]."""
    f = module.function("sample", I32, PTR, PTR, PTR, PTR)
    buffers, dims = f.args[:2]
    x, y = f.get(buffers, PTR), f.load(buffers, WORD, PTR)
    with f.count(f.get(dims, I64)) as i:
        value = f.get(f.element(x, i, I32), I32)
        f.set(f.element(y, i, I32), f.b.not_(value))
    f.ret(i32(0))


def _forget_state(module: Module, offsets: TapeOffsets) -> None:
    """void forget_state(state): the last context that held a state is gone; it is not counted any more."""
    f = module.function("forget_state", VOID, PTR)
    (state,) = f.args
    with f.b.if_then(f.eq(f.load(state, offsets.is_counted, PTR), module.symbol("_Py_TrueStruct"))):
        f.set(module.symbol("busy"), f.b.sub(f.get(module.symbol("busy"), I32), i32(1)))
    f.ret()
