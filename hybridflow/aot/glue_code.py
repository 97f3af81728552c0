"""The functions of a library that C calls, as LLVM text: they choose the program, and hand it what it takes.

Each entry has functions of its extents: ``choose`` finds the program, ``workspace`` says how much memory it takes,
``shapes`` gives the extents of results.  Then comes the call itself.  Programs see no pointer of C's before
it was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hybridflow.aot import cpu_level
from hybridflow.aot.entries import Choice, Entry
from hybridflow.aot.weights import Layout
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder, Ref
from hybridflow.compiler.ir.dtypes import FROM_SHORT
from hybridflow.compiler.ir.extents import LEAST
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT
from hybridflow.compiler.program import HOST, INTERRUPT_POLL, Check, Slot, shared_entry
from hybridflow.compiler.target import Target

# What calls return that are no checks of programs.  The header has the same numbers.
NULL_POINTER, UNALIGNED, NO_PROGRAM, BAD_HOST, BAD_WEIGHTS, WRONG_CPU = -1, -2, -3, -4, -5, -6
PROBLEMS = {
    NULL_POINTER: "a pointer is null",
    UNALIGNED: f"a result, the state, the workspace or the weights do not lie at a multiple of {ALIGNMENT} bytes",
    NO_PROGRAM: "no program of the library is for these extents",
    BAD_HOST: "the host is of another version, or has no workers",
    BAD_WEIGHTS: "the weights are of another library",
    WRONG_CPU: "this processor lacks instructions of the library's code",
}
HOST_VERSION = 1
MOST = (1 << 31) - 1  # of an extent
_RUN_TASKS = "hf.run_tasks"


class Glue:
    """Collects the functions of a library, whose programs there are for each of the ``targets``, the least first."""

    def __init__(self, targets: Sequence[Target], prefix: str, layout: Layout) -> None:
        self._target, self.prefix, self._layout = targets[0], prefix, layout
        self._levels = [cpu_level.needed(target) for target in targets]
        self._is_checked = any(self._levels) and cpu_level.can_ask(targets[0])
        self.public: list[str] = []
        self._parts: list[str] = []
        self._declares: set[str] = set()
        self._messages: list[str] = []

    def text(self) -> str:
        """The module."""
        return "\n".join(
            [
                f'target triple = "{self._target.triple}"',
                *self._parts,
                *sorted(self._declares),
                *_COMMON,
                *([cpu_level.code(self.prefix)] * self._is_checked),
                f"attributes #0 = {{ nounwind{cpu_level.baseline(self._target)} }}",
                "",
            ]
        )

    def _function(
        self, name: str, result: str, parameters: Sequence[str], write: Callable[[KernelBuilder], None], public: bool
    ) -> None:
        e = Emitter(self._target, 1, False)
        write(KernelBuilder(e))
        self._declares |= e.declares
        self._parts += e.globals.values()
        linkage = "" if public else "internal "
        body = "\n".join(["entry:", *e.lines])
        self._parts.append(f"define {linkage}{result} @{name}({', '.join(parameters)}) #0 {{\n{body}\n}}")
        if public:
            self.public.append(name)

    # ---- entries

    def add(self, variants: Sequence[Entry]) -> None:
        """The functions of an entry, of which there is one for each target."""
        name = f"{self.prefix}_{variants[0].name}"
        for number, entry in enumerate(variants):
            symbol = f"{name}.{number}"
            extents = [f"i64 %{name}" for name in _locals("n", entry.extents)]
            self._choose(entry, symbol, extents)
            if entry.extents:
                self._shapes(entry, symbol, extents)
            self._workspace(entry, symbol, extents)
            self._run(entry, symbol, extents)
            for choice in entry.choices:
                for one in (choice.program.entry, shared_entry(choice.program.entry)):
                    if one == choice.program.entry or choice.program.sharing:
                        self._declares.add(f"declare i32 @{program_symbol(choice, one)}(ptr, ptr, ptr, ptr)")
        first = variants[0]
        extents = [f"i64 %{name}" for name in _locals("n", first.extents)]
        self._dispatch(name, "i32", self._parameters(first, extents), "")
        self._dispatch(name, "i64", [*extents, "ptr %host"], "_workspace")
        if first.extents:
            self._dispatch(name, "i32", [*extents, "ptr %shapes"], "_shapes")

    def _dispatch(self, name: str, result: str, parameters: Sequence[str], what: str) -> None:
        """What C calls: the function of the best target that this processor has the instructions of."""

        def write(b: KernelBuilder) -> None:
            e, level = b.e, ""
            if self._is_checked:
                level = e.fresh("l")
                e.line(f"{level} = call i32 @{self.prefix}.level_now()")
            for number, needed in reversed([*enumerate(self._levels)]):
                done = e.fresh("s")
                lines = [
                    f"{done} = call {result} @{name}.{number}{what}({', '.join(parameters)})",
                    f"ret {result} {done}",
                ]
                if not (self._is_checked and needed):
                    for line in lines:
                        e.line(line)
                    return
                has, yes, no = e.fresh("c"), e.new_label("yes"), e.new_label("no")
                e.line(f"{has} = icmp sge i32 {level}, {needed}")
                e.line(f"br i1 {has}, label %{yes}, label %{no}")
                e.label(yes)
                for line in lines:
                    e.line(line)
                e.label(no)
            e.line(f"ret {result} {WRONG_CPU}")

        self._function(f"{name}{what}", result, parameters, write, public=True)

    def _choose(self, entry: Entry, symbol: str, extents: Sequence[str]) -> None:
        def write(b: KernelBuilder) -> None:
            e = b.e
            for name in _locals("n", entry.extents):
                fits = b.both(b.compare("sge", f"%{name}", 0), b.compare("sle", f"%{name}", MOST))
                _unless(b, fits, "ret i32 -1")
            for number, choice in enumerate(entry.choices):
                taken = self._takes(b, entry, choice)
                if taken is True:
                    e.line(f"ret i32 {number}")
                    e.label(e.new_label("never"))
                elif taken is not False:
                    yes, no = e.new_label("yes"), e.new_label("no")
                    e.line(f"br i1 {taken}, label %{yes}, label %{no}")
                    e.label(yes)
                    e.line(f"ret i32 {number}")
                    e.label(no)
            e.line("ret i32 -1")

        self._function(f"{symbol}.choose", "i32", extents, write, public=False)

    @staticmethod
    def _symbols(b: KernelBuilder, entry: Entry, choice: Choice) -> list[Ref]:
        """The values of a program's symbols, which the builder knows from now on."""
        values: list[Ref] = []
        for source in choice.program.dims:
            place = entry.places[choice.arguments.index(source.input)][source.axis]
            assert place is not None, "a known extent is no symbol"
            extent = f"%{_local('n', place)}"
            # Exact where the program is chosen: what it takes is compared with the polynomial.
            value = b.sub(extent, source.offset)
            value = value if source.scale == 1 else b._op(f"sdiv i64 {value}, {source.scale}")
            b.let(source.name, str(value))
            values.append(value)
        return values

    def _takes(self, b: KernelBuilder, entry: Entry, choice: Choice) -> str | bool:
        result: str | bool = True
        for value in self._symbols(b, entry, choice):
            result = b.both(result, b.compare("sge", value, LEAST))
        for node_number, places in zip(choice.arguments, entry.places):
            for extent, place in zip(choice.graph.inputs[node_number].type.shape, places):
                if place is not None:
                    result = b.both(result, b.compare("eq", f"%{_local('n', place)}", b.extent(extent)))
        for condition in choice.conditions:
            result = b.both(result, b.compare("sge", b.extent(condition), 0))
        return result

    def _by_choice(
        self, entry: Entry, symbol: str, b: KernelBuilder, write: Callable[[Choice, str], None], otherwise: str
    ) -> None:
        """Code for each program that may be chosen; each part ends the function."""
        e = b.e
        variant_number = e.fresh("k")
        arguments = ", ".join(f"i64 %{name}" for name in _locals("n", entry.extents))
        e.line(f"{variant_number} = call i32 @{symbol}.choose({arguments})")
        labels = [e.new_label("p") for _ in entry.choices]
        none = e.new_label("none")
        cases = " ".join(f"i32 {k}, label %{label}" for k, label in enumerate(labels))
        e.line(f"switch i32 {variant_number}, label %{none} [ {cases} ]")
        for choice, label in zip(entry.choices, labels):
            e.label(label)
            self._symbols(b, entry, choice)
            write(choice, label)
        e.label(none)
        e.line(otherwise)

    def _shapes(self, entry: Entry, symbol: str, extents: Sequence[str]) -> None:
        def write(b: KernelBuilder) -> None:
            def one(choice: Choice, label: str) -> None:
                at = 0
                for number in choice.outputs:
                    for extent in choice.program.outputs[number].shape:
                        address = b.at("%shapes", at, 8)
                        b.e.line(f"store i64 {b.extent(extent)}, ptr {address}, align 8")
                        at += 1
                b.e.line("ret i32 0")

            self._by_choice(entry, symbol, b, one, f"ret i32 {NO_PROGRAM}")

        self._function(f"{symbol}_shapes", "i32", [*extents, "ptr %shapes"], write, public=False)

    def _workspace(self, entry: Entry, symbol: str, extents: Sequence[str]) -> None:
        def write(b: KernelBuilder) -> None:
            workers = self._workers(b, f"ret i64 {BAD_HOST}")

            def one(choice: Choice, label: str) -> None:
                total, _ = self._memory(b, choice, workers)
                b.e.line(f"ret i64 {total}")

            self._by_choice(entry, symbol, b, one, f"ret i64 {NO_PROGRAM}")

        self._function(f"{symbol}_workspace", "i64", [*extents, "ptr %host"], write, public=False)

    def _workers(self, b: KernelBuilder, refused: str) -> str:
        """How many workers a host has; 1 where there is none."""
        e = b.e
        is_set, on, alone = (e.new_label(hint) for hint in ("given", "on", "alone"))
        version, workers, count, known, fits = (e.fresh(hint) for hint in ("v", "w", "w", "c", "c"))
        result = e.fresh("w")
        e.line(f"{known} = icmp eq ptr %host, null")
        e.line(f"br i1 {known}, label %{alone}, label %{is_set}")
        e.label(is_set)
        e.line(f"{version} = load i32, ptr %host, align 4")
        address = b.at("%host", 4, 1)
        e.line(f"{count} = load i32, ptr {address}, align 4")
        e.line(f"{workers} = zext i32 {count} to i64")
        right = e.fresh("c")
        e.line(f"{right} = icmp eq i32 {version}, {HOST_VERSION}")
        e.line(f"{fits} = icmp sgt i32 {count}, 0")
        both = e.fresh("c")
        e.line(f"{both} = and i1 {right}, {fits}")
        _unless(b, both, refused)
        before = e.block
        e.line(f"br label %{on}")
        e.label(alone)
        e.line(f"br label %{on}")
        e.label(on)
        e.line(f"{result} = phi i64 [ {workers}, %{before} ], [ 1, %{alone} ]")
        return result

    @staticmethod
    def _memory(b: KernelBuilder, choice: Choice, workers: str) -> tuple[Ref, dict[int, Ref]]:
        """How many bytes a call takes, and where new values lie in them that must not lie over the old ones."""
        program = choice.program
        total = _rounded(b, b.add(b.extent(program.arena_bytes), b.mul(b.extent(program.scratch_bytes), workers)))
        places = {}
        for number in choice.updated:
            if not program.inputs[number].in_place:
                places[number] = total
                total = b.add(total, _rounded(b, _bytes(b, program.inputs[number])))
        return total, places

    # ---- calls

    def _parameters(self, entry: Entry, extents: Sequence[str]) -> list[str]:
        return [
            *extents,
            *(f"ptr %{name}" for name in _locals("a", entry.arguments)),
            *(["ptr %state"] * self._layout.is_touched(entry)),
            *(f"ptr %{name}" for name in _locals("y", entry.results)),
            *(["ptr %weights"] * self._layout.in_file),
            "ptr %workspace",
            "ptr %host",
        ]

    def _run(self, entry: Entry, symbol: str, extents: Sequence[str]) -> None:
        def write(b: KernelBuilder) -> None:
            workers = self._workers(b, f"ret i32 {BAD_HOST}")
            self._by_choice(
                entry, symbol, b, lambda choice, label: self._call(b, entry, choice, workers), f"ret i32 {NO_PROGRAM}"
            )

        self._function(symbol, "i32", self._parameters(entry, extents), write, public=False)

    def _call(self, b: KernelBuilder, entry: Entry, choice: Choice, workers: str) -> None:
        e, program = b.e, choice.program
        total, places = self._memory(b, choice, workers)
        arguments = dict(zip(choice.arguments, _locals("a", entry.arguments)))
        results = dict(zip(choice.outputs, _locals("y", entry.results)))
        aligned = [f"%{name}" for name in results.values()] + ["%workspace"]
        needed = [(f"%{results[k]}", _elements(b, program.outputs[k])) for k in results]
        needed += [(f"%{arguments[k]}", _elements(b, program.inputs[k])) for k in arguments]
        needed.append(("%workspace", total))
        if self._layout.is_touched(entry):
            aligned.append("%state")
            needed.append(("%state", 1))
        if self._layout.in_file:
            aligned.append("%weights")
            needed.append(("%weights", 1))
        for pointer, count in needed:
            missing = b.both(_is_null(b, pointer), b.compare("ne", count, 0))
            _unless(b, b.negation(missing), f"ret i32 {NULL_POINTER}")
        _unless(b, b.multiples(aligned, ALIGNMENT), f"ret i32 {UNALIGNED}")
        if self._layout.in_file:
            marks = e.fresh("c")
            e.line(f"{marks} = call i1 @{self.prefix}.known(ptr %weights)")
            _unless(b, marks, f"ret i32 {BAD_WEIGHTS}")
        inputs = []
        for k, source in enumerate(choice.sources):
            inputs.append(f"%{arguments[k]}" if k in arguments else self._layout.address(b, source))
        targets = {k: b.at("%workspace", places[k], 1) if k in places else inputs[k] for k in choice.updated}
        pointers = [*inputs, *(f"%{results[k]}" for k in range(len(program.outputs))), *targets.values()]
        buffers, dims, host = e.fresh("b"), e.fresh("d"), e.fresh("h")
        e.line(f"{buffers} = alloca [{max(len(pointers), 1)} x ptr], align 8")
        e.line(f"{dims} = alloca [{max(len(program.dims), 1)} x i64], align 8")
        for k, pointer in enumerate(pointers):
            e.line(f"store ptr {pointer}, ptr {b.at(buffers, k, 8)}, align 8")
        for k, source in enumerate(program.dims):
            e.line(f"store i64 {b.name(source.name)}, ptr {b.at(dims, k, 8)}, align 8")
        memory_arguments = f"ptr {buffers}, ptr {dims}, ptr %workspace"
        status = e.fresh("s")
        alone = program_symbol(choice, program.entry)
        if program.sharing:
            several, one, on = e.new_label("several"), e.new_label("one"), e.new_label("on")
            first, second = e.fresh("s"), e.fresh("s")
            e.line(f"{host} = alloca [{len(HOST) + 1} x ptr], align 8")
            many = e.fresh("c")
            e.line(f"{many} = icmp sgt i64 {workers}, 1")
            e.line(f"br i1 {many}, label %{several}, label %{one}")
            e.label(several)
            words: dict[str, str] = dict.fromkeys(HOST, "ptr null")
            words |= {"parallel_for": f"ptr @{_RUN_TASKS}", "workers": f"i64 {workers}"}
            for k, word in enumerate([*(words[name] for name in HOST), "ptr %host"]):
                e.line(f"store {word}, ptr {b.at(host, k, 8)}, align 8")
            shared = program_symbol(choice, shared_entry(program.entry))
            e.line(f"{first} = call i32 @{shared}({memory_arguments}, ptr {host})")
            e.line(f"br label %{on}")
            e.label(one)
            e.line(f"{second} = call i32 @{alone}({memory_arguments}, ptr null)")
            e.line(f"br label %{on}")
            e.label(on)
            e.line(f"{status} = phi i32 [ {first}, %{several} ], [ {second}, %{one} ]")
        else:
            e.line(f"{status} = call i32 @{alone}({memory_arguments}, ptr null)")
        if program.checks:
            base = len(self._messages)
            self._messages += map(_message, program.checks)
            failed, go_on, number = e.new_label("failed"), e.new_label("done"), e.fresh("s")
            bad = e.fresh("c")
            e.line(f"{bad} = icmp ne i32 {status}, 0")
            e.line(f"br i1 {bad}, label %{failed}, label %{go_on}")
            e.label(failed)
            e.line(f"{number} = add i32 {status}, {base}")
            e.line(f"ret i32 {number}")
            e.label(go_on)
        for k, place in places.items():
            e.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
            size = _bytes(b, program.inputs[k])
            e.line(
                f"call void @llvm.memcpy.p0.p0.i64(ptr align {ALIGNMENT} {inputs[k]}, "
                f"ptr align {ALIGNMENT} {b.at('%workspace', place, 1)}, i64 {size}, i1 false)"
            )
        e.line("ret i32 0")

    # ---- the library's own functions

    def finish(self) -> None:
        """Texts of errors, and the first values of the state."""
        texts = {**PROBLEMS, 0: "", **{k + 1: message for k, message in enumerate(self._messages)}}
        least, most = min(texts), max(texts)
        for status in range(least, most + 1):
            content = texts[status].encode() + b"\0"
            self._parts.append(f"@{self.prefix}.t{status - least} = internal constant {constant(content)}")
        rows = ", ".join(f"ptr @{self.prefix}.t{k}" for k in range(most - least + 1))
        count = most - least + 1
        self._parts.append(f"@{self.prefix}.unknown = internal constant {constant(b'an unknown status' + bytes(1))}")
        self._parts.append(f"@{self.prefix}.texts = internal constant [{count} x ptr] [{rows}]")

        def error(b: KernelBuilder) -> None:
            e = b.e
            number = b._op("sext i32 %status to i64")
            known = b.both(b.compare("sge", number, least), b.compare("sle", number, most))
            place = b.choose(known, b.sub(number, least), 0)
            text, message = e.fresh("t"), e.fresh("t")
            e.line(f"{text} = load ptr, ptr {b.at(f'@{self.prefix}.texts', place, 8)}, align 8")
            e.line(f"{message} = select i1 {known}, ptr {text}, ptr @{self.prefix}.unknown")
            e.line(f"ret ptr {message}")

        self._function(f"{self.prefix}_error", "ptr", ["i32 %status"], error, public=True)
        layout = self._layout
        if layout.state:

            def start(b: KernelBuilder) -> None:
                for field, content in layout.state.values():
                    b.e.declare("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
                    value = f"@{self.prefix}.start.{field.name}"
                    self._parts.append(f"{value} = internal constant {constant(content)}, align {ALIGNMENT}")
                    b.e.line(
                        f"call void @llvm.memcpy.p0.p0.i64(ptr align {ALIGNMENT} {b.at('%state', field.offset, 1)}, "
                        f"ptr align {ALIGNMENT} {value}, i64 {len(content)}, i1 false)"
                    )
                b.e.line("ret void")

            self._function(f"{self.prefix}_state_init", "void", ["ptr %state"], start, public=True)
        for name, content in layout.embedded.values():
            self._parts.append(f"@{name} = internal constant {constant(content)}, align {ALIGNMENT}")
        if layout.in_file:
            low, high = layout.mark
            self._parts.append(
                f"""define internal i1 @{self.prefix}.known(ptr %weights) #0 {{
  %a = load i64, ptr %weights, align 8
  %p = getelementptr i64, ptr %weights, i64 1
  %b = load i64, ptr %p, align 8
  %c = icmp eq i64 %a, {low}
  %d = icmp eq i64 %b, {high}
  %e = and i1 %c, %d
  ret i1 %e
}}"""
            )


_COMMON = (
    # Loops ask whether to end early: nobody interrupts them here.
    f"define i32 @{INTERRUPT_POLL}(ptr %last) #0 {{\n  ret i32 0\n}}",
    # Behind the words of a program's host lies the address of C's.
    f"""define internal void @{_RUN_TASKS}(
  ptr %h, ptr %task, ptr %args, i64 %units, i64 %grain, i64 %least, i64 %work) #0 {{
  %p = getelementptr ptr, ptr %h, i64 {len(HOST)}
  %host = load ptr, ptr %p, align 8
  %q = getelementptr i8, ptr %host, i64 8
  %f = load ptr, ptr %q, align 8
  call void %f(ptr %host, ptr %task, ptr %args, i64 %units, i64 %grain, i64 %least, i64 %work)
  ret void
}}""",
)


def _message(check: Check) -> str:
    """What a check says.  Where Python would run LAPACK once more, to see, there is nobody here; an error of the code
    says what is known without values."""
    if check.stage == "assert":
        return check.message
    text = check.message if check.place is None else "there is no result for a matrix, or one that LAPACK alone finds."
    return f"[{check.stage}] {text}"


def program_symbol(choice: Choice, name: str) -> str:
    """What a function of a program is called in the library."""
    return choice.symbol + name.removeprefix(choice.program.entry)


def constant(content: bytes) -> str:
    """Bytes as a constant of LLVM."""
    return f'[{len(content)} x i8] c"{chr(92) if content else ""}{content.hex(chr(92), 1)}"'


def _local(kind: str, number: int) -> str:
    return f"{kind}.{number}"


def _locals(kind: str, things: Sequence[Any]) -> list[str]:
    """Names of parameters in LLVM's text, where C's are of no use."""
    return [_local(kind, number) for number in range(len(things))]


def _is_null(b: KernelBuilder, pointer: str) -> str:
    return b._op(f"icmp eq ptr {pointer}, null")


def _unless(b: KernelBuilder, condition: str | bool, end: str) -> None:
    """End the function unless a condition holds."""
    if condition is True:
        return
    e = b.e
    on, out = e.new_label("on"), e.new_label("out")
    e.line(f"br i1 {str(condition).lower() if isinstance(condition, bool) else condition}, label %{on}, label %{out}")
    e.label(out)
    e.line(end)
    e.label(on)


def _elements(b: KernelBuilder, slot: Slot) -> Ref:
    return b.product(slot.shape)


def _bytes(b: KernelBuilder, slot: Slot) -> Ref:
    return b.mul(_elements(b, slot), FROM_SHORT[slot.dtype].itemsize)


def _rounded(b: KernelBuilder, size: Ref) -> Ref:
    """The next multiple of the alignment."""
    if isinstance(size, int):
        return -(-size // ALIGNMENT) * ALIGNMENT
    return b._op(f"and i64 {b.add(size, ALIGNMENT - 1)}, {-ALIGNMENT}")
