"""Complex numbers on a GPU: the bits of the CPU, in kernels whose threads compute several neighbours, or one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM90
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, ptx
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.cuda_emulator import Array, emulated  # noqa: F401

PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "chain": lambda z, w: (z * w + z) / hf.conj(w) - 0.5j,
    "parts": lambda z, w: (hf.abs(z), hf.real(z) * hf.imag(w)),
    "functions": lambda z, w: hf.exp(z) * hf.sqrt(w),
    "moved": lambda z, w: hf.concat([z[::-1], w]).reshape(2, -1).T,
    "looked up": lambda z, w: z[hf.asarray([3, 0, 3])] + w[hf.asarray([1, 1, 2])],
    "sums": lambda z, w: (hf.sum(z * w), hf.cumulative_sum(w), hf.prod(z[:5])),
    "product": lambda z, w: z.reshape(4, -1) @ w.reshape(-1, 4),
}


def numbers(seed: int, dtype: Any) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(36) + 1j * rng.standard_normal(36)).astype(dtype)


@pytest.mark.usefixtures("emulated")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gpu_has_the_bits_of_the_cpu(name: str, dtype: Any) -> None:
    arrays = [numbers(0, dtype), numbers(1, dtype)]
    graph = hf.function(PROGRAMS[name]).get_concrete_function(*arrays).graph
    want = cpu.load(compile_graph(graph, host_target.target())).run([a.copy() for a in arrays])
    got = cuda.load(compile_graph(graph, CUDA_SM90), 0).run([Array(a, 0) for a in arrays])
    assert all(same_bits(g.get(), w) for g, w in zip(got, want, strict=True))


def test_threads_read_several_numbers_at_once() -> None:
    arrays = [np.ones(1 << 22, np.complex64)] * 2
    graph = hf.function(lambda z, w: z * w).get_concrete_function(*arrays).graph
    text = ptx.assemble(compile_graph(graph, CUDA_SM90))
    assert "ld.global.v4.b32" in text and "st.global.v4.b32" in text
