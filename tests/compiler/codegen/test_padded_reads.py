"""Padded values that are computed where they are read: the bits of ops run one by one, and nothing outside is read."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler import target
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import ptx
from hybridflow.runtime.machine import host_target
from tests.compiler.codegen.test_kernels import same_bits
from tests.compiler.loops.test_fusion import build, run_one_by_one
from tests.gpu.test_cuda_emission import assert_assembles

TARGETS = [name for name in ("sse2", "avx2", "avx512") if host_target.can_run(target.NAMED[name])]


def random_sum(rng: np.random.Generator):
    """A sum of arrays padded to one shape: slices' derivatives, spread or not, of stored, computed and broadcast
    values, and of views in which neighbours lie apart."""
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, [9, 9, 40][-rank:] if rank < 3 else [4, 6, 40]))
    terms, arrays = [], []
    for _ in range(int(rng.integers(2, 6))):
        low = [int(rng.integers(0, n)) for n in shape]
        between = [int(rng.integers(0, 3)) * (rng.random() < 0.3) for _ in shape]
        size = [
            int(rng.integers(rng.random() < 0.9, (n - a - 1) // (s + 1) + 2)) for n, a, s in zip(shape, low, between)
        ]
        used = [(n - 1) * (s + 1) + 1 if n else 0 for n, s in zip(size, between)]
        high = [n - a - u for n, a, u in zip(shape, low, used)]
        attrs = {"low": low, "high": high, "interior": between, "value": float(rng.choice([0.0, 0.0, -1.5]))}
        how = rng.choice(["stored", "computed", "broadcast", "reshaped", "transposed", "strided", "reversed"])
        given = {
            "broadcast": (size[-1],),
            "reshaped": (int(np.prod(size)),),
            "transposed": tuple(size[::-1]),
            "strided": (*size, 3),
        }.get(how, tuple(size))
        arrays.append(rng.standard_normal(given).astype(np.float32))
        terms.append((how, tuple(size), attrs))

    def program(b, *parameters):
        total = None
        for x, (how, size, attrs) in zip(parameters, terms):
            if how == "computed":
                x = b.add(x, x)
            elif how == "broadcast":
                x = b.broadcast(x, shape=size, axes=(rank - 1,))
            elif how == "reshaped":
                x = b.reshape(x, shape=size)
            elif how == "transposed":
                x = b.transpose(x, perm=tuple(reversed(range(rank))))
            elif how == "strided":
                x = b.reshape(b.slice(x, start=(0,) * rank + (1,), stop=(*size, 2), step=(1,) * (rank + 1)), shape=size)
            elif how == "reversed":
                x = b.reverse(x, axes=(rank - 1,))
            x = b.pad(x, **attrs)
            total = x if total is None else b.add(b.multiply(total, total), x)
        return total

    return program, arrays


@pytest.mark.parametrize("seed", range(4))
def test_random_sums(seed):
    rng = np.random.default_rng(seed)
    fused = 0
    for _ in range(8):
        program, arrays = random_sum(rng)
        graph = build(program, arrays)
        wanted = run_one_by_one(graph, arrays)
        for name in TARGETS:
            compiled = compile_graph(graph, target.NAMED[name])
            fused += name == "avx512" and len(compiled.kernels) == 1
            for got, want in zip(cpu.load(compiled).run(arrays), wanted, strict=True):
                same_bits(got, want)
    assert fused > 2 or "avx512" not in TARGETS


def between_forbidden_pages(array: np.ndarray) -> np.ndarray:
    """A copy that fills whole pages of memory, before and after which nothing may be read."""
    page = mmap.PAGESIZE
    assert array.nbytes % page == 0
    memory = mmap.mmap(-1, array.nbytes + 2 * page)
    copy = np.frombuffer(memory, array.dtype, array.size, page).reshape(array.shape)
    copy[...] = array
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    start = copy.ctypes.data - page
    for address in (start, start + page + array.nbytes):
        assert protect(ctypes.c_void_p(address), ctypes.c_size_t(page), 0) == 0
    return copy


@pytest.mark.parametrize("shape", [(1024,), (32, 32), (4, 8, 32)], ids=str)
def test_nothing_outside_is_read(shape):
    rng = np.random.default_rng(1)
    x = between_forbidden_pages(rng.standard_normal(shape).astype(np.float32))

    def program(b, x):
        total = None
        for k in range(4):
            low, high = (k,) * len(shape), (3 - k,) * len(shape)
            part = b.pad(x, low=low, high=high, interior=(0,) * len(shape), value=0)
            total = part if total is None else b.add(total, part)
        return total

    graph = build(program, [x])
    for name in TARGETS:
        compiled = compile_graph(graph, target.NAMED[name])
        for got, want in zip(cpu.load(compiled).run([x]), run_one_by_one(graph, [x]), strict=True):
            same_bits(got, want)
        assert len(compiled.kernels) == 1 or name != "avx512"


def test_nvptx_and_ptxas_accept():
    program, arrays = random_sum(np.random.default_rng(3))
    compiled = compile_graph(build(program, arrays), target.CUDA_SM90)
    assert len(compiled.kernels) == 1
    assert_assembles(ptx.assemble(compiled))


def test_vectors_without_elements_read_no_memory_far_away():
    """Processors take a microsecond for a masked load of nothing where there is no memory."""

    def guarded(extent):
        def f(x, row):
            x = +x
            x[0] = x[0] + row[3]
            return x

        x, row = hf.zeros(extent), hf.arange(8, dtype="float32")
        same_bits(hf.function(f)(x, row).numpy(), f(x, row).numpy())
        graph = hf.function(f).get_concrete_function(x, row).graph
        text = compile_graph(graph, target.NAMED["avx512"]).text
        return "@llvm.vector.reduce.or" in text

    assert guarded(10**6) and not guarded(900)
