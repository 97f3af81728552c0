"""Products by tensor cores: warps multiply fragments of 16 by 8 by 32 bytes, as ``mma.sync`` does.

How a tensor core rounds is not documented, so these are not the bits of a CPU: for programs compiled with fastmath, and
for products of float32 whose precision allows it.
Factors of 16 bits an element lie in memory of the block as they are in memory: along the depth, or across it, from
where ``ldmatrix`` turns them.  Those of float32 are rounded to TF32 on their way there, and read one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.gpu.group_matmul import GroupTiles, Store
from hybridflow.compiler.codegen.gpu.shared_memory_operands import OperandPair, SharedOperand
from hybridflow.compiler.codegen.products.packed_formats import PackedFormat
from hybridflow.compiler.codegen.products.packing import DEPTH
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.loops.gpu_matmul_tiles import TensorCoreTile

M, N = 16, 8  # of a fragment
SQUARE = 8  # of a matrix that ldmatrix reads, 16 bytes a line
OWN = M * N // 32  # sums of a thread in a fragment
_FOUR = ", ".join(["i32"] * 4)


class TensorCoreTiles(GroupTiles):
    """Each thread has four sums of each fragment of its warp: two neighbours in a row, and two 8 rows below."""

    step = 16  # of a fragment along the depth

    def __init__(
        self,
        code: KernelBuilder,
        tile: TensorCoreTile,
        form: PackedFormat,
        sides: OperandPair,
        extents: tuple[Ref, Ref],
        is_lent: bool,
    ) -> None:
        nbytes = tile.nbytes(form.sums.itemsize)
        super().__init__(code, nbytes, tile.threads, tile.depth, form, sides, extents, is_lent, False)
        c, group, self.tile = code, self.group, tile
        self.down, self.across = c.div(group.warp, tile.warps_across), c.rem(group.warp, tile.warps_across)
        self.fragments = tile.high // M, tile.wide // N

    def _zeros(self) -> list[Val]:
        return [self.e.zero(self.form.sums, 1)] * (self.fragments[0] * self.fragments[1] * OWN)

    def _buffers(self, iteration: Ref) -> tuple[str, str]:
        c, (left, right) = self.c, self.tile.side_bytes
        start = c.at(self.memory, c.mul(iteration, left + right), 1)
        return start, c.at(start, left, 1)

    def _write(self, brought: Sequence[list[Val]], buffers: tuple[str, str]) -> None:
        for side, values, to in zip(self.sides, brought, buffers):
            if side.along == DEPTH:
                side.write_lines(values, to, self.tile.pitch)
            else:
                side.write(values, to, side.tile + SQUARE)

    # ---- sums

    def _added(self, sums: Sequence[Val], buffers: tuple[str, str]) -> list[Val]:
        sums, tile = list(sums), self.tile
        down, across = self.fragments
        row, col = self.c.mul(self.down, tile.high), self.c.mul(self.across, tile.wide)
        for k in range(0, tile.depth, self.step):
            a = [self._matrices(self.sides[0], buffers[0], row, r * M, k, False) for r in range(down)]
            b = [self._matrices(self.sides[1], buffers[1], col, g * M, k, True) for g in range(across * N // M)]
            for r in range(down):
                for g in range(across):
                    at = (r * across + g) * OWN
                    columns = b[g // 2][2 * (g % 2) : 2 * (g % 2) + 2]
                    sums[at : at + OWN] = self._multiplied(a[r], columns, sums[at : at + OWN])
        return sums

    def _matrices(self, side: SharedOperand, buffer: str, first: Ref, behind: int, k: int, by_depth: bool) -> list[str]:
        """Four squares of a factor, of 16 rows or columns by 16 along the depth: those of the next rows first, or
        ``by_depth`` those of the next depth.  The words that a thread has of them."""
        c, e, lane = self.c, self.e, self.group.lane
        line, low, high = c.rem(lane, SQUARE), c.rem(c.div(lane, SQUARE), 2), c.div(lane, 2 * SQUARE)
        next_free, next_depth = (high, low) if by_depth else (low, high)
        free, depth = c.add(c.mul(next_free, SQUARE), behind), c.add(c.mul(next_depth, SQUARE), k)
        if side.along == DEPTH:
            place = c.add(c.mul(c.add(c.add(first, free), line), self.tile.pitch), depth)
        else:
            place = c.add(c.mul(c.add(depth, line), side.tile + SQUARE), c.add(first, free))
        transposed = "" if side.along == DEPTH else ".trans"
        name = f"@llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{transposed}.b16.p3"
        e.declare(f"declare {{{_FOUR}}} {name}(ptr addrspace(3))")
        address, matrices = e.fresh("p"), e.fresh("m")
        e.line(f"{address} = addrspacecast ptr {c.at(buffer, place, 2)} to ptr addrspace(3)")
        e.line(f"{matrices} = call {{{_FOUR}}} {name}(ptr addrspace(3) {address})")
        return self._parts(matrices, f"{{{_FOUR}}}", 4)

    def _multiplied(self, a: Sequence[str], b: Sequence[str], sums: Sequence[Val]) -> list[Val]:
        e, half = self.e, self.form.packed == dt.float16
        kind, words = "<2 x half>" if half else "i32", [*a, *b]
        if half:
            names = [e.fresh("h") for _ in words]
            for target, word in zip(names, words):
                e.line(f"{target} = bitcast i32 {word} to {kind}")
            words = names
        return self._by_cores(f"m16n8k16.row.col.{'f32.f32' if half else 'bf16'}", kind, words, sums)

    def _by_cores(self, shape: str, kind: str, words: Sequence[str], sums: Sequence[Val]) -> list[Val]:
        e, name = self.e, f"@llvm.nvvm.mma.{shape}"
        result = "{float, float, float, float}"
        e.declare(f"declare {result} {name}({', '.join([kind] * 6 + ['float'] * 4)})")
        operands = ", ".join([f"{kind} {word}" for word in words] + [f"float {value.ref}" for value in sums])
        products = e.fresh("m")
        e.line(f"{products} = call {result} {name}({operands})")
        return [Val(ref, dt.float32, 1) for ref in self._parts(products, result, OWN)]

    def _parts(self, struct: str, kind: str, count: int) -> list[str]:
        names = [self.e.fresh("w") for _ in range(count)]
        for k, name in enumerate(names):
            self.e.line(f"{name} = extractvalue {kind} {struct}, {k}")
        return names

    # ---- finished sums

    def _finish(self, sums: list[Val], at: Ref, row: Ref, col: Ref, store: Store) -> None:
        """16 rows of each warp at a time: sums go round, so that one piece of code serves all of them."""
        c, e, tile, group = self.c, self.e, self.tile, self.group
        down, across = self.fragments
        each = across * OWN
        with c.loop(0, down, 1, sums) as iteration:
            top = c.add(c.mul(self.down, M), c.div(group.lane, 4))
            left = c.add(c.mul(self.across, tile.wide), c.mul(c.rem(group.lane, 4), 2))
            for k, value in enumerate(iteration.carried[:each]):
                part, cell = divmod(k, OWN)
                place = c.add(c.mul(c.add(top, cell // 2 * SQUARE), tile.columns), c.add(left, part * N + cell % 2))
                e.store(value, c.at(self.memory, place, self.item))
            group.barrier()
            with c.loop(group.rank, tile.rows // tile.high * M * tile.columns, group.size) as element:
                line, i = c.div(element.index, tile.columns), c.add(col, c.rem(element.index, tile.columns))
                inside = c.add(c.mul(c.div(line, M), tile.high), c.add(c.mul(iteration.index, M), c.rem(line, M)))
                r = c.add(row, inside)
                with c.when(c.both(c.compare("slt", r, self.m), c.compare("slt", i, self.n))), c.width(1):
                    store(e.load(c.at(self.memory, element.index, self.item), self.form.sums), at, r, i)
            group.barrier()
            iteration.next = [*iteration.carried[each:], *iteration.carried[:each]]


class RoundedTensorCoreTiles(TensorCoreTiles):
    """The same of float32, whose elements are rounded to TF32, away from zero where two are as near."""

    step = 8

    def _write(self, brought: Sequence[list[Val]], buffers: tuple[str, str]) -> None:
        super()._write([[self._rounded(value) for value in values] for values in brought], buffers)

    def _rounded(self, value: Val) -> Val:
        e, whole = self.e, value
        name = "@llvm.nvvm.f2tf32.rna"
        e.declare(f"declare i32 {name}(float)")
        for k in range(value.width):
            word, number = e.fresh("w"), e.fresh("r")
            one = value if value.width == 1 else e.extract(value, k)
            e.line(f"{word} = call i32 {name}(float {one.ref})")
            e.line(f"{number} = bitcast i32 {word} to float")
            rounded = Val(number, dt.float32, 1)
            whole = rounded if value.width == 1 else e.insert(whole, rounded, k)
        return whole

    def _added(self, sums: Sequence[Val], buffers: tuple[str, str]) -> list[Val]:
        c, sums, tile = self.c, list(sums), self.tile
        down, across = self.fragments
        line, depth = c.div(self.group.lane, 4), c.rem(self.group.lane, 4)
        row = c.add(c.mul(self.down, tile.high), line)
        col = c.add(c.mul(self.across, tile.wide), line)
        for k in range(0, tile.depth, self.step):
            near, far = c.add(depth, k), c.add(depth, k + 4)
            a = [
                [
                    self._word(0, buffers[0], c.add(row, r * M + below), at)
                    for at in (near, far)
                    for below in (0, SQUARE)
                ]
                for r in range(down)
            ]
            b = [[self._word(1, buffers[1], c.add(col, g * N), at) for at in (near, far)] for g in range(across)]
            for r in range(down):
                for g in range(across):
                    at = (r * across + g) * OWN
                    sums[at : at + OWN] = self._multiplied(a[r], b[g], sums[at : at + OWN])
        return sums

    def _word(self, number: int, buffer: str, free: Ref, depth: Ref) -> str:
        """The bits of an element of a factor."""
        c, e, side = self.c, self.e, self.sides[number]
        if side.along == DEPTH:
            place = c.add(c.mul(free, self.tile.pitch), depth)
        else:
            place = c.add(c.mul(depth, side.tile + SQUARE), free)
        word = e.fresh("w")
        e.line(f"{word} = load i32, ptr {c.at(buffer, place, 4)}, align 4")
        return word

    def _multiplied(self, a: Sequence[str], b: Sequence[str], sums: Sequence[Val]) -> list[Val]:
        return self._by_cores("m16n8k8.row.col.tf32", "i32", [*a, *b], sums)
