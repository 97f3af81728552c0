"""The native side of the team of threads: ``parallel_for`` of a host (see ``compiler/program.py``).

A job is a task over units, which are cut into pieces.  Each member (the caller, number 0, and the threads, from 1 on)
has pieces of its own, neighbours.  So what one kernel leaves in a core's cache is read there by the next one.  It takes
them from the front, and when it has none left it takes those of others from the back.  Nobody waits for a thread that
is late: others have done its pieces by then, and it finds nothing.

The pieces that a member has left are one word, of 64 bits:

    number of the job << 32  |  first piece << 16  |  piece behind the last one

Taking a piece is one exchange of that word, which fails where anything of it has changed.  So it also says that what
was read of the job before it is of this job: what describes a job is written while no word has pieces left, and a word
with the number of a job is written after it.

Threads are made when there is work for them.  One that has nothing to do looks for work for a short time, and then
sleeps until it is woken; waking goes down a tree, since each call of the system takes its caller some microseconds.
A small job is done by its caller: what it takes to wake a thread depends on whether it sleeps.

One job is done at a time.  Who calls while another one is at it does its own work.
"""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable

import llvmlite.ir as ir

from hybridflow.runtime.native.ir_builder import (
    FALSE,
    I1,
    I8,
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
from hybridflow.runtime.native.records import TEAM_HOST
from hybridflow.runtime.thread_pool_words import (
    LOOKING,
    MOST,
    PIECE,
    PIECES,
    SINGLE_THREAD,
    SLEEPING,
    SPIN_CHECK,
    STACK,
    THREADS,
    WAIT,
)
from hybridflow.runtime.threads import core_affinity_code
from hybridflow.runtime.threads.thread_count import FUTEX

LINES = 128  # bytes between words that different threads write: lines of a cache come in pairs
MEMBER = 2 * LINES  # of a member: the pieces that it has left; behind LINES bytes whether it is asleep
AWAKE, ASLEEP = 0, 1

WAIT_PRIVATE, WAKE_PRIVATE = 128, 129
SIGNALS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL")  # that a thread causes itself

_SIGNAL_SET = ir.ArrayType(I64, 16)  # a sigset_t takes no more anywhere


def build(futex: bool, placed: bool, checked: bool = False) -> str:
    """The module: ``parallel_for``; ``team_forget()``, for a child of a fork; and ``team_started``, how many threads
    there are, and ``team_refused``, whether the system would not make more.  Whether threads are ``placed`` depends on
    what the system has (``thread_count.has_places``)."""
    module = Module(checked)
    for name in ("team_started", "team_refused", "jobs"):
        module.variable(name, I64)
    for name in ("task", "args", "units", "piece", "pieces", "members", "mode"):
        module.variable(name, I64)
    for name in ("owner", "done", "waiting"):
        _apart(module, name, I8, LINES)
    _apart(module, "team", I8, MOST * MEMBER)
    _floating_point(module)
    if futex:
        _waiting_by_futex(module)
    else:
        _waiting_by_condition(module)
    if placed:
        core_affinity_code.build(module, MOST)
    else:
        core_affinity_code.build_nothing(module)
    _take(module)
    _work(module)
    _wake(module)
    _thread(module)
    _make_threads(module)
    _wait(module)
    _share(module)
    _parallel_for(module)
    _forget(module, futex)
    return str(module.ir)


def _apart(module: Module, name: str, type_: ir.Type, count: int) -> None:
    """A variable whose lines of the cache hold nothing else."""
    module.variable(name, type_, count)
    module.ir.globals[name].align = LINES


def _variable(f: Function, name: str) -> ir.Value:
    return f.module.ir.globals[name]


def _member(f: Function, number: ir.Value) -> ir.Value:
    """The word of the pieces that a member has left."""
    return f.at(_variable(f, "team"), f.b.mul(number, i64(MEMBER)))


def _state(f: Function, number: ir.Value) -> ir.Value:
    """Whether a member is asleep."""
    return f.at(_member(f, number), LINES)


# ---- what systems and machines differ in


def _floating_point(module: Module) -> None:
    """i64 floating_point(): how this thread rounds and what it does with denormal numbers.  Void use_floating_point(i64
    mode): do as another thread does, so that it makes no difference whose piece an element is in."""
    get, put = module.function("floating_point", I64), module.function("use_floating_point", VOID, I64)
    if platform.machine() in ("x86_64", "AMD64"):
        word = get.local(I32)
        get.call("llvm.x86.sse.stmxcsr", VOID, word)
        control = get.b.and_(get.get(word, I32), i32(~0x3F))  # without the flags of what has happened
        get.ret(get.b.zext(control, I64))
        put.call("llvm.x86.sse.ldmxcsr", VOID, put.local(I32, put.b.trunc(put.args[0], I32)))
    elif platform.machine() in ("aarch64", "arm64"):
        get.ret(get.call("llvm.aarch64.get.fpcr", I64))
        put.call("llvm.aarch64.set.fpcr", VOID, put.args[0])
    else:
        get.ret(i64(0))
    put.ret()


def _waiting_by_futex(module: Module) -> None:
    """void park(ptr word, i32 value): sleep while the word has that value, or for less.  Void unpark(ptr word): wake
    who sleeps there."""
    number = i64(FUTEX[platform.machine()])
    park = module.function("park", VOID, PTR, I32)
    park.call_variadic("syscall", I64, 1, number, park.args[0], i32(WAIT_PRIVATE), park.args[1], NULL)
    park.ret()
    unpark = module.function("unpark", VOID, PTR)
    unpark.call_variadic("syscall", I64, 1, number, unpark.args[0], i32(WAKE_PRIVATE), i32(1))
    unpark.ret()


def _waiting_by_condition(module: Module) -> None:
    """The same by one condition variable for all words: who is woken looks whether it is meant."""
    for name in ("mutex", "condition"):
        _apart(module, name, I8, LINES)
    for name in ("park", "unpark"):
        f = module.function(name, VOID, PTR, *([I32] if name == "park" else []))
        mutex, condition = _variable(f, "mutex"), _variable(f, "condition")
        f.call("pthread_mutex_lock", I32, mutex)
        if name == "park":
            with f.b.if_then(f.eq(f.atomic_load(f.args[0], I32), f.args[1])):
                f.call("pthread_cond_wait", I32, condition, mutex)
        else:
            f.call("pthread_cond_broadcast", I32, condition)
        f.call("pthread_mutex_unlock", I32, mutex)
        f.ret()


def _prepare_condition(f: Function) -> None:
    """Systems differ in what these are at first."""
    for kind, name in (("mutex", "mutex"), ("cond", "condition")):
        f.call(f"pthread_{kind}_init", I32, _variable(f, name), NULL)


def _look(f: Function, condition: Callable[[], ir.Value], most: int, member: ir.Value) -> ir.Value:
    """Write code that looks for a condition for so many nanoseconds; whether it came true.  Where that member is on the
    core of who hands it work, the core is offered to whoever waits for it; else strangers would have it for long."""
    met, passed, start = f.local(I1), f.local(I64), f.monotonic_ns()

    def goes_on() -> ir.Value:
        f.set(met, condition())
        return f.b.and_(f.b.not_(f.get(met, I1)), f.b.icmp_signed("<", f.get(passed, I64), i64(most)))

    f.set(passed, i64(0))
    with f.loop(goes_on):
        f.pause()
        f.set(passed, f.b.sub(f.monotonic_ns(), start))
        is_long = f.b.icmp_signed(">", f.get(passed, I64), i64(SINGLE_THREAD))
        with f.b.if_then(f.b.and_(is_long, f.b.not_(f.call("is_apart", I1, member)))):
            f.call("sched_yield", I32)
    return f.get(met, I1)


# ---- a job


def _take(module: Module) -> None:
    """i1 take(i64 member, i64 other, i64 job, i1 back): do a piece of the job that ``other`` has left; whether there
    was one."""
    f = module.function("take", I1, I64, I64, I64, I1)
    member, other, job, back = f.args
    word = _member(f, other)
    pieces = f.local(I64, f.atomic_load(word, I64))
    taken = f.local(I64)

    def is_left() -> ir.Value:
        left = f.get(pieces, I64)
        first, end = f.b.and_(f.b.lshr(left, i64(16)), i64(0xFFFF)), f.b.and_(left, i64(0xFFFF))
        f.set(taken, f.b.select(back, f.b.sub(end, i64(1)), first))
        return f.b.and_(f.eq(f.b.lshr(left, i64(32)), job), f.b.icmp_unsigned("<", first, end))

    with f.loop(is_left):
        names = ("task", "args", "units", "piece", "pieces", "mode")
        task, args, units, piece, count, mode = (f.atomic_load(_variable(f, name), I64) for name in names)
        left = f.get(pieces, I64)
        rest = f.b.select(back, f.b.sub(left, i64(1)), f.b.add(left, i64(1 << 16)))
        previous, same = f.compare_exchange(word, left, rest)
        with f.b.if_then(same, likely=True):
            with f.b.if_then(f.ne(f.call("floating_point", I64), mode), likely=False):
                f.call("use_floating_point", VOID, mode)
            begin = f.b.mul(f.get(taken, I64), piece)
            behind = f.b.add(begin, piece)
            end = f.b.select(f.b.icmp_signed("<", behind, units), behind, units)
            f.call_pointer(f.b.inttoptr(task, PTR), VOID, f.b.inttoptr(args, PTR), begin, end, member)
            before = f.fetch_add(_variable(f, "done"), i32(1))
            is_last = f.eq(f.b.add(before, i32(1)), f.b.trunc(count, I32))
            # It is another job's caller that waits, if the one of this job did not have to: then it is woken in vain.
            is_waiting = f.ne(f.atomic_load(_variable(f, "waiting"), I32), i32(0))
            with f.b.if_then(f.b.and_(is_last, is_waiting), likely=False):
                f.call("unpark", VOID, _variable(f, "done"))
            f.ret(TRUE)
        f.set(pieces, previous)
    f.ret(FALSE)


def _work(module: Module) -> None:
    """void work(i64 member, i64 job, i64 members): do pieces until nobody has any left."""
    f = module.function("work", VOID, I64, I64, I64)
    member, job, members = f.args
    with f.loop(lambda: f.call("take", I1, member, member, job, FALSE)):
        pass
    other = f.local(I64, member)
    empty = f.local(I64, i64(1))  # members that were found to have nothing, one after another
    with f.loop(lambda: f.b.icmp_signed("<", f.get(empty, I64), members)):
        following = f.b.add(f.get(other, I64), i64(1))
        f.set(other, f.b.select(f.eq(following, members), i64(0), following))
        f.set(empty, f.b.add(f.get(empty, I64), i64(1)))
        with f.loop(lambda: f.call("take", I1, member, f.get(other, I64), job, TRUE)):
            f.set(empty, i64(1))
    f.ret()


def _wake(module: Module) -> None:
    """void wake(i64 member, i64 members): wake the two members that are below this one in a tree, if they sleep, and
    see that they run elsewhere than their waker does."""
    f = module.function("wake", VOID, I64, I64)
    member, members = f.args
    wanted = f.load(f.module.symbol("team_words"), 8 * THREADS, I64)
    first = f.b.add(f.b.mul(member, i64(2)), i64(1))
    with f.count(i64(2)) as k:
        child = f.b.add(first, k)
        with f.b.if_then(f.b.icmp_signed("<", child, members)):
            f.call("place", VOID, child, wanted)
            state = _state(f, child)
            with f.b.if_then(f.eq(f.atomic_load(state, I32), i32(ASLEEP))):
                before = f.exchange(state, i32(AWAKE))
                with f.b.if_then(f.eq(before, i32(ASLEEP))):
                    f.call("unpark", VOID, state)
    f.ret()


# ---- threads


def _thread(module: Module) -> None:
    """ptr thread(ptr): what a thread runs.  Its argument is made of its number and, in the upper half, of the number of
    the last job that it has nothing to do with."""
    f = module.function("thread", PTR, PTR)
    argument = f.b.ptrtoint(f.args[0], I64)
    member, seen = f.b.and_(argument, i64(0xFFFFFFFF)), f.local(I64, f.b.lshr(argument, i64(32)))
    word, state = _member(f, member), _state(f, member)
    job = f.local(I64)

    def is_new() -> ir.Value:
        f.set(job, f.b.lshr(f.atomic_load(word, I64), i64(32)))
        return f.ne(f.get(job, I64), f.get(seen, I64))

    with f.loop(lambda: TRUE):
        with f.b.if_then(f.b.not_(_look(f, is_new, SPIN_CHECK, member))):
            f.exchange(state, i32(ASLEEP))
            with f.loop(lambda: f.b.and_(f.eq(f.atomic_load(state, I32), i32(ASLEEP)), f.b.not_(is_new()))):
                f.call("park", VOID, state, i32(ASLEEP))
            f.exchange(state, i32(AWAKE))
        with f.b.if_then(is_new()):
            f.set(seen, f.get(job, I64))
            members = f.atomic_load(_variable(f, "members"), I64)
            f.call("wake", VOID, member, members)
            f.call("work", VOID, member, f.get(job, I64), members)
    f.ret(NULL)


def _make_threads(module: Module) -> None:
    """void make_threads(i64 members): make those threads of so many members, the caller being one, that there are not.
    Where the system refuses one there will be no more until somebody says otherwise."""
    f = module.function("make_threads", VOID, I64)
    (members,) = f.args
    started, refused = _variable(f, "team_started"), _variable(f, "team_refused")
    with f.b.if_then(f.ne(f.get(refused, I64), i64(0))):
        f.ret()
    none, before = f.local(_SIGNAL_SET), f.local(_SIGNAL_SET)
    attributes, thread = f.local(ir.ArrayType(I64, 32)), f.local(I64)
    failed = f.local(I32)
    # Python's handlers run in its main thread, whose calls of the system are to be interrupted: signals stay there.
    f.call("sigfillset", I32, none)
    for name in SIGNALS:
        f.call("sigdelset", I32, none, i32(getattr(signal, name)))
    f.call("pthread_sigmask", I32, i32(signal.SIG_SETMASK), none, before)
    f.call("pthread_attr_init", I32, attributes)
    f.call("pthread_attr_setstacksize", I32, attributes, i64(STACK))

    def is_missing() -> ir.Value:
        missing = f.b.icmp_signed("<", f.b.add(f.get(started, I64), i64(1)), members)
        return f.b.and_(missing, f.eq(f.get(refused, I64), i64(0)))

    with f.loop(is_missing):
        number = f.b.add(f.get(started, I64), i64(1))
        seen = f.b.and_(f.atomic_load(_member(f, number), I64), i64(-1 << 32))
        argument = f.b.inttoptr(f.b.or_(number, seen), PTR)
        f.set(failed, f.call("pthread_create", I32, thread, attributes, f.address_of("thread"), argument))
        with f.b.if_else(f.eq(f.get(failed, I32), i32(0))) as (is_created, not_made):
            with is_created:
                f.call("pthread_detach", I32, f.get(thread, I64))
                f.call("placed_thread", VOID, number, f.get(thread, I64))
                f.set(started, number)
            with not_made:
                f.set(refused, i64(1))
    f.call("pthread_attr_destroy", I32, attributes)
    f.call("pthread_sigmask", I32, i32(signal.SIG_SETMASK), before, NULL)
    f.ret()


# ---- what the caller does


def _wait(module: Module) -> None:
    """void wait_for(i32 pieces): return when so many pieces are done."""
    f = module.function("wait_for", VOID, I32)
    (count,) = f.args
    done, waiting = _variable(f, "done"), _variable(f, "waiting")
    with f.b.if_then(_look(f, lambda: f.eq(f.atomic_load(done, I32), count), WAIT, i64(1))):
        f.ret()
    f.exchange(waiting, i32(1))
    so_far = f.local(I32)

    def goes_on() -> ir.Value:
        f.set(so_far, f.atomic_load(done, I32))
        return f.ne(f.get(so_far, I32), count)

    with f.loop(goes_on):
        f.call("park", VOID, done, f.get(so_far, I32))
    f.exchange(waiting, i32(0))
    f.ret()


def _share(module: Module) -> None:
    """void share(ptr task, ptr args, i64 units, i64 piece, i64 pieces, i64 members): have the team do the pieces.  The
    caller owns the team."""
    f = module.function("share", VOID, PTR, PTR, I64, I64, I64, I64)
    task, args, units, piece, pieces, members = f.args
    jobs = _variable(f, "jobs")
    job = f.b.and_(f.b.add(f.get(jobs, I64), i64(1)), i64(0xFFFFFFFF))
    f.set(jobs, job)
    mode = f.call("floating_point", I64)
    words = (f.b.ptrtoint(task, I64), f.b.ptrtoint(args, I64), units, piece, pieces, members, mode)
    for name, word in zip(("task", "args", "units", "piece", "pieces", "members", "mode"), words):
        f.atomic_store(word, _variable(f, name))
    f.exchange(_variable(f, "done"), i32(0))
    with f.count(members) as k:
        first = f.b.udiv(f.b.mul(pieces, k), members)
        end = f.b.udiv(f.b.mul(pieces, f.b.add(k, i64(1))), members)
        word = f.b.or_(f.b.or_(f.b.shl(job, i64(32)), f.b.shl(first, i64(16))), end)
        f.exchange(_member(f, k), word)
    f.call("wake", VOID, i64(0), members)
    f.call("work", VOID, i64(0), job, members)
    f.call("wait_for", VOID, f.b.trunc(pieces, I32))
    f.ret()


def _least(f: Function, a: ir.Value, b: ir.Value) -> ir.Value:
    return f.b.select(f.b.icmp_signed("<", a, b), a, b)


def _in_whole(f: Function, a: ir.Value, b: ir.Value) -> ir.Value:
    return f.b.sdiv(f.b.add(a, f.b.sub(b, i64(1))), b)


def members_of(f: Function, workers: ir.Value, units: ir.Value, grain: ir.Value, work: ir.Value) -> ir.Value:
    """How many of ``workers`` are given pieces of a job: 0 or 1 where one thread does it all."""
    shares = f.b.sdiv(work, f.load(f.module.symbol("team_words"), 8 * PIECE, I64))
    return _least(f, _least(f, workers, _in_whole(f, units, grain)), shares)


def piece_for(
    f: Function, members: ir.Value, units: ir.Value, grain: ir.Value, least: ir.Value, work: ir.Value
) -> ir.Value:
    """The units of the pieces that a job is cut into for two ``members`` or more."""
    grains, shares = _in_whole(f, units, grain), f.b.sdiv(work, f.load(f.module.symbol("team_words"), 8 * PIECE, I64))
    each = _least(f, f.b.sdiv(shares, members), i64(PIECES))  # 1 or more: members are no more than shares
    size, most = _in_whole(f, grains, f.b.mul(each, members)), _in_whole(f, grains, members)
    wanted = _least(f, _in_whole(f, least, grain), most)
    # Of units that differ two large ones may be neighbours, which no two members could do side by side in one piece.
    size = f.b.select(f.eq(least, i64(0)), _in_whole(f, grains, i64(0xFFFF)), size)
    return f.b.mul(f.b.select(f.b.icmp_signed("<", size, wanted), wanted, size), grain)


def _parallel_for(module: Module) -> None:
    """void team_for(ptr host, ptr task, ptr args, i64 units, i64 grain, i64 least, i64 work): see ``program.HOST``.
    Behind the words of the host is the work of the whole program."""
    f = module.function("team_for", VOID, PTR, PTR, PTR, I64, I64, I64, I64)
    host, task, args, units, grain, at_least, work = f.args

    def limit(number: int) -> ir.Value:
        return f.load(f.module.symbol("team_words"), 8 * number, I64)

    def alone() -> None:
        f.call_pointer(task, VOID, args, i64(0), units, i64(0))
        f.ret()

    with f.b.if_then(f.b.icmp_signed("<", work, limit(LOOKING)), likely=False):
        alone()
    members = members_of(f, TEAM_HOST.at(f, host).workers, units, grain, work)
    with f.b.if_then(f.b.icmp_signed("<=", members, i64(1)), likely=False):
        alone()
    with f.b.if_then(f.b.icmp_signed("<", TEAM_HOST.at(f, host).work, limit(SLEEPING)), likely=False):
        sleeps = f.eq(f.atomic_load(_state(f, i64(1)), I32), i32(ASLEEP))
        none = f.eq(f.get(_variable(f, "team_started"), I64), i64(0))
        with f.b.if_then(f.b.or_(sleeps, none)):
            alone()
    owner = _variable(f, "owner")
    _, got = f.compare_exchange(owner, i32(0), i32(1))
    with f.b.if_then(f.b.not_(got), likely=False):
        alone()
    f.call("make_threads", VOID, members)
    members = _least(f, members, f.b.add(f.get(_variable(f, "team_started"), I64), i64(1)))
    with f.b.if_then(f.b.icmp_signed("<=", members, i64(1)), likely=False):
        f.exchange(owner, i32(0))
        alone()
    piece = piece_for(f, members, units, grain, at_least, work)
    pieces = _in_whole(f, units, piece)
    members = _least(f, members, pieces)
    f.call("share", VOID, task, args, units, piece, pieces, members)
    f.exchange(owner, i32(0))
    f.ret()


def _forget(module: Module, futex: bool) -> None:
    """void team_forget(): there are no threads, and no job, in the child of a fork."""
    f = module.function("team_forget", VOID)
    for name in ("team_started", "team_refused"):
        f.set(_variable(f, name), i64(0))
    for name in ("owner", "done", "waiting"):
        f.exchange(_variable(f, name), i32(0))
    with f.count(i64(MOST)) as k:
        f.exchange(_state(f, k), i32(AWAKE))
        word = _member(f, k)
        f.exchange(word, f.b.and_(f.atomic_load(word, I64), i64(-1 << 32)))
    f.call("forget_places", VOID)
    if not futex:
        _prepare_condition(f)
    f.ret()
