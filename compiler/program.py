"""A Program: what the compiler hands to the runtime.  Frozen data; the only thing that both sides know.

The machine-code entry of a CPU program is

    i32 entry(ptr buffers, ptr dims, ptr arena, ptr host)

``buffers``   pointers: one per input, one per output, then one per updated state input, in the order of the inputs, to
              where its new value goes.  Those of outputs and updates are distinct, fresh, 64-byte aligned buffers; but
              an update whose slot is ``in_place`` may be given its input's own buffer.
``dims``      i64 values of the symbolic extents, in the order of ``Program.dims``
``arena``     at least ``arena_bytes + W * scratch_bytes`` (functions of dims) bytes, 64-byte aligned, where W is the
              number of the host's workers; dead after the call
``host``      null, or who is asked (see ``HOST``).  A program that ``needs_python`` needs one.  ``Program.entry`` runs
              all in the calling thread, and W is 1; the shared entry, of the same type, has the host run tasks.  The
              ``entry`` of a program with ``tasks`` needs a host, too
returns 0, or 1 + the position in ``checks``, which are in program order, of the first check that failed; in a program
that ``looks`` for interrupts they begin with one for that, and ``INTERRUPTED`` is returned.  After a
failure outputs and fresh buffers hold no meaning, and every input holds what it held before: ``in_place`` are only
updates that are written when no check can fail any more.

Inputs are C-contiguous.
"""

from __future__ import annotations

from typing import Any

from hybridflow.compiler.ir.extents import (
    LEAST as LEAST,
    Dim as Dim,
    Extent as Extent,
    dividend as dividend,
    products_of as products_of,
    value_at as value_at,
)
from hybridflow.compiler.ir.polynomial import Quotient as Quotient
from hybridflow.compiler.target import Target
from hybridflow.quick_dataclasses import dataclass

# The words of a host, in order: functions in C's calling convention, then a number.  A program that calls one of them
# passes the host's own address first.
#
# void parallel_for(ptr host, ptr task, ptr args, i64 units, i64 grain, i64 least, i64 work)
#     calls void task(ptr args, i64 begin, i64 end, i64 worker) until the units from 0 to ``units`` are done: in pieces
#     that begin at multiples of ``grain``, in any order, by its workers side by side.  Calls that overlap in time have
#     different numbers ``worker``, which are less than ``workers``.  Returns when all is done.  It pays to give
#     a piece ``least`` units if there are so many for each worker; where ``least`` is 0, units differ in what they
#     take, and each is worth a piece.  ``work`` is about how much all of it is, as ``Program.work`` counts.
# i32 callback(ptr host, i64 number, ptr args)
#     calls what ``Program.callbacks`` has at that number.  ``args`` are the addresses of its operands, then of where
#     its results go.  0 unless it raises, which ends the program like a check that fails.  May come from any thread,
#     but never from two at a time.
# ptr alloc(ptr host, i64 bytes)
#     64-byte aligned memory, null where there is none;
# void free(ptr host, ptr memory)
#     gives it back.
# i64 workers
#     how many tasks run side by side at the most.
HOST = ("parallel_for", "callback", "alloc", "free", "workers")

INTERRUPTED = 1  # the status of a program that has looked for interrupts, and has found one
INTERRUPT_POLL = "hf_interrupted"  # the function of the process that programs look with: ``inline_control_flow``
# i32 hf_exchange(ptr record, ptr source, ptr target), a function of the process: exchanges an array with the processes
# that share replicas out.  0 unless it fails, which ends the program like a check that fails.
EXCHANGE = "hf_exchange"
LEAST_SHARED = 1 << 21  # work, see ``Program.work``: some 3 us, in which the threads of a host can be of use


def shared_entry(entry: str) -> str:
    """The symbol of the entry that has a host run the program, in the text with ``Program.sharing`` behind it."""
    return f"{entry}.shared"


@dataclass(frozen=True)
class Slot:
    """Type of one input or output buffer: extents are known or follow from ``Program.dims``; dtype is a short name."""

    shape: tuple[Extent, ...]
    dtype: str
    name: str = ""
    updated: bool = False  # an input whose new value the program computes: state, or what a call gives up
    in_place: bool = False  # ... and may write over the old one


@dataclass(frozen=True)
class DimSource:
    """Where a symbol is read: axis ``axis`` of input ``input`` has ``scale * symbol + offset`` elements."""

    name: str
    input: int
    axis: int
    scale: int = 1
    offset: int = 0

    def value(self, extent: int) -> int:
        return (extent - self.offset) // self.scale


@dataclass(frozen=True)
class Check:
    """A run-time check in a kernel: the name of an exception in hybridflow.errors, its stage and text, and the line.
    If what there is to say was raised in Python, ``place`` is the number of the callback."""

    error: str
    stage: str
    message: str
    where: str | None
    place: int | None = None


@dataclass(frozen=True)
class HostFunction:
    """A function in Python that programs know by its name, with ``options`` that it takes as keywords."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Callback:
    """A place where a program calls Python: a function that has a name, or the one of that number among those that the
    program is loaded with.  In the place of a call that is ``retried`` the program fails where there is no host: who
    calls it runs it once more, with one.  In the place of an ``exchange`` it calls ``EXCHANGE``: the function only says
    what has failed there."""

    function: int | HostFunction
    operands: tuple[Slot, ...]
    results: tuple[Slot, ...]
    where: str | None
    retried: bool = False
    exchange: bool = False


@dataclass(frozen=True)
class KernelInfo:
    """One kernel, for people: ``ops`` as fused, ``lines`` of the user's source, work per call when it is known."""

    name: str
    symbol: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    bytes: int | None
    flops: int | None
    note: str = ""  # why it was not fused with its neighbours
    schedule: str = ""  # how its loops run
    wave: int = 0  # those of one wave may run side by side
    facts: str = ""  # what its schedule was chosen by, where somebody chose, and from how many
    candidates: int = 1


@dataclass(frozen=True)
class Buffer:
    """Device memory: ``kind`` is "input", "output" or "update" (of the input of that number), or "arena", from byte
    ``offset`` on."""

    kind: str
    number: int = 0
    offset: Extent = 0


@dataclass(frozen=True)
class DeviceCopy:
    """CUDA: bytes copied from one device buffer to another."""

    source: Buffer
    target: Buffer
    size: Extent


@dataclass(frozen=True)
class Launch:
    """CUDA: the launch of one phase of a kernel.  The entry point ``symbol`` takes ``Program.words_of`` it: as i64, the
    addresses of

        arguments..., scratch, failed, status

    and then the number of units and the values of ``Program.dims``.  They come by value, as one array, unless the
    program is ``indirect``: then it takes the address of memory of the device that holds them.

    Team t of T walks units t, t + T, ...; it is the ``team`` threads from t * ``team`` on.  A block has as many as are
    whole teams, ``block`` at the most; a team of more than a warp is one.  A team owns ``scratch_bytes`` bytes (a
    function of dims) from t times as many bytes after ``scratch`` on.  A block asks for ``memory`` bytes of its own.
    A launch that ``raises`` records a failed check in the i32 at ``status``.
    ``failed`` is the status of the last launch before it that raises, which it hands on in its own status; no launch
    does anything else where that is the status of a check that is earlier than all which it, or a launch after it,
    could find failed.
    Where no launch raises, both addresses may be null.  Status codes are minus those of ``entry``.
    All threads of one that runs ``together`` do its work together; ``units`` are the threads that can be of use.  Its
    blocks, of ``team`` threads each, wait for each other, so all of them must be on the device at once; ``scratch`` is
    the address of an i64 that is 0 when they begin.
    Launches of one ``wave`` may run side by side, but for those of one ``kernel`` (see ``Program.kernels``), and for
    those that raise.
    """

    symbol: str
    arguments: tuple[Buffer, ...]
    units: Extent  # how many: the threads that can be of use
    scratch_bytes: Extent
    raises: bool
    block: int
    group_size: int = 1
    wave: int = 0
    kernel: int = 0
    cooperative: bool = False
    memory: int = 0


@dataclass(frozen=True)
class Matrix:
    """CUDA: matrices of a batch in device memory.  They have lines, which are their rows or, where they are ``turned``,
    their columns; elements of a line are neighbours.  From a line to the next one, and from a matrix to the next one,
    are ``pitch`` and ``stride`` elements."""

    buffer: Buffer
    transposed: bool
    pitch: Extent
    stride: Extent


@dataclass(frozen=True)
class LibraryCall:
    """CUDA: what a library may do in the place of all launches of ``kernel`` (see ``Program.kernels``): ``batch``
    products of ``left``, m by k, and ``right``, k by n, to ``result``, whose lines are rows.  Its bits are not theirs.
    Where there are ``least`` multiplications and more that pays.

    Factors are of dtype ``factors``, the result of ``sums``, short names of floats; sums are float32.  ``rounds``:
    factors of float32 may be rounded to TF32.
    """

    kernel: int
    factors: str
    sums: str
    rounds: bool
    batch: Extent
    m: Extent
    n: Extent
    k: Extent
    left: Matrix
    right: Matrix
    result: Matrix
    least: int

    @property
    def work(self) -> Extent:
        """How many multiplications there are."""
        return self.batch * self.m * self.n * self.k


# Of an indirect program: the entry point that takes the address of device memory, and WORDS_AT_ONCE words by value,
# which its one thread writes there.
SET_WORDS = "set_words"
WORDS_AT_ONCE = 256


@dataclass(frozen=True)
class Program:
    name: str
    target: Target
    text: str  # LLVM IR of the whole module
    entry: str  # symbol of the driver (CPU); unused where ``launches`` are given
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    dims: tuple[DimSource, ...]
    arena_bytes: Extent
    checks: tuple[Check, ...] = ()  # in program order
    kernels: tuple[KernelInfo, ...] = ()
    callbacks: tuple[Callback, ...] = ()
    scratch_bytes: Extent = 0  # CPU: for each worker
    work: Extent = 0  # CPU: 8 for each byte that kernels move, and 1 for each operation on an element
    sharing: str = ""  # CPU: what to add to ``text`` for the shared entry; empty where nothing can be shared out
    polls_interrupts: bool = (
        False  # CPU: whether loops in it look for interrupts, for which the caller gives up Python's lock
    )
    is_unbounded: bool = False  # CPU: whether there are loops of which nobody knows before how often they turn
    # CPU, of a program that is to be timed: its ``entry`` has the host run one phase after another, each as a whole by
    # one worker, and these are the kernels (numbers among ``kernels``) that the phases belong to.
    tasks: tuple[int, ...] | None = None
    indirect: bool = False  # CUDA: where entry points find what they are told, see ``Launch``
    # CUDA: ``before`` are copied first, then come the launches, and ``after`` is copied if no check failed.
    launches: tuple[Launch, ...] = ()
    library_calls: tuple[LibraryCall, ...] = ()  # CUDA: what may run in the place of some of the launches
    before: tuple[DeviceCopy, ...] = ()
    after: tuple[DeviceCopy, ...] = ()

    @property
    def needs_python(self) -> bool:
        """Whether it cannot run without a host that calls Python."""
        return not all(callback.retried or callback.exchange for callback in self.callbacks)

    @property
    def exchanges(self) -> bool:
        """Whether it waits for other processes."""
        return any(callback.exchange for callback in self.callbacks)

    def words_of(self, launch: Launch) -> int:
        """How many words an entry point is told."""
        return len(launch.arguments) + 4 + len(self.dims)

    def memory(self, workers: int = 1) -> Extent:
        """Bytes that ``entry`` takes as its arena when that many workers run it."""
        return self.arena_bytes + self.scratch_bytes * workers
