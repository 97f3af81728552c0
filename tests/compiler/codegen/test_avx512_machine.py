"""The machine with AVX-512 that tests have where there is none: its instructions, and programs that run on it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from hybridflow.runtime.machine import host_target, machine_code
from tests.support import avx512_machine
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(
    not (host_target.detect().has("avx2") and host_target.detect().fma), reason="what stands for AVX-512 needs AVX2"
)

FLOATS = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 1.5e-38, -2.5, 3e38, 1e-45, -1e-45, 0.1, 7.0, 7.0, -7.0, 2.0**-126]


def run(symbol: str, result: str, types: list[str], given: list[np.ndarray | int], out: np.ndarray) -> np.ndarray:
    """What an instruction makes of vectors, which lie in memory, and of integers."""
    loads, arguments, parameters, pointers = [], [], ["ptr %out"], []
    for k, (type_, value) in enumerate(zip(types, given, strict=True)):
        if isinstance(value, int):
            arguments.append(f"{type_} {value}")
            continue
        parameters.append(f"ptr %a{k}")
        loads.append(f"  %v{k} = load {type_}, ptr %a{k}, align 4")
        arguments.append(f"{type_} %v{k}")
        pointers.append(value.ctypes.data)
    text = "\n".join(
        [
            f"declare {result} @llvm.x86.avx512.{symbol}({', '.join(types)})",
            f"define void @kernel({', '.join(parameters)}) {{",
            *loads,
            f"  %r = call {result} @llvm.x86.avx512.{symbol}({', '.join(arguments)})",
            f"  store {result} %r, ptr %out, align 4",
            "  ret void",
            "}",
            "",
        ]
    )
    if not host_target.detect().has("avx512f"):
        text = avx512_machine.expanded(text)
    code = machine_code.load_object(machine_code.compile_object(text, host_target.detect()), "kernel")
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (1 + len(pointers)))(code.addresses["kernel"])(
        out.ctypes.data, *pointers
    )
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [False, True])
def test_the_less_and_the_greater(dtype: type, most: bool) -> None:
    a = np.array(FLOATS, dtype)
    lanes, element = 64 // a.itemsize, {4: "float", 8: "double"}[a.itemsize]
    for turn in range(lanes):
        x, y = a[:lanes].copy(), np.roll(a, turn)[:lanes].copy()
        vector = f"<{lanes} x {element}>"
        name = f"mask.range.{'ps' if a.itemsize == 4 else 'pd'}.512"
        types = [vector, vector, "i32", vector, f"i{max(8, lanes)}", "i32"]
        kept = (1 << lanes) - 3  # but the second
        found = run(name, vector, types, [x, y, 4 + most, np.full_like(x, 9), kept, 4], np.zeros_like(x))
        key = [np.where(v == 0, np.where(np.signbit(v), -1e-300, 0), v.astype(np.float64)) for v in (x, y)]
        wanted = np.where((key[0] > key[1]) == most, x, y)
        wanted[1] = 9
        assert found.tobytes() == wanted.astype(dtype).tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_with_a_power_of_two(dtype: type) -> None:
    a = np.array(FLOATS, dtype)
    lanes, element = 64 // a.itemsize, {4: "float", 8: "double"}[a.itemsize]
    vector, name = f"<{lanes} x {element}>", f"mask.scalef.{'ps' if a.itemsize == 4 else 'pd'}.512"
    exponents = np.array([0.0, 3.0, -149.0, -2000.0, 2.5, -0.5, 127.0, 1e9, -1e9, -np.inf, np.inf, 1, 0, -3, 24, -1])
    for turn in range(16):
        x, e = np.roll(a, turn)[:lanes].copy(), exponents[:lanes].astype(dtype)
        types = [vector, vector, vector, f"i{max(8, lanes)}", "i32"]
        found = run(name, vector, types, [x, e, np.zeros_like(x), (1 << lanes) - 1, 4], np.zeros_like(x))
        with np.errstate(all="ignore"):
            wanted = np.ldexp(x, np.clip(np.floor(e), -9999, 9999).astype(np.int32))
        finite = np.isfinite(e)
        assert found[finite].tobytes() == wanted[finite].tobytes()


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_sums_of_products_of_bytes(lanes: int) -> None:
    if host_target.detect().has("avx512f") and not host_target.detect().has("avx512vnni"):
        pytest.skip("this machine has AVX-512 without the instruction")
    rng = np.random.default_rng(lanes)
    total = rng.integers(-(2**31), 2**31, lanes).astype(np.int32)
    a, b = rng.integers(0, 256, 4 * lanes).astype(np.uint8), rng.integers(-128, 128, 4 * lanes).astype(np.int8)
    a[:4], b[:4], b[4:8] = 255, -128, 127
    vector, bytes_ = f"<{lanes} x i32>", f"<{4 * lanes} x i8>"
    found = run(f"vpdpbusd.{32 * lanes}", vector, [vector, bytes_, bytes_], [total, a, b], np.zeros_like(total))
    products = (a.astype(np.int64) * b).reshape(lanes, 4).sum(1)
    assert found.tobytes() == (total + products).astype(np.int32).tobytes()


def test_sums_of_products_of_words() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-(2**15), 2**15, (2, 32)).astype(np.int16)
    a[:2] = b[:2] = -(2**15)
    words = "<32 x i16>"
    found = run("pmaddw.d.512", "<16 x i32>", [words, words], [a, b], np.zeros(16, np.int32))
    wanted = (a.astype(np.int64) * b).reshape(16, 2).sum(1).astype(np.int32)
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.slow
def test_programs_of_that_machine() -> None:
    """Unseen programs, whose schedules are the wide machine's, have the same bits eagerly and compiled."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.support.fuzz", "9100000", "12"],
        env={**os.environ, "HF_TEST_MACHINE": "avx512", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0 and "'programs'" in ran.stdout and "failures" not in ran.stdout, (
        ran.stdout[-2000:],
        ran.stderr[-2000:],
    )
