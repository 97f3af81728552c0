"""Where the threads of a team run: on other cores than who hands them work.

Who calls is at work itself, so that a thread on the same core would wait until the caller has done everything alone.
Systems mostly see to that, but not where they are guests: there an idle core looks as if its host had taken it away.  A
thread that is woken is left where it woke last, beside its caller, for as long as both come and go.  So the core of
whoever wakes a thread is taken out of those that the thread may run on, and put back when the caller is elsewhere. All
other cores remain: who shares the machine with others is moved out of their way as before.

Of each thread there are its handle; the core of the caller, plus one, and the number of threads when its cores were
last looked at, and the moment; the core that was taken out, plus one; and the set of cores that it was given then.  A
set that somebody else has changed since is theirs.
"""

from __future__ import annotations

import llvmlite.ir as ir

from hybridflow.runtime.native.ir_builder import I1, I32, I64, PTR, VOID, Function, Module, i32, i64

_THREAD, _SEEN, _MOMENT, _TAKEN, _CORES = 0, 8, 16, 24, 64  # bytes
_WORDS = 16  # of a set of cores: 1024 of them, as in cpu_set_t
_SIZE = _CORES + 8 * _WORDS
_SELDOM = 1_000_000  # nanoseconds between two moves of a thread, however its callers change


def build(module: Module, most: int) -> None:
    """void place(i64 member, i64 members): see that a thread, one of so many, runs elsewhere than the caller.  Void
    placed_thread(i64 member, i64 thread): a thread is new.  Void forget_places(): there are no threads."""
    module.variable("places", I64, most * _SIZE // 8)
    _move(module)
    _place(module)
    f = module.function("placed_thread", VOID, I64, I64)
    f.store(f.args[1], _of(f, f.args[0]), _THREAD)
    f.ret()
    f = module.function("is_apart", I1, I64)
    f.ret(f.ne(f.load(_of(f, f.args[0]), _TAKEN, I64), i64(0)))
    f = module.function("forget_places", VOID)
    f.call("memset", PTR, module.ir.globals["places"], i32(0), i64(most * _SIZE))
    f.ret()


def build_nothing(module: Module) -> None:
    """The same where the system has no such thing."""
    for name, arguments in (("place", (I64, I64)), ("placed_thread", (I64, I64)), ("forget_places", ())):
        module.function(name, VOID, *arguments).ret()
    module.function("is_apart", I1, I64).ret(ir.Constant(I1, 0))


def _of(f: Function, member: ir.Value) -> ir.Value:
    return f.at(f.module.ir.globals["places"], f.b.mul(member, i64(_SIZE)))


def _place(module: Module) -> None:
    f = module.function("place", VOID, I64, I64)
    member, members = f.args
    record, core = _of(f, member), f.call("sched_getcpu", I32)
    with f.b.if_then(f.b.icmp_unsigned(">=", core, i32(64 * _WORDS)), likely=False):  # or an error, which is negative
        f.ret()
    core = f.b.add(f.b.zext(core, I64), i64(1))
    seen = f.b.or_(f.b.shl(members, i64(32)), core)
    with f.b.if_then(f.ne(f.load(record, _SEEN, I64), seen), likely=False):
        moment = f.monotonic_ns()
        passed = f.b.sub(moment, f.load(record, _MOMENT, I64))
        with f.b.if_then(f.b.icmp_signed(">", passed, i64(_SELDOM))):
            f.store(seen, record, _SEEN)
            f.store(moment, record, _MOMENT)
            f.call("move", VOID, record, core, members)
    f.ret()


def _move(module: Module) -> None:
    """void move(ptr own, i64 core, i64 members): take that core, plus one, from those of a thread, if there are enough
    for all members; put back what was taken before."""
    f = module.function("move", VOID, PTR, I64, I64)
    record, core, members = f.args
    thread, size, known = f.load(record, _THREAD, I64), i64(8 * _WORDS), f.at(record, _CORES)
    cores = f.local(ir.ArrayType(I64, _WORDS))
    with f.b.if_then(f.ne(f.call("pthread_getaffinity_np", I32, thread, size, cores), i32(0)), likely=False):
        f.ret()

    def word_and_bit(core: ir.Value) -> tuple[ir.Value, ir.Value]:
        number = f.b.sub(core, i64(1))
        return f.element(cores, f.b.lshr(number, i64(6)), I64), f.b.shl(i64(1), f.b.and_(number, i64(63)))

    taken, is_changed = f.load(record, _TAKEN, I64), f.local(I1, ir.Constant(I1, 0))
    is_ours = f.eq(f.call("memcmp", I32, cores, known, size), i32(0))
    with f.b.if_then(f.b.and_(f.ne(taken, i64(0)), is_ours)):
        word, bit = word_and_bit(taken)
        f.set(word, f.b.or_(f.get(word, I64), bit))
        f.set(is_changed, ir.Constant(I1, 1))
    f.store(i64(0), record, _TAKEN)
    count = f.local(I64, i64(0))
    with f.count(i64(_WORDS)) as k:
        in_word = f.call("llvm.ctpop.i64", I64, f.get(f.element(cores, k, I64), I64))
        f.set(count, f.b.add(f.get(count, I64), in_word))
    word, bit = word_and_bit(core)
    is_there = f.ne(f.b.and_(f.get(word, I64), bit), i64(0))
    with f.b.if_then(f.b.and_(is_there, f.b.icmp_signed(">=", f.get(count, I64), members))):
        f.set(word, f.b.xor(f.get(word, I64), bit))
        f.store(core, record, _TAKEN)
        f.set(is_changed, ir.Constant(I1, 1))
    with f.b.if_then(f.get(is_changed, I1)):
        f.call("memcpy", PTR, known, cores, size)
        f.call("pthread_setaffinity_np", I32, thread, size, cores)
    f.ret()
