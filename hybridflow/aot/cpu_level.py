"""Which level of x86-64 code needs, and how a library asks the processor for it."""

from __future__ import annotations

from hybridflow.compiler.target import Target
from hybridflow.runtime.machine import host_target

V3, V4 = 3, 4  # levels of x86-64 as the System V ABI numbers them; 1 is below the third

# Bits of cpuid: leaf 1 ecx (fma, movbe, osxsave, avx, f16c), leaf 7 ebx (bmi1, avx2, bmi2; avx512 f, dq, cd, bw, vl),
# leaf 0x80000001 ecx (lzcnt); of xgetbv: the registers that the system keeps.
_LEAF1 = 1 << 12 | 1 << 22 | 1 << 27 | 1 << 28 | 1 << 29
_LEAF7 = 1 << 3 | 1 << 5 | 1 << 8
_EXTENDED = 1 << 5
_KEPT = 1 << 1 | 1 << 2
_KEPT_WIDE = _KEPT | 1 << 5 | 1 << 6 | 1 << 7
_WIDE = 1 << 16 | 1 << 17 | 1 << 28 | 1 << 30 | 1 << 31


def needed(target: Target) -> int:
    """The level that code for a target needs; 0 where any processor of its kind has what it needs."""
    if not target.triple.startswith("x86_64"):
        return 0
    return V4 if target.masked else V3 if target.fma else 0


def can_ask(target: Target) -> bool:
    """Whether LLVM here can write the code that asks: it reads assembly for its own processor alone."""
    return host_target.detect().triple.partition("-")[0] == target.triple.partition("-")[0]


def baseline(target: Target) -> str:
    """Attributes of functions that run before anybody has asked."""
    return ' "target-cpu"="x86-64" "target-features"=""' if target.triple.startswith("x86_64") else ""


def attributes(target: Target) -> str:
    """Attributes of functions that are for a target, in a module with others."""
    return f' "target-cpu"="{target.cpu}" "target-features"="{target.features}"'


def code(prefix: str) -> str:
    """``i32 PREFIX.level_now()``, which asks once."""
    registers = "~{dirflag},~{fpsr},~{flags}"

    def cpuid(name: str, leaf: int) -> str:
        answer = "{ i32, i32, i32, i32 }"
        asked = f'asm sideeffect "cpuid", "={{ax}},={{bx}},={{cx}},={{dx}},{{ax}},{{cx}},{registers}"'
        return f"  %{name} = call {answer} {asked}(i32 {leaf}, i32 0)"

    def word(name: str, answer: str, register: int) -> str:
        return f"  %{name} = extractvalue {{ i32, i32, i32, i32 }} %{answer}, {register}"

    def has(name: str, value: str, bits: int) -> str:
        return f"  %{name}.m = and i32 %{value}, {bits}\n  %{name} = icmp eq i32 %{name}.m, {bits}"

    return "\n".join(
        [
            f"@{prefix}.level = internal global i32 0",
            f"define internal i32 @{prefix}.level_now() #0 {{",
            "entry:",
            f"  %known = load atomic i32, ptr @{prefix}.level monotonic, align 4",
            "  %is = icmp ne i32 %known, 0",
            "  br i1 %is, label %end, label %ask",
            "end:",
            "  ret i32 %known",
            "ask:",
            cpuid("one", 1),
            word("c", "one", 2),
            has("first", "c", _LEAF1),
            "  br i1 %first, label %more, label %below",
            "more:",
            cpuid("seven", 7),
            word("b", "seven", 1),
            has("second", "b", _LEAF7),
            cpuid("extended", 0x80000001 - (1 << 32)),
            word("x", "extended", 2),
            has("third", "x", _EXTENDED),
            f'  %kept = call {{ i32, i32 }} asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}},{registers}"(i32 0)',
            "  %k = extractvalue { i32, i32 } %kept, 0",
            has("ymm", "k", _KEPT),
            has("zmm", "k", _KEPT_WIDE),
            has("wide", "b", _WIDE - (1 << 32)),
            "  %p = and i1 %second, %third",
            "  %v3 = and i1 %p, %ymm",
            "  %q = and i1 %v3, %zmm",
            "  %v4 = and i1 %q, %wide",
            f"  %r = select i1 %v3, i32 {V3}, i32 1",
            f"  %level = select i1 %v4, i32 {V4}, i32 %r",
            f"  store atomic i32 %level, ptr @{prefix}.level monotonic, align 4",
            "  ret i32 %level",
            "below:",
            f"  store atomic i32 1, ptr @{prefix}.level monotonic, align 4",
            "  ret i32 1",
            "}",
        ]
    )
