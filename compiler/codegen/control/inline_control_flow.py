"""Graphs over single elements, written where they are run: loops and branches whose values stay in registers.

A sub-graph of scalars needs no buffers, no kernels and no calls.  Its carries are values that come together at the head
of a loop, its branches come together behind it, and sub-graphs inside of it are written the same way.  Arrays may be
read through indices and views, an element at a time.

A check that fails is noted, and computing goes on; but no loop turns again after that, because what it waits for may
never come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from hybridflow.compiler.codegen.core.elements import Elements, MemoryPlace
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.codegen.core.llvm_values import Val, type_text
from hybridflow.compiler.index.index_expr import ZERO, Index
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.graph import Effect, Graph, Node, graphs_in
from hybridflow.compiler.ir.results import is_token, parts_of
from hybridflow.compiler.loops import interrupt_checks
from hybridflow.compiler.loops.interrupt_checks import BUDGET
from hybridflow.compiler.ops import Kind
from hybridflow.compiler.ops.lowering import DynamicExtent, Lowering, Scan, Switch, While
from hybridflow.compiler.program import INTERRUPT_POLL, INTERRUPTED, Check


class InterruptPoll:
    """The code at the end of iterations of loops that look for interrupts (see ``loops.interrupt_checks``), and what
    one kernel has spent since it looked.  Made at the beginning of the kernel, which returns nothing.

    The process answers ``i32 hf_interrupted(ptr last)``: not 0 where the program is to end.  ``last`` is an i64 of the
    caller's, 0 at first, in which it notes when it has looked.
    """

    def __init__(self, code: KernelBuilder) -> None:
        self.code, self.e = code, code.e
        self._left, self._last = (self._word(name, start) for name, start in (("left", BUDGET), ("last", 0)))

    def _word(self, name: str, start: int) -> str:
        word = self.e.fresh(name)
        self.e.line(f"{word} = alloca i64, align 8")
        self.e.line(f"store i64 {start}, ptr {word}, align 8")
        return word

    def poll(self, cost: Ref) -> None:
        """An iteration is over, which has cost so much."""
        e, code = self.e, self.code
        before = e.fresh("i")
        e.line(f"{before} = load i64, ptr {self._left}, align 8")
        left, spent = code.sub(before, cost), e.fresh("c")
        e.line(f"store i64 {left}, ptr {self._left}, align 8")
        look, end, on, go_on = (e.new_label(hint) for hint in ("look", "interrupted", "on", "go"))
        e.line(f"{spent} = icmp slt i64 {left}, 0")
        e.branch_if(spent, look, go_on)
        e.label(look)
        e.declare(f"declare i32 @{INTERRUPT_POLL}(ptr)")
        answer, interrupted = e.fresh("r"), e.fresh("c")
        e.line(f"{answer} = call i32 @{INTERRUPT_POLL}(ptr {self._last})")
        e.line(f"{interrupted} = icmp ne i32 {answer}, 0")
        e.branch_if(interrupted, end, on)
        e.label(end)
        e.line(f"{e.fresh()} = atomicrmw umax ptr %status, i32 {-INTERRUPTED} monotonic")
        e.line("ret void")
        e.label(on)
        e.line(f"store i64 {BUDGET}, ptr {self._left}, align 8")
        e.branch(go_on)
        e.label(go_on)


MOST_NODES = 512  # of all graphs that are written in one place

Given = Union[Val, MemoryPlace]
"""What an input is: a value, or where an array lies."""

_ELEMENT_KINDS = frozenset({Kind.ELEMENTWISE, Kind.GATHER, Kind.CREATE, Kind.PROJECT, Kind.CONTROL})


def count_checks(graph: Graph) -> int:
    """How many codes the checks of a graph and of all graphs inside take."""
    return sum(checks_of(node) for node in graph.nodes)


def checks_of(node: Node) -> int:
    """How many codes a node's checks take."""
    if node.effect is Effect.NONE:
        return 0
    inner = graphs_in(node.attrs)
    direct = not inner or isinstance(_lowering(node), DynamicExtent)  # which fails where there is no memory
    return sum(map(count_checks, inner)) + direct


def is_inline(graph: Graph) -> bool:
    """Whether all that a graph computes are single elements."""
    return _nodes(graph) <= MOST_NODES and _is_inline(graph)


def _nodes(graph: Graph) -> int:
    return len(graph.nodes) + sum(_nodes(inner) for node in graph.nodes for inner in graphs_in(node.attrs))


def _is_inline(graph: Graph) -> bool:
    for node in graph.nodes:
        if not _is_view(node) and not (node.op.kind in _ELEMENT_KINDS and _is_single(node)):
            return False
        if node.op.kind is Kind.CONTROL and not isinstance(_lowering(node), (Switch, While, Scan)):
            return False  # it takes memory, for arguments of the host or for what it keeps
        if node.op.kind is Kind.CONTROL and any(not _is_single(source) for source in node.inputs):
            return False
        if not all(map(_is_inline, graphs_in(node.attrs))):
            return False
    return all(_is_single(node) for node in graph.outputs)


def _lowering(node: Node) -> Lowering:
    assert node.op.lower is not None
    result: Lowering = node.op.lower(tuple([n.type for n in node.inputs]), node.attrs)
    return result


def _is_view(node: Node) -> bool:
    """Whether elements of a node are found, whatever its size, by index arithmetic."""
    return node.op.kind is Kind.VIEW or (node.op.kind is Kind.CREATE and not node.inputs)


def _is_single(node: Node) -> bool:
    return all(part.is_static and part.size == 1 and not is_token(part) for part in parts_of(node.type))


class Inline:
    """Writes graphs with the emitter of ``code``.  ``note(code, check)`` is told of each check, whose codes are counted
    from where the graph's begin.  Loops look for interrupts with ``watch``, where there is one."""

    def __init__(self, code: KernelBuilder, note: Callable[[int, Check], None], watch: InterruptPoll | None) -> None:
        self.code, self.e, self.note, self.watch = code, code.e, note, watch
        self.codes: dict[Node, int] = {}
        self.clean: str | None = None  # the status with which loops go on; None where nothing here can fail

    def run(self, graph: Graph, arguments: Sequence[Given], first: int) -> list[Val]:
        """The outputs of a graph.  ``first`` is the code of its first check."""
        e = self.e
        before, on_check = self.codes, e.on_check
        self.codes = {}
        for node in graph.nodes:
            self.codes[node] = first
            first += checks_of(node)
        e.on_check = self._code_of
        values = {node: x for node, x in zip(graph.inputs, arguments) if isinstance(x, Val)}
        places = {node: x for node, x in zip(graph.inputs, arguments) if isinstance(x, MemoryPlace)}
        elements = Elements(self.code, {}, None, places, values)
        for node in graph.nodes:
            if node.op.kind is Kind.CONTROL:
                results = self._control(node, [self._value(elements, source) for source in node.inputs])
                for user in graph.nodes:
                    if user.op.kind is Kind.PROJECT and user.inputs[0] is node:
                        values[user] = results[user.attrs["index"]]
            elif node.op.kind is not Kind.PROJECT and not _is_view(node):
                values[node] = self._value(elements, node)
        outputs = [self._value(elements, node) for node in graph.outputs]
        self.codes, e.on_check = before, on_check
        return outputs

    def _value(self, elements: Elements, node: Node) -> Val:
        return elements.value(node, Index(node.shape, linear=ZERO))

    def _code_of(self, check: Check) -> int:
        assert self.e.node is not None
        code = self.codes[self.e.node]
        self.note(code, check)
        return code

    # ---- control flow

    def _control(self, node: Node, arguments: list[Val]) -> list[Val]:
        how = _lowering(node)
        first = self.codes[node]
        if isinstance(how, Switch):
            return self.switch(how, arguments, first)
        if isinstance(how, While):
            return self.while_loop(how, arguments, first)
        assert isinstance(how, Scan)
        if how.length == 1:
            return self.run(how.body, arguments, first)
        # Nothing is stacked: that would be several elements.
        carries, rest = arguments[: how.carries], arguments[how.carries :]
        length = self.code.extent(how.length)
        spent = interrupt_checks.cost(how.body, inline=True) if interrupt_checks.is_long(how) else None
        return self.scan(length, False, carries, lambda now, _: self.run(how.body, [*now, *rest], first), spent)

    def switch(self, how: Switch, arguments: list[Val], first: int) -> list[Val]:
        if how.fixed:
            return self.run(how.branches[0], arguments, first)
        e = self.e
        ends: list[tuple[list[Val], str]] = []
        after = e.new_label("after")
        for branch, enter in zip(how.branches, self.branches(how, arguments[0])):
            enter()
            ends.append((self.run(branch, arguments[1:], first), e.block))
            first += count_checks(branch)
            e.branch(after)
        e.label(after)
        return [e.phi(*((values[k], block) for values, block in ends)) for k in range(len(ends[0][0]))]

    def branches(self, how: Switch, which: Val) -> list[Callable[[], None]]:
        """Jump by a value.  For each branch what begins its code, which ends with a jump elsewhere."""
        e = self.e
        labels = [e.new_label("branch") for _ in how.branches]
        if dt.is_bool(which.dtype):
            e.branch_if(which.ref, labels[0], labels[1])
        else:
            kind = f"i{8 * which.dtype.itemsize}"
            cases = " ".join(f"{kind} {k}, label %{label}" for k, label in enumerate(labels[:-1]))
            e.line(f"switch {kind} {which.ref}, label %{labels[-1]} [ {cases} ]")
        return [lambda label=label: e.label(label) for label in labels]  # type: ignore[misc]

    def while_loop(self, how: While, arguments: list[Val], first: int) -> list[Val]:
        """A loop with its carries in registers."""
        count = len(how.body.outputs)
        rest = arguments[count:]
        body_first = first + count_checks(how.cond)

        def goes_on(carries: list[Val]) -> str:
            (more,) = self.run(how.cond, [*carries, *rest], first)
            return more.ref

        spent = interrupt_checks.cost(how.cond, how.body, inline=True)
        return self.loop(
            arguments[:count], goes_on, lambda carries: self.run(how.body, [*carries, *rest], body_first), spent
        )

    def loop(
        self,
        start: Sequence[Val],
        goes_on: Callable[[list[Val]], str],
        iteration: Callable[[list[Val]], Sequence[Val]],
        spent: Extent | None,
    ) -> list[Val]:
        """``carries = turn(carries)`` while ``goes_on(carries)``, an i1, and no check has failed.  A turn costs
        ``spent``, None where nothing is looked for behind it."""
        e = self.e
        head, body, latch, done = (e.new_label(hint) for hint in ("head", "body", "latch", "done"))
        before = e.block
        next_names = [e.fresh("c") for _ in start]
        e.branch(head)
        e.label(head)
        carries = [e.phi((value, before), (value._replace(ref=name), latch)) for value, name in zip(start, next_names)]
        self._leave_if_failed(done)
        e.branch_if(goes_on(carries), body, done)
        e.label(body)
        following = iteration(carries)
        if self.watch is not None and spent is not None:
            self.watch.poll(self.code.extent(spent))
        end = e.block
        e.branch(latch)
        e.label(latch)
        for name, value in zip(next_names, following):
            e.line(f"{name} = phi {type_text(value.dtype, value.width)} [ {value.ref}, %{end} ]")
        e.branch(head)
        e.label(done)
        return carries

    def scan(
        self,
        length: Ref,
        reverse: bool,
        start: Sequence[Val],
        iteration: Callable[[list[Val], Ref], Sequence[Val]],
        spent: Extent | None,
    ) -> list[Val]:
        """``carries = turn(carries, position)`` for each position below ``length``.  For ``spent`` see ``loop``."""
        code = self.code

        def goes_on(carries: list[Val]) -> str:
            return str(code.compare("slt", carries[-1].ref, length))

        def with_count(carries: list[Val]) -> list[Val]:
            count = carries[-1].ref
            position = code.sub(code.sub(length, 1), count) if reverse else count
            return [*iteration(carries[:-1], position), code.value(code.add(count, 1))]

        return self.loop([*start, code.value(0)], goes_on, with_count, spent)[:-1]

    # ---- checks

    def begin(self, raises: bool) -> None:
        """Note with which status loops go on: where one of the checks to come fails, it changes."""
        if raises:
            self.clean = self._status()

    def failed(self) -> str | None:
        """Whether a check here has failed; None where none can."""
        if self.clean is None:
            return None
        now, failed = self._status(), self.e.fresh("c")
        self.e.line(f"{failed} = icmp ne i32 {now}, {self.clean}")
        return failed

    def _status(self) -> str:
        value = self.e.fresh("s")
        self.e.line(f"{value} = load i32, ptr {self.e.status}, align 4")
        return value

    def _leave_if_failed(self, done: str) -> None:
        failed = self.failed()
        if failed is not None:
            go_on = self.e.new_label("go")
            self.e.branch_if(failed, done, go_on)
            self.e.label(go_on)
