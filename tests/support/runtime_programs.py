"""Small Programs in LLVM text, written by hand to the contract of compiler/program.py."""

from __future__ import annotations

from hybridflow.compiler.program import Check, Dim, DimSource, Extent, Program, Slot
from hybridflow.runtime.machine import host_target

_LLVM = {"f32": "float", "f64": "double", "i32": "i32", "i64": "i64", "u8": "i8"}


def pointwise(
    expression: str,
    dtype: str = "f32",
    inputs: int = 1,
    scalars: tuple[bool, ...] = (),
    unlucky: int = -1,
    dims: bool = True,
    outputs: int = 1,
) -> Program:
    """``expression`` is LLVM for ``%r = ...`` of ``%v0``, ``%v1`` ...; fails its check when n is ``unlucky``.

    Inputs and outputs are [n], scalars [].  Every output is the same.  Without ``dims``, n is 4.
    """
    kind = _LLVM[dtype]
    scalars = scalars or (False,) * inputs
    lines = ["define i32 @pointwise(ptr %buffers, ptr %dims, ptr %arena, ptr %host) {", "entry:"]
    for k in range(inputs + outputs):
        lines += [f"  %s{k} = getelementptr ptr, ptr %buffers, i64 {k}", f"  %b{k} = load ptr, ptr %s{k}"]
    lines += [
        "  %n = load i64, ptr %dims" if dims else "  %n = add i64 4, 0",
        f"  %bad = icmp eq i64 %n, {unlucky}",
        "  br i1 %bad, label %fail, label %head",
        "head:",
        "  %i = phi i64 [0, %entry], [%next, %body]",
        "  %more = icmp ult i64 %i, %n",
        "  br i1 %more, label %body, label %end",
        "body:",
    ]
    for k, scalar in enumerate(scalars):
        index = "0" if scalar else "%i"
        lines += [f"  %p{k} = getelementptr {kind}, ptr %b{k}, i64 {index}", f"  %v{k} = load {kind}, ptr %p{k}"]
    lines.append("  " + expression)
    for k in range(inputs, inputs + outputs):
        lines += [f"  %p{k} = getelementptr {kind}, ptr %b{k}, i64 %i", f"  store {kind} %r, ptr %p{k}"]
    lines += ["  %next = add i64 %i, 1", "  br label %head", "end:", "  ret i32 0", "fail:", "  ret i32 1", "}"]
    n: Extent = Dim("n") if dims else 4
    first = scalars.index(False) if False in scalars else 0
    return Program(
        "pointwise",
        host_target.target(),
        "\n".join(lines),
        "pointwise",
        tuple(Slot(() if scalar else (n,), dtype, f"x{k}") for k, scalar in enumerate(scalars)),
        (Slot((n,), dtype),) * outputs,
        (DimSource("n", first, 0),) if dims else (),
        0,
        (Check("DivisionError", "pointwise", f"{unlucky} elements.", "train.py:7"),),
    )


def plus_one(**options: object) -> Program:
    return pointwise("%r = fadd float %v0, 1.0", **options)  # type: ignore[arg-type]


def add(dtype: str = "f32", **options: object) -> Program:
    operation = "fadd" if dtype.startswith("f") else "add"
    return pointwise(f"%r = {operation} {_LLVM[dtype]} %v0, %v1", dtype, 2, **options)  # type: ignore[arg-type]


def accumulate(outputs: int = 0, in_place: bool = True) -> Program:
    """state[i] += x[i] for four doubles; with an output, that is what the state was."""
    text = """
define i32 @accumulate(ptr %buffers, ptr %dims, ptr %arena, ptr %host) {
  %state = load ptr, ptr %buffers
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %x = load ptr, ptr %slot
  %a = load <4 x double>, ptr %state, align 8
  %b = load <4 x double>, ptr %x, align 8
  %c = fadd <4 x double> %a, %b
  %slot3 = getelementptr ptr, ptr %buffers, i64 UPDATE
  %new = load ptr, ptr %slot3
  store <4 x double> %c, ptr %new, align 8
  OUTPUT
  ret i32 0
}
"""
    store = """
  %slot2 = getelementptr ptr, ptr %buffers, i64 2
  %y = load ptr, ptr %slot2
  store <4 x double> %a, ptr %y, align 8
"""
    slots = (Slot((4,), "f64", "total", updated=True, in_place=in_place), Slot((4,), "f64", "x"))
    text = text.replace("OUTPUT", store if outputs else "").replace("UPDATE", str(2 + outputs))
    made = (Slot((4,), "f64"),) * outputs
    return Program("accumulate", host_target.target(), text, "accumulate", slots, made, (), 0)


def square_table() -> Program:
    """y[n, n] from x[n], untouched: an output that can be asked to be larger than any memory; arena n * 8 bytes."""
    text = """
define i32 @table(ptr %buffers, ptr %dims, ptr %arena, ptr %host) {
  %n = load i64, ptr %dims
  %last = sub i64 %n, 1
  %p = getelementptr double, ptr %arena, i64 %last
  store double 1.0, ptr %p
  ret i32 0
}
"""
    dims = (DimSource("n", 0, 0),)
    inputs, outputs = (Slot((Dim("n"),), "u8"),), (Slot((Dim("n"), Dim("n")), "f64"),)
    return Program("table", host_target.target(), text, "table", inputs, outputs, dims, Dim("n") * 8)
