"""A planned graph as one LLVM module: a function per kernel, and what runs them in order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from hybridflow.compiler.codegen.control import driver
from hybridflow.compiler.codegen.control.control_flow import SubgraphFunction, operands_of, write_control
from hybridflow.compiler.codegen.control.dispatch import KernelCall
from hybridflow.compiler.codegen.control.inline_control_flow import checks_of
from hybridflow.compiler.codegen.core.cost_model import instructions, work_of_element
from hybridflow.compiler.codegen.core.elements import Elements, MemoryPlace
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.kernel_dedup import (
    BufferPart,
    KernelKey,
    SharedKernelCode,
    kernel_key,
    template_of,
)
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.codegen.core.operand import Operand, counters_at
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.gpu import cuda_launches
from hybridflow.compiler.codegen.gpu.cooperative import threads_for
from hybridflow.compiler.codegen.gpu.group_segments import GroupConcatSegments
from hybridflow.compiler.codegen.gpu.library_calls import by_library, describe_schedule
from hybridflow.compiler.codegen.gpu.shared_memory_operands import is_aligned
from hybridflow.compiler.codegen.gpu.shared_memory_transpose import SharedMemoryTranspose
from hybridflow.compiler.codegen.lowerings import emit_block
from hybridflow.compiler.codegen.nests.concat_segments import ConcatSegments, InterleavedConcat
from hybridflow.compiler.codegen.nests.elementwise import ElementwiseNest
from hybridflow.compiler.codegen.nests.inner_reduction import InnerReduction
from hybridflow.compiler.codegen.nests.loop_nest import LoopNest
from hybridflow.compiler.codegen.nests.outer_reduction import OuterReduction
from hybridflow.compiler.codegen.nests.outer_vectorized import OuterVectorized
from hybridflow.compiler.codegen.nests.row_block_loop import write_row_blocks
from hybridflow.compiler.codegen.nests.split_inner_reduction import SplitInnerReduction
from hybridflow.compiler.codegen.nests.split_outer_reduction import SplitOuterReduction
from hybridflow.compiler.codegen.products import convolution_lowering, matmul
from hybridflow.compiler.codegen.products.syrk import is_symmetric
from hybridflow.compiler.index.index_expr import Index, LoopVar
from hybridflow.compiler.index.iteration_space import over
from hybridflow.compiler.ir.dtypes import SHORT
from hybridflow.compiler.ir.extents import Extent, affine, larger
from hybridflow.compiler.ir.graph import Graph, Node, graphs_in
from hybridflow.compiler.ir.results import is_token, parts_of
from hybridflow.compiler.ir.types import Shape, TensorType, is_static, product, same_size, static_size
from hybridflow.compiler.loops.access_analysis import visited_shape
from hybridflow.compiler.loops.alias_analysis import AliasAnalysis, AliasPairs
from hybridflow.compiler.loops.buffer_assignment import Plan, byte_size
from hybridflow.compiler.loops.interrupt_checks import any_polls_interrupts, polls_interrupts
from hybridflow.compiler.loops.kernel import PRODUCTS, Fusion, Kernel, accesses, between, has_effect, loops_of
from hybridflow.compiler.loops.schedule import Form, LoopFacts, Schedule, schedules
from hybridflow.compiler.loops.schedule_choice import USUAL, Choices, Choose, Chooser
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.contraction_dims import Contraction
from hybridflow.compiler.ops.lowering import RowBlocks, Scan, Switch, While
from hybridflow.compiler.ops.mask_analysis import needed_elements
from hybridflow.compiler.program import (
    LEAST_SHARED,
    Callback,
    Check,
    DimSource,
    HostFunction,
    KernelInfo,
    Program,
    Slot,
)
from hybridflow.compiler.target import Target
from hybridflow.errors import HybridflowError


def dim_sources(graph: Graph) -> tuple[DimSource, ...]:
    """Every symbol, and the first input axis whose extent it is; else the first from which it can be found."""
    plain: dict[str, DimSource] = {}
    other: dict[str, DimSource] = {}
    for i, node in enumerate(graph.inputs):
        for axis, extent in enumerate(node.shape):
            known = affine(extent)
            if known is not None:
                (plain if known[1:] == (1, 0) else other).setdefault(known[0], DimSource(known[0], i, axis, *known[1:]))
    return tuple({**other, **plain}[name] for name in dict.fromkeys((*plain, *other)))


Planned = Callable[[Graph, AliasPairs], tuple[Fusion, Plan]]

NESTS: dict[Form, type[LoopNest]] = {
    Form.MAP: ElementwiseNest,
    Form.TRANSPOSED_MAP: ElementwiseNest,
    Form.SHARED_MEMORY_TRANSPOSE: SharedMemoryTranspose,
    Form.INNER_REDUCTION: InnerReduction,
    Form.SPLIT_INNER_REDUCTION: SplitInnerReduction,
    Form.OUTER_REDUCTION: OuterReduction,
    Form.SPLIT_OUTER_REDUCTION: SplitOuterReduction,
    Form.CONCAT: ConcatSegments,
    Form.GROUP_CONCAT: GroupConcatSegments,
    Form.INTERLEAVED_CONCAT: InterleavedConcat,
    Form.OUTER_VECTORIZED: OuterVectorized,
}


class ModuleBuilder:
    """Builds the program of a graph, or the function of a sub-graph as part of the module of ``outer``.

    ``planned`` gives the kernels and the buffers of a graph, of which outputs are ``wanted`` in the memory of inputs.
    The extents that a sub-graph knows are those of ``outer`` and ``symbol``.  On a GPU the threads of a ``block`` of so
    many run it, or all threads of a launch.  ``choices`` say which of the schedules kernels have.
    """

    def __init__(
        self, graph: Graph, planned: Planned, aliases: AliasAnalysis, target: Target, fastmath: bool,
        outer: ModuleBuilder | None = None, symbol: str | None = None, block: int = 0, wanted: AliasPairs = (),
        choices: Choices = USUAL,
    ) -> None:  # fmt: skip
        self.graph, self.planned, self.target, self.fastmath = graph, planned, target, fastmath
        self.aliases, self.choices = aliases, choices
        self.block = block
        self.fusion, self.plan = planned(graph, wanted)
        self.is_outermost = outer is None
        self.module: LLVMModule = LLVMModule(target) if outer is None else outer.module
        self.dims: tuple[DimSource, ...] = dim_sources(graph) if outer is None else outer.dims
        self.dim_names: list[str] = [d.name for d in self.dims] if outer is None else [*outer.dim_names]
        if symbol is not None:
            self.dim_names.append(symbol)
        self.functions: dict[tuple[Graph, AliasPairs], SubgraphFunction] = {} if outer is None else outer.functions
        self.infos: list[KernelInfo] = [] if outer is None else outer.infos
        self.callbacks: list[Callback] = [] if outer is None else outer.callbacks
        # Codes of checks count what can fail in program order, so that the least is the first to fail.
        self.check_codes: dict[Node, int] = {}
        self.next_codes: dict[Node, int] = {}  # of control flow: its first check's, else that of the next one behind it
        self.checks: list[Check] = []
        self.polls_interrupts = target.kind != "cuda" and any_polls_interrupts(graph)
        if self.polls_interrupts:
            self.checks.append(Check(HybridflowError.__name__, graph.name, "a loop was interrupted.", None))
        for node in graph.nodes:
            count = checks_of(node)
            if node.op.kind is Kind.CONTROL:
                self.next_codes[node] = len(self.checks) + 1
            if count:
                self.check_codes[node] = len(self.checks) + 1
                self.checks += [Check(HybridflowError.__name__, node.op.name, "a check failed.", node.where)] * count
        self.written: dict[
            Hashable, tuple[EmittedKernel, KernelInfo, Extent]
        ] = {}  # by what kernels of the same code share
        self.computed = set(self.fusion.computed)  # with the nodes of templates

    def function_of(
        self, graph: Graph, symbol: str | None = None, block: int = 0, wanted: AliasPairs = ()
    ) -> SubgraphFunction:
        """The function of a sub-graph, one for all places where it is run; ``symbol`` is an extent more that it is told
        by its ``%dims``.  Outputs are ``wanted`` in the memory of inputs where that can be."""
        result = self.functions.get((graph, wanted))
        if result is None:
            inner = ModuleBuilder(
                *(graph, self.planned, self.aliases, self.target, self.fastmath, self, symbol, block, wanted),
                self.choices,
            )
            name, calls = self.module.fresh("g"), inner._calls()
            symbol, sharing, memory = driver.write_function(
                self.module, name, graph, inner.plan, inner.dim_names, calls, block
            )
            on_gpu, phases = self.target.kind == "cuda", [phase for call in calls for phase in call.code.phases]
            threads = threads_for(phases) if on_gpu else 1
            dynamic_shared = max((phase.dynamic_shared_bytes for phase in phases), default=0)
            result = self.functions[graph, wanted] = SubgraphFunction(
                symbol,
                sharing,
                memory,
                inner.checks,
                inner.polls_interrupts,
                threads,
                dynamic_shared,
                inner.plan.overwrites,
            )
        return result

    def note(self, code: int, check: Check) -> None:
        """What the check of that code is."""
        self.checks[code - 1] = check

    def callback(
        self,
        node: Node,
        function: int | HostFunction,
        operands: Sequence[Node],
        retried: bool = False,
        exchange: bool = False,
    ) -> int:
        """Note that a node calls a function in Python; the number of the place."""
        arguments, results = (
            tuple([_array_slot(t) for t in types if not is_token(t)])
            for types in ([n.type for n in operands], node.type.parts)
        )
        self.callbacks.append(Callback(function, arguments, results, node.where, retried, exchange))
        return len(self.callbacks) - 1

    def _calls(self) -> list[KernelCall]:
        kernels = kernel_key(self.plan.kernels, self.is_leaf, whole=self.target.kind == "cuda")
        emitted = map(self._kernel, kernels, self.plan.waves)
        return [call for call in emitted if call is not None]

    def build(self, timed: bool = False, shared: bool = False) -> Program:
        """The program; one that is ``timed`` (see ``Program.tasks``) is for a CPU, ``shared`` by its workers."""
        calls = self._calls()
        sharing: Callable[[], None] | None = None
        more: dict[str, Any] = {}
        if self.target.kind == "cuda":
            memory, more = cuda_launches.write_launches(self.module, self.graph, self.plan, self.dim_names, calls)
        elif timed:
            memory, tasks = driver.write_timed(
                self.module, driver.ENTRY, self.graph, self.plan, self.dim_names, calls, shared
            )
            more["tasks"] = tasks
        else:
            memory, sharing = driver.write(self.module, driver.ENTRY, self.graph, self.plan, self.dim_names, calls)
        text = self.module.render(for_host=timed and shared)
        return Program(
            self.graph.name,
            self.target,
            text,
            driver.ENTRY,
            tuple(_slot(n, i in self.graph.updates, i in self.plan.in_place) for i, n in enumerate(self.graph.inputs)),
            tuple(_slot(n) for n in self.graph.outputs),
            self.dims,
            memory.arena,
            tuple(self.checks),
            tuple(self.infos),
            tuple(self.callbacks),
            memory.scratch,
            sum((call.work for call in calls), start=0),
            self.module.addition(sharing) if sharing else "",
            self.polls_interrupts,
            _is_unbounded(self.graph),
            **more,
        )

    # ---- kernels

    def _emitter(self, kernel: Kernel) -> Emitter:
        e = Emitter(self.target, 1, self.fastmath)
        e.at(kernel.cluster.anchor)

        def code_of(check: Check) -> int:
            assert e.node is not None
            code = self.check_codes[e.node]
            self.note(code, check)
            return code

        e.on_check, e.status = code_of, "%status"
        return e

    def _kernel(self, kernel_key: KernelKey, wave: int) -> KernelCall | None:
        kernel = kernel_key.kernel
        codes = [self.check_codes[n] for n in kernel.nodes if n in self.check_codes]
        nothing = all(part.is_static and part.size == 0 for r in kernel.roots for part in parts_of(r.type))
        if nothing and not has_effect(kernel):
            return None
        anchor = kernel.cluster.anchor
        key = None if kernel_key.key is None else (kernel_key.key, self.next_codes.get(anchor))
        written = self.written.get(key) if key is not None else None
        if written is None:
            template = template_of(kernel_key) if kernel_key.parts else SharedKernelCode(kernel, {})
            self.computed.update(copy for node, copy in template.copies.items() if node in self.computed)
            chooser = Chooser(self.choices)
            code, how = self._write(template.kernel, chooser)
            info = self._info(code.phases[0].symbol, kernel, how)
            written = code, replace(info, facts=chooser.facts, candidates=chooser.count), _work(kernel)
            if key is not None:
                self.written[key] = written
        code, info, work = written
        lines = tuple(dict.fromkeys(n.where for n in kernel.nodes if n.where))
        product = by_library(kernel, self.fastmath) if self.target.kind == "cuda" and self.is_outermost else None
        how = info.schedule if product is None else describe_schedule(product, self.target, info.schedule)
        self.infos.append(replace(info, lines=lines, note=kernel.cluster.why, wave=wave, schedule=how))
        if kernel.cluster.kind is Kind.CONTROL:
            operands = [BufferPart(n, 0) for n in _operands(kernel)]
        else:
            operands = [
                *[BufferPart(n, 0) for n in kernel_key.inputs],
                *kernel_key.parts,
                *[BufferPart(n, 0) for n in kernel.roots],
            ]
        watched = self.polls_interrupts and polls_interrupts(anchor)
        check, number = min(codes, default=None), len(self.infos) - 1
        return KernelCall(code, operands, check, wave, number, work, watched, product)

    def is_leaf(self, node: Node) -> bool:
        return node.is_parameter or node in self.computed

    def _write(self, kernel: Kernel, choose: Choose) -> tuple[EmittedKernel, str]:
        """Write a kernel over ``_operands``; its code, and its schedule as text."""
        kind = kernel.cluster.kind
        if kind is Kind.ELEMENTWISE or kind is Kind.SEGMENT:
            return self._loops(kernel, choose)
        symbol = self.module.fresh("k")
        if kind is Kind.CONTRACT:
            return self._contraction(symbol, kernel, choose)
        if kind is Kind.CONVOLVE:
            return self._convolution(symbol, kernel, choose)
        lowered = _panels_of(kernel.cluster.anchor)
        if lowered is not None:
            return write_row_blocks(self, self._emitter(kernel), symbol, kernel, lowered)
        if kind is Kind.CONTROL:
            first = self.next_codes[kernel.cluster.anchor]
            return write_control(self, lambda: self._emitter(kernel), symbol, kernel, first)
        buffers = len(_operands(kernel))
        code = emit_block(
            self.module, self._emitter(kernel), symbol, kernel, self.dim_names, buffers, self.is_outermost
        )
        return code, code.schedule

    def _loops(self, kernel: Kernel, choose: Choose) -> tuple[EmittedKernel, str]:
        operands = _operands(kernel)
        pointers = {node: f"%a{i}" for i, node in enumerate(operands)}

        def new_code() -> KernelBuilder:
            return KernelBuilder(self._emitter(kernel), self.dim_names)

        def written(how: Schedule, for_host: bool) -> tuple[tuple[Phase, ...], LoopNest]:
            nest, phases = NESTS[how.form](new_code, kernel, space, how, is_leaf, pointers), []
            for e, units, grain, group in nest.write():
                name, parameters = self.module.fresh("k"), kernel_parameters(len(operands))
                symbol = self.module.function(e, name, parameters, linkage="internal", for_host=for_host)
                phases.append(Phase(symbol, units, grain, group_size=group))
            return tuple(phases), nest

        is_leaf = self.is_leaf
        space = loops_of(kernel, is_leaf)
        options = schedules(kernel, space, self.target, is_leaf, instructions)
        schedule = choose(LoopFacts(kernel, space, is_leaf), options)
        work = _work(kernel)
        is_little = self.target.kind == "cuda" or (isinstance(work, int) and work < LEAST_SHARED)
        if is_little and not self.is_outermost:  # a sub-graph does it in the threads of the kernel that runs it
            schedule = schedule.warp_level if self.target.kind == "cuda" else schedule.single_threaded
        phases, nest = written(schedule, schedule.sequential is not None)
        code = EmittedKernel(phases, nest.scratch, nest.shared.size)
        if schedule.sequential is not None:
            (sequential,), whole = written(schedule.sequential, False)
            code = replace(code, scratch=larger(code.scratch, whole.scratch), sequential=sequential)
        return code, str(schedule)

    def _contraction(self, symbol: str, kernel: Kernel, choose: Choose) -> tuple[EmittedKernel, str]:
        node = kernel.cluster.anchor
        x, y = node.inputs
        axes = contraction_of(node)
        extents = axes.extents(x.type, y.type)
        operands = _operands(kernel)
        pointers = {node: f"%a{i}" for i, node in enumerate(operands)}
        places = {i: MemoryPlace(pointers[i]) for i in kernel.inputs}
        space = kernel.cluster.space
        shape = matmul.MatmulShape(extents.batch, *map(product, (extents.rows, extents.columns, extents.summed)))
        if len(extents.columns) == 1 and shape.n != 1 and _repeats(node, kernel):
            space = over(node.shape)
        # Where columns are one element wide positions do not depend on them: rows take the lanes, all but one masked.
        behind = len(extents.columns) if shape.n == 1 and len(space.vars) > 1 else 0
        lane = space.vars[-1 - behind]
        finishing = between(kernel, kernel.roots, space.full, {node, *places}, self.is_leaf)
        read = accesses(kernel, space, self.is_leaf).of_input
        beside = tuple((pointers[i], i.dtype.itemsize) for i in kernel.inputs if space.full in read.get(i, ()))
        mask_of = needed_elements(node, kernel.nodes, kernel.roots, kernel.inputs)

        def source() -> matmul.MatmulOperands:
            code = KernelBuilder(self._emitter(kernel), self.dim_names)

            def counted(entry: str, row: str, col: str) -> dict[LoopVar, Ref]:
                if len(space.vars) == 1:
                    line = code.add(code.mul(entry, code.extent(shape.m)), row)
                    return {lane: code.add(code.mul(line, code.extent(shape.n)), col)}
                counters = dict[LoopVar, Ref]()
                rest = list(space.vars)  # symbolic extents have a loop per axis
                for part, position in ((extents.columns, col), (extents.rows, row), (extents.batch, entry)):
                    dropped = len(rest) - len(part)
                    counters |= counters_at(code, rest[dropped:], position)
                    del rest[dropped:]
                return counters

            def looked(e: Emitter, entry: str, row: str, col: str, mask: Val | None) -> Val:
                assert mask_of is not None
                elements = Elements(code, counted(entry, row, col), lane, places, {}, mask)
                return elements.value(mask_of, Index(mask_of.shape, linear=space.full))

            def epilogue(e: Emitter, value: Val, entry: str, row: str, col: str, mask: Val | None) -> None:
                elements = Elements(code, counted(entry, row, col), lane, places, {node: value}, mask)
                for inner in finishing:  # rather than from the roots: calls would nest as deep as the epilogue is long
                    elements.value(inner, Index(inner.shape, linear=space.full))
                values = [elements.value(root, Index(root.shape, linear=space.full)) for root in kernel.roots]
                for root, result in zip(kernel.roots, values):
                    elements.store(result, pointers[root], space.full)

            left, right = (Operand(code, factor, parts, places) for factor, parts in zip(node.inputs, axes.factors))
            plain = pointers[node] if list(kernel.roots) == [node] else None
            return matmul.MatmulOperands(
                code, left, right, epilogue, plain, beside, None if mask_of is None else looked
            )

        return matmul.emit_matmul(
            self.module,
            source,
            symbol,
            shape,
            len(operands),
            node.dtype,
            axes.lanes,
            self.is_outermost,
            axes.precision,
            self.block,
            axes.has_zero_runs,
            is_symmetric(node, axes, lambda n: self.is_leaf(n) or n in places),
            choose,
        )

    def _convolution(self, symbol: str, kernel: Kernel, choose: Choose) -> tuple[EmittedKernel, str]:
        buffers = len(_operands(kernel))
        pointers = {node: f"%a{k}" for k, node in enumerate(_operands(kernel))}
        places = {i: MemoryPlace(pointers[i]) for i in kernel.inputs}
        node = kernel.cluster.anchor
        space = convolution_lowering.result_space(node)
        finishing = between(kernel, kernel.roots, space.full, {node, *places}, self.is_leaf)

        def finish(code: KernelBuilder) -> convolution_lowering.Finish:
            def store(line: Sequence[Ref], column: Ref, value: Val, mask: Val | None) -> None:
                counters = dict(zip(space.vars, (*line, column), strict=True))
                elements = Elements(code, counters, space.vars[-1], places, {node: value}, mask)
                for inner in finishing:
                    elements.value(inner, Index(inner.shape, linear=space.full))
                values = [elements.value(root, Index(root.shape, linear=space.full)) for root in kernel.roots]
                for root, result in zip(kernel.roots, values):
                    elements.store(result, pointers[root], space.full)

            return store

        def new_code() -> KernelBuilder:
            return KernelBuilder(self._emitter(kernel), self.dim_names)

        def goes_by_columns(width: int) -> bool:
            positions = accesses(kernel, space, self.is_leaf).positions
            return all(is_aligned(ix, space.vars[-1], width) for ix in positions)

        return convolution_lowering.emit(
            self.module, new_code, symbol, node, places, finish, buffers, self.is_outermost, goes_by_columns, choose
        )

    # ---- for people

    @staticmethod
    def _info(symbol: str, kernel: Kernel, how: str) -> KernelInfo:
        """What all kernels of one code have in common."""
        names = [n.op.name for n in kernel.nodes]
        name = "_".join(dict.fromkeys(names))
        if len(name) > 60:
            name = f"{names[0]}_to_{names[-1]}_{len(names)}_ops"
        return KernelInfo(name, symbol, tuple(names), (), _traffic(kernel), _operations(kernel), schedule=how)


def contraction_of(node: Node) -> Contraction:
    """What a contraction contracts."""
    return node.op.contraction(tuple(n.type for n in node.inputs), node.attrs)


def _contracted_shape(node: Node) -> Shape:
    """The extents over which the products of a node are summed."""
    if node.op.kind is Kind.CONVOLVE:
        return convolution_lowering.summed_extents(node)
    return contraction_of(node).extents(*(n.type for n in node.inputs)).summed


def _repeats(node: Node, kernel: Kernel) -> bool:
    """Whether something is repeated along or down the lines of a product, or counts them: each lane of a vector of
    row-major positions would divide to find it.  With a loop per axis vectors end where lines do."""
    if not is_static(node.shape):
        return False
    seen, open = {node}, list(kernel.roots)
    while open:
        reached = open.pop()
        if reached in seen:
            continue
        seen.add(reached)
        if reached.op.name == "iota":
            return True
        if reached not in kernel.inputs:
            open += reached.inputs
        elif reached.shape and not same_size(reached.shape, node.shape):
            return True
    return False


def _operands(kernel: Kernel) -> list[Node]:
    """The nodes over whose buffers a kernel runs, in the order of its parameters."""
    return operands_of(kernel) if kernel.cluster.kind is Kind.CONTROL else [*kernel.inputs, *kernel.roots]


def _slot(node: Node, updated: bool = False, in_place: bool = False) -> Slot:
    return Slot(node.shape, SHORT[node.dtype], str(node.attrs.get("name", "")), updated, in_place)


def _array_slot(type: TensorType) -> Slot:
    return Slot(type.shape, SHORT[type.dtype])


def _bytes(kernel: Kernel) -> Extent:
    """Bytes read and written once each."""
    total: Extent = 0
    for node in (*kernel.inputs, *kernel.roots):
        total = total + byte_size(node)
    return total


def _traffic(kernel: Kernel) -> int | None:
    """Bytes read and written once each, when shapes are known."""
    total = _bytes(kernel)
    return total if isinstance(total, int) else None


def _panels_of(node: Node) -> RowBlocks | None:
    """What a node does, if that is to run a graph for panels."""
    if node.op.kind is not Kind.CONTROL:
        return None
    lowered = node.op.lower(tuple([n.type for n in node.inputs]), node.attrs)
    return lowered if isinstance(lowered, RowBlocks) else None


def _work(kernel: Kernel) -> Extent:
    """How much a kernel does, see ``Program.work``."""
    return 8 * _bytes(kernel) + _work_of(kernel.nodes)


def _work_of(nodes: Iterable[Node]) -> Extent:
    total: Extent = 0
    for node in nodes:
        panels = _panels_of(node)
        if panels is not None:
            total = total + product(panels.batch) * panels.num_blocks * _work_of(panels.body.nodes)
        elif node.op.kind in PRODUCTS:
            total = total + product(visited_shape(node)) * product(_contracted_shape(node)) * 2
        elif node.op.kind is Kind.CONTROL:
            total = total + _work_of_control(node)
        else:
            total = total + product(visited_shape(node)) * work_of_element(node)
    return total


def _work_of_control(node: Node) -> Extent:
    """What the graphs of control flow do: each of them once where it is not known how often."""
    assert node.op.lower is not None
    how = node.op.lower(tuple([n.type for n in node.inputs]), node.attrs)
    if isinstance(how, Scan):
        return how.length * _work_of(how.body.nodes)
    if isinstance(how, While):
        return _work_of(how.cond.nodes) + _work_of(how.body.nodes)
    most: Extent = 0
    for branch in how.branches if isinstance(how, Switch) else ():
        most = larger(most, _work_of(branch.nodes))
    return most


def _is_unbounded(graph: Graph) -> bool:
    """Whether there are loops, also in what it runs, of which nobody knows before how often they turn."""
    for node in graph.nodes:
        if node.op.kind is Kind.CONTROL:
            assert node.op.lower is not None
            how = node.op.lower(tuple([n.type for n in node.inputs]), node.attrs)
            if isinstance(how, While) or any(map(_is_unbounded, graphs_in(node.attrs))):
                return True
    return False


def _operations(kernel: Kernel) -> int | None:
    """Arithmetic instructions of elements: two for each product of a contraction, else as the op's rule emits them."""
    total = 0
    for node in kernel.nodes:
        shape = visited_shape(node)
        if node.op.kind is Kind.CONTROL or not is_static(shape):
            return None
        if node.op.kind in PRODUCTS:
            summed = _contracted_shape(node)
            if not is_static(summed):
                return None
            total += 2 * static_size(shape) * static_size(summed)
        else:
            total += static_size(shape) * instructions(node)
    return total
