"""Numbers that guide fusion and schedules and that no theory gives: each was measured, or bounds the time to compile.

``benchmarks/thresholds.py`` measures again those that say so.  What follows from a machine's registers and caches is
computed from the ``Target`` instead (see ``schedule``).
"""

from __future__ import annotations

# ---- which nodes share a kernel (``cluster``)

# Compiling a kernel takes longer than in proportion to its body, and keeping more values in flight saves nothing:
# `thresholds.py members` shows both times for chains of these lengths.
MAX_MEMBERS = 256
MAX_WORK = 4096  # instructions per element
MAX_REDUCTIONS = 16
RECENT = 8  # clusters among which a node without producers looks for company; bounds a search, not code

# ---- which values are computed again (``stored``, ``kernel``)

CHEAP = 10  # instructions per element that may be repeated rather than kept in memory: `thresholds.py cheap`
MAX_DEPTH = 12  # of computing again what is computed again: rules of ops call each other that deep
MAX_MOVED = 256  # instructions that may move, with a value, into its reader's kernel
MAX_RECOMPUTED = 4096  # instructions of one kernel that belong to others' values
GATHERED_FRACTION = (
    4  # times fewer than an array that is written in place: what is looked up there is kept, not the array
)

CACHE_LINE = 64  # bytes of a line of cache
CHUNKS_OF_ONE_STREAM = 4  # chunks of an array, of which memory gives more than of one: `thresholds.py inturn`
MAX_NONTEMPORAL_STREAMS = (
    2  # arrays that are written past the caches at once: a core gathers few lines: `thresholds.py streams`
)
LONG_NONTEMPORAL_ROW = 4096  # bytes of a row that is written past the caches though its ends are parts of lines
FAR_AWAY = 1 << 16  # bytes from an array, where there may be no memory: what is masked there is read elsewhere
NEAR = 256  # lines between two reads of one line, while it is sure to be in a first-level cache: `thresholds.py near`

# ---- how far views are read through (``reader``)

# A view is a piece of index arithmetic, and costs nothing, until reshapes on axes in another order pile up divisions of
# divisions, which double with each of them, or until the rules of a long row of views call each other too deep.
MAX_DIVISIONS = 1
MAX_VIEWS = 24

# ---- loop bodies (``schedule``)

BUSY = 16  # instructions from which on a body waits for arithmetic rather than for memory: `thresholds.py turn`
LONG = 800  # instructions of a loop's body that are compiled in about 15 ms: `thresholds.py turn`
MAX_VECTORS = 4  # vectors a turn of a map: two units of arithmetic with latencies of two to four: `thresholds.py turn`
CALL = 4  # instructions for each that is done by a function beside the body
LIGHT = 8  # instructions of a body that may be repeated for each vector of a reduction's step: `thresholds.py light`

MAX_TERMS = 4  # of a column, folded before its accumulators are stored: `thresholds.py terms`
TERMS_WORK = 48  # instructions of these terms together

LONG_REMAINDER = 4  # vectors of a row, for each lane of one, behind which its rest may go by elements; not measured
REMAINDER_WORK = LONG // 4  # instructions of a body that rests repeat
MAX_REMAINDER_ITERATIONS = 8  # of a short loop in it, each of which adds some shuffles; not measured
LONG_ROW = 16  # vectors of a row whose statistics are given reciprocals to divide by them: `thresholds.py row`

# ---- tiles (``schedule``)

ACCUMULATORS = 4  # groups of 64 terms of a few columns that are folded at once, so that no add waits for another
TILE = 2048  # columns whose accumulators stay in a first-level cache of 32 KiB together: `thresholds.py tile`
CELLS = 128 * 1024  # bytes that all statistics of a tile, or a chunk of what is folded in lines, may take
ON_STACK = 4096  # bytes that one function keeps on the stack: a thread of a caller's may have 64 KiB, or less left

# ---- units (``schedule``): what may be cut among threads

ENOUGH = 64  # units that keep the threads of any machine busy until the end: loops within them are not cut as well
SMALL = 4096  # elements of a unit that is not cut further: about 2 us of work, as long as it takes to wake a thread
COLUMN_STRIP = (
    64  # columns of a strip that is not cut further: lines of a cache, whole vectors, and not just one of them
)
SPLIT_REDUCTION = 1 << 18  # elements from which on few results are folded in two phases: `thresholds.py split`
MIN_SPLIT_SIZE = 256  # elements for one partial result, which would take too much memory and time for fewer

BLOCK_BYTES = 48 * 1024  # of memory that a block can have without asking for more: CUDA's manual

# ---- teams of threads on a GPU (``schedule``): none of these has been measured

WARP = 32
ENOUGH_ON_GPU = 1 << 14  # threads that fill a GPU of 128 multiprocessors to a few per scheduler
ENOUGH_GROUPS = 64  # blocks that can take up most of the bandwidth of memory
SPLIT_ON_GPU = 1 << 13  # elements for whose fold one thread takes as long as a second launch
SPLIT_AMONG_GROUPS = 1 << 16  # elements of a row from which on several blocks fold it: those that one reads at once
MIN_GROUP_ROW = 16  # elements of a row that is left to a single thread: half of a warp would have nothing to do
MAX_WARPS = 16  # of a block, whose threads may then have 128 registers
VECTOR_BYTES = 16  # that a thread of a GPU reads at once
MAX_ELEMENTS_PER_THREAD = 8  # elements of a thread, whose values all are in registers
VECTORS_ON_GPU = 1 << 16  # elements of a map from which on threads with several each are still enough
TRANSPOSE_GROUP = 256  # threads for a tile of a thousand elements, which is read across
GROUP_SCAN_LINE = 512  # elements from which on a line is scanned by a team
ENOUGH_LINES = 512  # lines of which each may be scanned by a team, one chunk after the other
MANY_LINES = 1 << 16  # that lie side by side, of which each may be a thread's own
GROUP_SHARED_BYTES = 16 * 1024  # of memory of a block: a multiprocessor has enough for several
ENOUGH_COLUMNS = 1 << 18  # of a scatter, of which each may be a thread's own: these have enough loads under way
FEW_UPDATES = 8  # that a thread adds as fast as they are sorted
MOVED_BYTES = 32 * 1024  # that a block sorts in its memory before it moves them in runs
NETWORK_BYTES = 24 * 1024  # of keys and numbers that a block sorts by exchanges
MIN_COOPERATIVE_THREADS = 64  # threads that run the graphs of a loop or a branch: a block of its own has two warps
MAX_COOPERATIVE_THREADS = 512  # ... whose threads may then have 128 registers
COOPERATIVE_SCRATCH_BYTES = 1 << 25  # bytes of scratch memory that they share
ROW_BLOCK_GROUP = 128  # threads for a panel of 16 rows and more: of a tile, each brings an element of either side
ROW_BLOCKS_PER_MULTIPROCESSOR = (
    4  # of a multiprocessor, if it has memory for them; with more of them, threads have few registers
)
MIN_NETWORK = 1024  # elements of a piece, of which a few are wanted

# ---- short loops across longer ones (``schedule``)

SHORT_LOOP = 16  # turns of a loop that is unrolled within vectors along another: `thresholds.py short`
MAX_OUTER_VECTORIZED_WORK = 2 * LONG  # instructions of such a body
MIN_OUTER_LANES = 4  # lanes: shorter vectors are not worth the shuffles

# ---- kernels of their own (``codegen``: ``scan``, ``vectors``, ``contract``, ``sort``)

TRANSPOSE_SQUARE = 8  # lines whose elements are turned together: squares of 16 cost more to compile than they save
SHORT_LINE = 8  # elements from which on lines of a scan are turned: `thresholds.py shortline`
LONG_LINE = 256  # elements from which on the runs of one line of a scan are turned instead: `thresholds.py longline`
FEW_LINES = 4  # lines that a square does not pay for: `thresholds.py fewlines`
LANE_CELLS = 32 * 1024  # bytes for the lanes of neighbouring lines, which then are near: `thresholds.py neighbours`
LANE_GROUPS = 4  # of lanes that are added at once to such lines: each is a stretch of memory of its own
SIDE_BY_SIDE = 4  # lines that are summed along them at once
LONG_LINES = 1024  # elements from which on more go together than registers have room for: `thresholds.py longlines`
FOLDED = 4  # lanes of each that are folded at once
LIGHT_FACTOR = 4  # instructions of an element of a factor that are computed where it is used; not measured
TILES_TRIED = 6  # tiles of a product that a tuner compares: those of the least estimated time
PACKED_COLUMNS = 1024  # of a product per packing of its other factor: `thresholds.py packed`
PANELS_PER_PASS = 8  # panels of kept columns that are packed line by line: `thresholds.py together`
LINES_AT_ONCE = 4  # lines of a product's factor that are added to a row of sums: `thresholds.py lines`
KEPT_ROWS = 4096  # of the other factor, for which packed columns are kept: `thresholds.py kept`
KEPT_BLOCKS = 4  # of rows, where extents are symbolic
KEPT_TOTALS = 1 << 20  # bytes of totals that may lie beside them
SMALL_SYRK = 2  # panels of columns up to which a small product is better computed whole, without packing
MIN_SYRK_DEPTH = 32  # depth of a symmetric product of which one half is turned from the other: `thresholds.py halving`
MIN_PACKED_EXTENT = 512  # rows or columns of a piece of a product that are worth packing the other factor for
NARROW = 16  # panels of columns for which rows are read where they lie: `thresholds.py inplace`
FAR = 1024  # bytes between elements of a factor that are read where they lie; lines four times as far apart collide
PREFETCHED_ROWS = 2  # rows of a factor that are asked for while one is packed
ENOUGH_PANELS = 16  # of a product's columns, which are then cut rather than rows: `thresholds.py panels`
FAR_MORE = 2  # rows for each column of a product, whose rows are cut then
FEW_UNITS = 8  # of a product whose depth is cut as well, into as many blocks as pay; not measured
FEW_TILES = 4  # for which no panel of columns is packed that can be read where it lies: `thresholds.py tiles`
FEW_TILES_OF_LINES = 2  # ... where bytes of the panel are widened for each tile; measured with 256 x 1024
SUMS_PER_ITERATION = 56  # of the innermost loop of a product, where longer turns are slower: `thresholds.py turns`
MAX_CELLS = 4  # along the depth in such a turn
CYCLES_PER_TILE = 60  # a call, and the latencies at the ends of its loop
# A tile of a convolution: a call, the latencies at the ends of its loops, and totals on their way to the epilogue.
CYCLES_PER_WINDOW_TILE = 100
UNKNOWN_IMAGES = 4  # for how many a symbolic number of images is taken when work is cut
ENOUGH_WINDOW_UNITS = 16  # of a convolution, so many that blocks of lines need not be smaller; not measured
FEW_GROUP_COLUMNS = 4  # of a group of a convolution, of which threads of a GPU have one each
LEAST_GRADIENT_TILES = 64  # of a worker: the strips that it copies, once a piece, serve all of them
ALL_PAIRS = 64  # elements up to which comparing all is quicker than summing counters: `thresholds.py pairs`
MAX_STRIDED_LOAD = 6  # elements from one lane to the next that are read with all between: `thresholds.py apart`; with 8
# columns of eight take three times as long to compile
MAX_STRIDED_STORE = 4  # ... that are written so, or read where lanes are chosen for it
MAX_LANE_SORT = 256  # elements of lines that are sorted a line in each lane: `thresholds.py fewsorted`
MAX_INSERTED = 128  # elements of a list in which new ones are inserted
HISTOGRAM_BYTES = 32 * 1024  # of a table of counters, which has to stay in a first-level cache; not measured
MIN_UPDATES_PER_CELL = 4  # from which on tables of counters pay for being emptied and added up; not measured
PATIENCE = 32  # of them inserted before the rest of the line is looked over for a bound (`thresholds.py patience`), and
MORE_PATIENCE = 64  # a further one for so many elements of the line: a look costs about as much as these insertions
FEW_OF = 16  # times as many elements as are wanted: so many are worth looking through for them
SORT_BLOCK = 1 << 15  # elements of a single line that are counted and moved together: `thresholds.py sort`

# Fourier transforms: rows of so many numbers, of which there are but few, are shared out by vectors.
SHARED_TRANSFORM = 4096
FEW_TRANSFORMS = 8
