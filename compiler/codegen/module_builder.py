"""A planned graph as one LLVM module: a function per kernel, and the driver that runs them in order."""

from __future__ import annotations

from hybridflow.compiler.codegen import contract, scan, scatter, sort
from hybridflow.compiler.codegen.cost import instructions
from hybridflow.compiler.codegen.elements import Elements, Place
from hybridflow.compiler.codegen.emitter import Emitter, Val
from hybridflow.compiler.codegen.module import ModuleText
from hybridflow.compiler.codegen.nest import Nest
from hybridflow.compiler.codegen.segments import Segments
from hybridflow.compiler.codegen.structured import Code, Ref, SpecialKernel, kernel_parameters
from hybridflow.compiler.ir.dtypes import SHORT
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.types import Dim, is_static, static_size
from hybridflow.compiler.loops.buffers import ArenaRange, Copy, InputBuffer, Location, Plan, add, aligned, byte_size
from hybridflow.compiler.loops.cluster import Fusion, Kernel, base
from hybridflow.compiler.loops.index import Index, LoopVar
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.index import range_check
from hybridflow.compiler.program import Check, DimSource, KernelInfo, Program, Size, Slot
from hybridflow.compiler.target import Target
from hybridflow.errors import short_location

ENTRY = "hf_main"


def dim_sources(graph: Graph) -> tuple[DimSource, ...]:
    """Every symbolic extent and the first input axis that has it."""
    found: dict[str, DimSource] = {}
    for i, node in enumerate(graph.inputs):
        for axis, extent in enumerate(node.shape):
            if isinstance(extent, Dim):
                found.setdefault(extent.name, DimSource(extent.name, i, axis))
    return tuple(found.values())


class ModuleBuilder:
    def __init__(self, graph: Graph, fusion: Fusion, plan: Plan, target: Target, fastmath: bool) -> None:
        self.graph, self.fusion, self.plan, self.target, self.fastmath = graph, fusion, plan, target, fastmath
        self.module = ModuleText(target)
        self.dims = dim_sources(graph)
        self.dim_names = [d.name for d in self.dims]
        self.checks: list[Check] = []
        self.infos: list[KernelInfo] = []

    def build(self) -> Program:
        calls = [self._kernel(k, kernel) for k, kernel in enumerate(self.plan.kernels)]
        arena = self._driver([c for c in calls if c is not None])
        return Program(
            self.graph.name,
            self.target,
            self.module.render(),
            ENTRY,
            tuple(_slot(n, i in self.graph.updates) for i, n in enumerate(self.graph.inputs)),
            tuple(_slot(n, False) for n in self.graph.outputs),
            self.dims,
            arena,
            tuple(self.checks),
            tuple(self.infos),
        )

    # ---- kernels

    def _emitter(self) -> Emitter:
        e = Emitter(self.target, 1, self.fastmath)
        e.on_check, e.status = self._check_code, "%status"
        return e

    def _check_code(self, check: Check) -> int:
        if check not in self.checks:
            self.checks.append(check)
        return self.checks.index(check) + 1

    def _kernel(self, number: int, kernel: Kernel) -> tuple[Kernel, str, SpecialKernel, list[Node], bool] | None:
        if all(is_static(r.shape) and static_size(r.shape) == 0 for r in kernel.roots):
            if not any(n.op.may_raise(tuple(i.type for i in n.inputs), n.attrs) for n in kernel.nodes):
                return None
        symbol = f"k{number}"
        e = self._emitter()
        checks_before = len(self.checks)
        operands = [*kernel.inputs, *kernel.roots]
        kind = kernel.cluster.kind
        if kind is Kind.ELEMENTWISE or kind is Kind.SEGMENT:
            pointers = {node: f"%a{i}" for i, node in enumerate(operands)}
            code = Code(e, self.dim_names, [Dim(name) for name in self._used_dims(kernel)])
            if kind is Kind.SEGMENT:
                Segments(e, code, kernel, self.fusion.is_leaf, pointers).write()
                shape = SpecialKernel(Size(()), ())
            else:
                nest = Nest(e, code, kernel, self.fusion.is_leaf, pointers)
                nest.write()
                scratch = Size(())
                for size in nest.scratch:
                    scratch = add(scratch, size)
                shape = SpecialKernel(scratch, (nest.units,), nest.grain)
            e.line("ret void")
            self.module.function(e, symbol, kernel_parameters(len(operands)), linkage="internal")
        elif kind is Kind.CONTRACT:
            operands, shape = self._contraction(e, symbol, kernel)
        else:
            operands, shape = self._special(e, symbol, kernel)
        self.infos.append(self._info(symbol, kernel))
        raises = len(self.checks) > checks_before or any(
            n.op.may_raise(tuple(i.type for i in n.inputs), n.attrs) for n in kernel.nodes
        )
        return kernel, symbol, shape, operands, raises

    def _used_dims(self, kernel: Kernel) -> list[str]:
        names: dict[str, None] = {}
        for node in (*kernel.nodes, *kernel.inputs):
            names.update((extent.name, None) for extent in node.shape if isinstance(extent, Dim))
        return list(names)

    def _contraction(self, e: Emitter, symbol: str, kernel: Kernel) -> tuple[list[Node], SpecialKernel]:
        node = kernel.cluster.anchor
        x, y = node.inputs
        attrs = node.attrs
        batch, m, n = node.shape[:-2], node.shape[-2], node.shape[-1]
        k = x.shape[-2] if attrs["transpose_a"] else x.shape[-1]
        operands = [base(x), base(y)]
        operands += [i for i in kernel.inputs if i not in operands]
        operands += kernel.roots
        # One buffer may be both factors, so positions are not taken from a dict of pointers.
        pointers = {node: f"%a{i}" for i, node in reversed(list(enumerate(operands)))}
        places = {i: Place(pointers[i]) for i in kernel.inputs}
        space = kernel.cluster.space
        lane = space.vars[-1]
        code = Code(e, self.dim_names, [Dim(name) for name in self._used_dims(kernel)])

        def epilogue(e: Emitter, value: Val, at_batch: str, row: str, col: str, mask: Val | None) -> None:
            if len(space.vars) == 1:
                line = code.add(code.mul(at_batch, code.extent(m)), row)
                counters: dict[LoopVar, Ref] = {lane: code.add(code.mul(line, code.extent(n)), col)}
            else:  # symbolic extents have a loop per axis, and are not batched (see cluster.fits)
                counters = {space.vars[0]: row, lane: col}
            elements = Elements(code, counters, lane, places, {node: value}, mask)
            values = [elements.value(root, Index(root.shape, linear=space.full)) for root in kernel.roots]
            for root, result in zip(kernel.roots, values):
                elements.store(result, pointers[root], space.full)

        plain = kernel.roots == [node]
        shape = contract.emit_matmul(
            self.module,
            e,
            symbol,
            node.dtype,
            batch,
            m,
            n,
            k,
            transpose_a=attrs["transpose_a"],
            transpose_b=attrs["transpose_b"],
            dims=self.dim_names,
            buffers=len(operands),
            epilogue=None if plain else epilogue,
        )
        return operands, shape

    def _special(self, e: Emitter, symbol: str, kernel: Kernel) -> tuple[list[Node], SpecialKernel]:
        """Kinds whose kernels take their operands as they lie in memory."""
        node = kernel.cluster.anchor
        x, axis = node.inputs[0], node.attrs["axis"]
        if node.op.kind is Kind.SORT:
            descending = node.attrs["descending"]
            shape = sort.emit_argsort(self.module, e, symbol, x.dtype, x.shape, axis, descending, self.dim_names)
        elif node.op.kind is Kind.SCAN:
            shape = scan.emit_scan(self.module, e, symbol, node.op, x.dtype, x.shape, axis, self.dim_names)
        else:
            indices = node.inputs[1]
            along = node.op.facts.get("along_axis")
            emit = scatter.emit_scatter_add_along_axis if along else scatter.emit_scatter_add
            check = range_check(node.op.name, x.type, axis, node.where)
            extents = indices.shape[axis] if along else indices.shape
            shape = emit(
                self.module, e, symbol, x.dtype, indices.dtype, x.shape, extents, axis, check, self.dim_names
            )
        return [*(base(n) for n in node.inputs), node], shape

    # ---- the driver

    def _driver(self, calls: list[tuple[Kernel, str, SpecialKernel, list[Node], bool]]) -> Size:
        """Write the entry; returns the arena's size, scratch of the kernels included."""
        e = self._emitter()
        code = Code(e, self.dim_names, [Dim(name) for name in self.dim_names])
        pointers: dict[Location, str] = {}

        def size(bytes: Size) -> Ref:
            total: Ref = 0
            for factor, names in bytes.terms:
                part: Ref = factor
                for name in names:
                    part = code.mul(part, code.extent(Dim(name)))
                total = code.add(total, part)
            return total

        def pointer(place: Location) -> str:
            if place not in pointers:
                if isinstance(place, ArenaRange):
                    pointers[place] = code.at("%arena", size(place.offset), 1)
                else:
                    slot = place.number + (0 if isinstance(place, InputBuffer) else len(self.graph.inputs))
                    pointers[place] = e.fresh("b")
                    e.line(f"{pointers[place]} = load ptr, ptr {code.at('%buffers', slot, 8)}, align 8")
            return pointers[place]

        def copy(item: Copy) -> None:
            e.declares.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
            target, source = pointer(item.target), pointer(item.source)
            e.line(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size(item.size)}, i1 false)")

        for place in self.plan.locations.values():
            pointer(place)
        for item in (*self.plan.before, *self.plan.after):
            pointer(item.source), pointer(item.target)
        status = e.fresh("status")
        if any(raises for *_, raises in calls):
            e.line(f"{status} = alloca i32, align 4")
            e.line(f"store i32 0, ptr {status}, align 4")
        else:
            status = "null"
        for item in self.plan.before:
            copy(item)
        arena = self.plan.arena
        most = Size(())
        for _, _, shape, _, _ in calls:
            most = _larger(most, aligned(shape.scratch))
        scratch = code.at("%arena", size(arena), 1) if most.terms else "null"
        for _, symbol, shape, operands, raises in calls:
            arguments = [f"ptr {pointer(self.plan.locations[base(n)])}" for n in operands]
            units = code.product([Dim(n) if isinstance(n, str) else n for n in shape.units])
            tail = f"ptr {scratch}, ptr %dims, ptr {status}, i64 0, i64 {units}"
            e.line(f"call void @{symbol}({', '.join([*arguments, tail])})")
            if raises:
                self._return_if_failed(e, status)
        for item in self.plan.after:
            copy(item)
        e.line("ret i32 0")
        self.module.function(e, ENTRY, "ptr %buffers, ptr %dims, ptr %arena", result="i32")
        return add(arena, most)

    def _return_if_failed(self, e: Emitter, status: str) -> None:
        """Stop at the first kernel whose check failed: none after it may run on what it left."""
        value, failed = e.fresh("s"), e.fresh("c")
        e.line(f"{value} = load i32, ptr {status}, align 4")
        e.line(f"{failed} = icmp ne i32 {value}, 0")
        stop, go_on = e.new_label("stop"), e.new_label("next")
        e.branch_if(failed, stop, go_on)
        e.label(stop)
        code = e.fresh("s")
        e.line(f"{code} = sub i32 0, {value}")  # checks are recorded as negative codes, see Emitter.raise_if
        e.line(f"ret i32 {code}")
        e.label(go_on)

    # ---- for people

    def _info(self, symbol: str, kernel: Kernel) -> KernelInfo:
        names = [n.op.name for n in kernel.nodes]
        lines = dict.fromkeys(n.where for n in kernel.nodes if n.where)
        name = "_".join(dict.fromkeys(names))
        if len(name) > 60:
            name = f"{names[0]}_to_{names[-1]}_{len(names)}_ops"
        return KernelInfo(
            name,
            symbol,
            tuple(names),
            tuple(short_location(w) for w in lines),
            _traffic(kernel),
            _operations(kernel),
            kernel.cluster.why,
        )


def _slot(node: Node, updated: bool) -> Slot:
    shape = tuple(extent.name if isinstance(extent, Dim) else extent for extent in node.shape)
    return Slot(shape, SHORT[node.dtype], str(node.attrs.get("name", "")), updated)


def _larger(a: Size, b: Size) -> Size:
    """At least the larger of two sizes, whatever the extents."""
    terms: dict[tuple[str, ...], int] = {}
    for factor, names in (*a.terms, *b.terms):
        terms[names] = max(terms.get(names, 0), factor)
    return Size(tuple((factor, names) for names, factor in sorted(terms.items()) if factor))


def _traffic(kernel: Kernel) -> int | None:
    """Bytes read and written once each, when shapes are known."""
    sizes = [byte_size(n) for n in (*kernel.inputs, *kernel.roots)]
    return sum(s.at({}) for s in sizes) if all(s.is_static for s in sizes) else None


def _operations(kernel: Kernel) -> int | None:
    """Arithmetic instructions of elements: two for each product of a contraction, else as the op's rule emits them."""
    total = 0
    for node in kernel.nodes:
        shape = node.inputs[0].shape if node.op.kind is Kind.REDUCE else node.shape
        if not is_static(shape):
            return None
        if node.op.kind is Kind.CONTRACT:
            x = node.inputs[0]
            depth = x.shape[-2] if node.attrs["transpose_a"] else x.shape[-1]
            total += 2 * static_size(shape) * depth
        else:
            total += static_size(shape) * instructions(node)
    return total
