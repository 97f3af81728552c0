"""A machine with AVX-512 on one that has AVX2.

The compiler decides and writes for the wide machine.  LLVM makes the host's code of what it wrote, with the wide
machine's own instructions as functions.

Schedules, masks, packed formats and texts are those of the wide machine; LLVM's choice of its instructions is not.
``HF_TEST_MACHINE=avx512 pytest`` runs the tests so.  Processes that tests start have the host's own code.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from hybridflow.compiler import target as targets
from hybridflow.compiler.target import Target
from hybridflow.runtime.machine import host_target, machine_code

_NAMES = ("avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd", "avx512vnni")
_DECLARE = re.compile(
    r"^declare (?P<result><\d+ x \w+>) @llvm\.x86\.avx512\.(?P<name>[\w.]+)\((?P<types>.*)\)$", re.MULTILINE
)
_SHORT = {"float": "f32", "double": "f64"}
_state = threading.local()
_real: Target | None = None  # this machine, while it is to be another one


def install_if_asked() -> None:
    """Make this process's machine what HF_TEST_MACHINE says.  Before anything is compiled."""
    wanted = os.environ.get("HF_TEST_MACHINE", "")
    if wanted not in ("", "avx512"):
        raise ValueError(f"HF_TEST_MACHINE is 'avx512' or not set, not {wanted!r}")
    if wanted:
        install()


def install() -> None:
    """Make this process's machine the wide one."""
    global _real
    real = host_target.detect()
    if real.masked or not real.has("avx2") or not real.fma:
        return  # it is the wide one, or without the instructions that stand for the wide one's
    wide = replace(
        real,
        cpu=targets.AVX512.cpu,
        features=",".join([*(f for f in real.features.split(",") if f[1:] not in _NAMES), *(f"+{n}" for n in _NAMES)]),
        vector_bits=512,
        registers=32,
        masked=True,
    )
    _real = real
    host_target.detect = functools.cache(lambda: wide)
    host_target.can_run.cache_clear()
    _emulate(machine_code, real)


def is_emulated(target: Target) -> bool:
    """Whether other instructions stand for those of ``target``: they raise other flags of exceptions."""
    return executable(target) != target


def executable(target: Target) -> Target:
    """The machine whose code runs here as that of ``target``."""
    return target if _real is None else _narrowed(target, _real)


def _emulate(module: Any, real: Target) -> None:
    """Where ``machine_code`` makes objects, they are of the real machine.  Assembly text stays the wide one's."""
    make_machine, parse = module._target_machine, module._parse

    def _target_machine(target: Target, level: int = 2, jit: bool = False) -> Any:
        x86 = target.kind == "cpu" and target.triple.startswith("x86_64")
        return make_machine(_narrowed(target, real) if x86 and (jit or _active()) else target, level, jit)

    @functools.lru_cache(maxsize=32)
    def _cached(target: Target, level: int, number: int, active: bool) -> Any:
        return _target_machine(target, level)

    def _parse(text: str, context: Any) -> Any:
        return parse(expanded(text) if _active() else text, context)

    module._target_machine = _target_machine
    module._cached_target_machine = lambda target, level, number: _cached(target, level, number, _active())
    module._parse = _parse
    module._object = _inside(module._object)
    module.compile_library = _inside(module.compile_library)


def _narrowed(target: Target, real: Target) -> Target:
    """The machine that makes the code which stands for ``target``'s."""
    needs = target.masked or target.vector_bits > real.vector_bits or "avx512" in target.features
    return replace(target, cpu=real.cpu, features=real.features) if needs else target


def _active() -> bool:
    return getattr(_state, "depth", 0) > 0


@contextlib.contextmanager
def _making_objects() -> Iterator[None]:
    _state.depth = getattr(_state, "depth", 0) + 1
    try:
        yield
    finally:
        _state.depth -= 1


def _inside(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with _making_objects():
            return function(*args, **kwargs)

    return inside


def expanded(text: str) -> str:
    """The text of a module with functions in place of the instructions of AVX-512 that it declares."""
    made: list[str] = []

    def define(match: re.Match[str]) -> str:
        types = re.findall(r"<\d+ x \w+>|\w+", match["types"])
        return _definition(match["name"], match["result"], types, made)

    text = _DECLARE.sub(define, text)
    text = text.replace("@llvm.x86.avx512.", "@emulated.")
    made = [line for line in dict.fromkeys(made) if f"{line}\n" not in text]
    return "\n".join([text, *made, ""])


def _definition(name: str, result: str, types: list[str], declared: list[str]) -> str:
    kind = name.removeprefix("mask.").partition(".")[0]
    body = {"range": _range, "scalef": _scalef, "vpdpbusd": _dot_bytes, "pmaddw": _dot_words}[kind]
    parameters = ", ".join(f"{type_} %p{k}" for k, type_ in enumerate(types))
    lines = body(result, types, declared)
    return "\n".join([f"define internal {result} @emulated.{name}({parameters}) alwaysinline {{", *lines, "}"])


def _parts(vector: str) -> tuple[int, str]:
    lanes, element = re.fullmatch(r"<(\d+) x (\w+)>", vector).groups()  # type: ignore[union-attr]
    return int(lanes), element


def _masked(lines: list[str], vector: str, mask: str, value: str) -> list[str]:
    """Return ``value`` where the bit of %p{3 or 4} is set, and the operand before it in other lanes."""
    lanes, _ = _parts(vector)
    number, width = mask.removeprefix("%p"), max(8, lanes)
    bits = [f"%bits = bitcast i{width} {mask} to <{width} x i1>"]
    kept = "%bits"
    if width != lanes:
        kept = "%kept"
        chosen = ", ".join(f"i32 {lane}" for lane in range(lanes))
        bits.append(f"%kept = shufflevector <{width} x i1> %bits, <{width} x i1> poison, <{lanes} x i32> <{chosen}>")
    other = f"%p{int(number) - 1}"
    return [
        *lines,
        *bits,
        f"%result = select <{lanes} x i1> {kept}, {vector} {value}, {vector} {other}",
        f"ret {vector} %result",
    ]


def _range(vector: str, types: list[str], declared: list[str]) -> list[str]:
    """The less or the greater of numbers; of equal ones, which may be zeros of two signs, by their bits."""
    lanes, element = _parts(vector)
    integers = f"<{lanes} x {'i32' if element == 'float' else 'i64'}>"
    flags = f"<{lanes} x i1>"
    lines = [
        "%most = icmp eq i32 %p2, 5",
        f"%a = bitcast {vector} %p0 to {integers}",
        f"%b = bitcast {vector} %p1 to {integers}",
        f"%or = or {integers} %a, %b",
        f"%and = and {integers} %a, %b",
        f"%either = select i1 %most, {integers} %and, {integers} %or",
        f"%equal = bitcast {integers} %either to {vector}",
        f"%less = fcmp olt {vector} %p0, %p1",
        f"%greater = fcmp ogt {vector} %p0, %p1",
        f"%low = select {flags} %less, {vector} %p0, {vector} %p1",
        f"%high = select {flags} %greater, {vector} %p0, {vector} %p1",
        f"%extreme = select i1 %most, {vector} %high, {vector} %low",
        f"%same = fcmp oeq {vector} %p0, %p1",
        f"%value = select {flags} %same, {vector} %equal, {vector} %extreme",
    ]
    return _masked(lines, vector, "%p4", "%value")


def _scalef(vector: str, types: list[str], declared: list[str]) -> list[str]:
    """a * 2**floor(b), rounded once, by the C library's ldexp."""
    lanes, element = _parts(vector)
    function = {"float": "ldexpf", "double": "ldexp"}[element]
    declared.append(f"declare {element} @{function}({element}, i32)")
    floor, clamp = f"@llvm.floor.v{lanes}{_SHORT[element]}", f"@llvm.fptosi.sat.v{lanes}i32.v{lanes}{_SHORT[element]}"
    declared.append(f"declare {vector} {floor}({vector})")
    declared.append(f"declare <{lanes} x i32> {clamp}({vector})")
    lines = [
        f"%down = call {vector} {floor}({vector} %p1)",
        f"%whole = call <{lanes} x i32> {clamp}({vector} %down)",
    ]
    before = "poison"
    for lane in range(lanes):
        lines += [
            f"%a{lane} = extractelement {vector} %p0, i32 {lane}",
            f"%e{lane} = extractelement <{lanes} x i32> %whole, i32 {lane}",
            f"%r{lane} = call {element} @{function}({element} %a{lane}, i32 %e{lane})",
            f"%v{lane} = insertelement {vector} {before}, {element} %r{lane}, i32 {lane}",
        ]
        before = f"%v{lane}"
    lines.append(f"%unordered = fcmp uno {vector} %p1, %p1")
    lines.append(f"%value = select <{lanes} x i1> %unordered, {vector} %p1, {vector} {before}")
    return _masked(lines, vector, "%p3", "%value")


def _spread(name: str, vector: str, step: int, offset: int) -> str:
    lanes, _ = _parts(vector)
    chosen = ", ".join(f"i32 {lane}" for lane in range(offset, lanes, step))
    return f"{name} = shufflevector {vector} %products, {vector} poison, <{lanes // step} x i32> <{chosen}>"


def _dot_bytes(vector: str, types: list[str], declared: list[str]) -> list[str]:
    """total + the sum of four products of unsigned with signed bytes."""
    lanes, _ = _parts(vector)
    if types[1] != f"<{4 * lanes} x i8>":
        raise ValueError(f"operands of vpdpbusd are {types}")
    bytes_, wide = types[1], f"<{4 * lanes} x i32>"
    lines = [
        f"%a = zext {bytes_} %p1 to {wide}",
        f"%b = sext {bytes_} %p2 to {wide}",
        f"%products = mul {wide} %a, %b",
        *(_spread(f"%s{k}", wide, 4, k) for k in range(4)),
        f"%t0 = add {vector} %p0, %s0",
        *(f"%t{k} = add {vector} %t{k - 1}, %s{k}" for k in range(1, 4)),
    ]
    return [*lines, f"ret {vector} %t3"]


def _dot_words(vector: str, types: list[str], declared: list[str]) -> list[str]:
    """The sum of two products of signed words."""
    lanes, _ = _parts(vector)
    wide = f"<{2 * lanes} x i32>"
    lines = [
        f"%a = sext {types[0]} %p0 to {wide}",
        f"%b = sext {types[1]} %p1 to {wide}",
        f"%products = mul {wide} %a, %b",
        _spread("%s0", wide, 2, 0),
        _spread("%s1", wide, 2, 1),
        f"%value = add {vector} %s0, %s1",
    ]
    return [*lines, f"ret {vector} %value"]
