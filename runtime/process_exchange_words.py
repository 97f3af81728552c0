"""What the native exchange between processes reads and writes: words of a group, of a record, and of the board."""

from __future__ import annotations

# Words of a group, which one process has for itself.
(
    RANK,
    SIZE,
    NUMBER,  # of the last round
    BOARD,  # the address of the first slot
    HALF,  # bytes of half an outbox
    BOXES,  # the address of a table of the addresses of outboxes
    SPINS,  # looks before it sleeps
    TIMEOUT,  # nanoseconds
    PEERS,  # the address of a ``struct pollfd`` for the socket to each other process
    SCRATCH,  # memory for blocks of unfinished sums
    HELD,  # 1 while a thread is at it
    STATUS,  # 0, or how it has failed
    WHO,  # the rank of whom it has failed for
    GROUP_WORDS,
) = range(14)

LOST, TIMED_OUT, DIFFERENT, INTERRUPTED, FORKED = range(1, 6)  # statuses

# Words of a record, which says what is exchanged.  Behind them are the rows of each process; steps, each of which adds
# the last two nodes (-1) or takes one (``rank << 32 | row``); and a text.
(
    KIND,
    HASH,
    ROWS,  # the most of a process
    ROW_BYTES,
    ELEMENT,  # bytes
    ADD,  # the position among DTYPES
    COUNT,  # elements of a row
    CHUNK,  # elements of a row in one round
    SHARED,  # whether each process finishes the tree for its share alone
    STEPS,
    TEXT_LENGTH,
    WORDS,
) = range(12)
GATHER, SUM = 0, 1
DTYPES = (("i1", 1), ("i2", 2), ("i4", 4), ("i8", 8), ("f4", 4), ("f8", 8))  # kinds of elements; unsigned as signed

# Bytes of the slot of a process on the board.
SLOT = 1024
ARRIVED, LEFT = 0, 4  # i32: the number of the last round; whether it takes part no longer
SLEEPERS = 64  # i32: how many sleep until it comes
HEADERS = 128  # of the last two rounds: a hash of what is exchanged, and bytes
NOTE = 192  # the number of the round, since when (nanoseconds), and the length of a text
SINCE, LENGTH, TEXT = NOTE + 8, NOTE + 16, NOTE + 24
TEXT_ROOM = SLOT - TEXT

BLOCK = 4096  # bytes of a row that are added up at a time
DEPTH = 72  # blocks of unfinished sums
SLICE = 20_000_000  # nanoseconds for which a process sleeps before it looks whether others are there
