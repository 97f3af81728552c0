"""Maps on a GPU that read something across: teams turn square tiles of it in memory of the block.

What the threads of a warp read and write are neighbours in memory both times; rows of one element more than a tile has
keep them out of each other's way between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hybridflow.compiler.codegen.core.elements import Elements
from hybridflow.compiler.codegen.core.kernel_builder import Ref
from hybridflow.compiler.codegen.gpu.thread_group import ThreadGroup
from hybridflow.compiler.codegen.nests.loop_nest import LoopNest, PhaseText
from hybridflow.compiler.index.index_expr import LoopVar
from hybridflow.compiler.loops.schedule import TransposedReads
from hybridflow.compiler.loops.tuning import WARP

_PITCH = WARP + 1


class SharedMemoryTranspose(LoopNest):
    """A tile has as many rows and columns as a warp has threads.  A unit is a tile of the last loop and the one along
    which the turned inputs lie."""

    def write(self) -> list[PhaseText]:
        transposed = self.schedule.transposed
        assert transposed is not None
        sides = transposed.vector_loop, self.space.vars[-1]
        tiles = tuple(LoopVar(f"tiles of {v.name}", -(-v.extent // WARP)) for v in sides)
        loops = (*(v for v in self.space.vars if v not in sides), *tiles)
        with self._phase(loops, group=self.schedule.group_size), self._loops(loops):
            corner = {side: self.code.mul(self.counters[tile], WARP) for side, tile in zip(sides, tiles)}
            assert self.thread_group is not None
            self._write_tile(self.thread_group, transposed, corner)
        return self.phases

    def _write_tile(self, group: ThreadGroup, transposed: TransposedReads, corner: dict[LoopVar, Ref]) -> None:
        code, e, last = self.code, self.e, self.space.vars[-1]
        cells, base = [], group.memory(self.schedule.shared_memory_bytes)
        for node, _ in transposed.reads:
            cells.append(base)
            base = code.at(base, WARP * _PITCH, node.dtype.itemsize)
        with self._places(group, corner, transposed.vector_loop) as place:
            elements = self._elements(None)
            for (node, position), kept in zip(transposed.reads, cells):
                size = node.dtype.itemsize
                value = e.load(code.at(self.pointers[node], elements.ref(position), size), node.dtype)
                e.store(value, code.at(kept, place(_PITCH, 1), size))
        group.barrier()
        with self._places(group, corner, last) as place:
            rows = {
                (self.pointers[node], position): code.at(kept, place(1, _PITCH), node.dtype.itemsize)
                for (node, position), kept in zip(transposed.reads, cells)
            }
            elements = Elements(code, self.counters, last, self.places, self.given, None, rows)
            self._store_roots(elements, self.kernel.roots, self.space.full)
        group.barrier()

    @contextmanager
    def _places(
        self, group: ThreadGroup, corner: dict[LoopVar, Ref], along: LoopVar
    ) -> Iterator[Callable[[int, int], Ref]]:
        """The elements of a tile that there are, threads of a warp ``along`` one side: ``place(other, own)`` is where
        one lies whose neighbours have these distances."""
        code = self.code
        (other,) = (side for side in corner if side is not along)
        with code.loop(group.warp, WARP, group.warps) as iteration:
            self.counters[along] = code.add(corner[along], group.lane)
            self.counters[other] = code.add(corner[other], iteration.index)
            inside: str | bool = True
            for side in corner:
                if not (isinstance(side.extent, int) and side.extent % WARP == 0):
                    inside = code.both(inside, code.compare("slt", self.counters[side], code.extent(side.extent)))

            def place(distance: int, stride: int) -> Ref:
                return code.add(code.mul(iteration.index, distance), code.mul(group.lane, stride))

            with code.when(inside):
                yield place
