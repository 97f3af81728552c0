"""Attention on a GPU by teams that have a few rows of scores in their memory: the bits of the CPU, whichever thread
goes first, and no array of all scores anywhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.codegen.gpu import cooperative
from hybridflow.compiler.loops.tuning import ROW_BLOCK_GROUP
from hybridflow.compiler.ops.evaluation_order import CHUNK, K_BLOCK, LANES
from hybridflow.compiler.passes import tile_heights, tile_regions
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import CUDA_SM80, CUDA_SM90
from hybridflow.runtime import cpu
from hybridflow.runtime.cuda import executable as cuda, ptx
from hybridflow.runtime.machine import host_target
from tests.compiler.passes.test_tile_and_fuse import (
    WAYS,
    attend,
    by_hand,
    causal,
    gradient,
    heads,
    hidden,
    masked,
    shared,
    shared_causal,
    shared_masked,
    some,
)
from tests.gpu.test_cuda_products import graph_of, placed
from tests.support.bits import same_bits
from tests.support.cuda_blocks import ORDERS, StuckThreads
from tests.support.cuda_emulator import emulated  # noqa: F401

IN_BLOCK, ON_DEVICE = "memory of the block", "memory of the device for each team"


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    monkeypatch.setattr(tile_regions, "LEAST", 1)
    monkeypatch.setattr(tile_heights, "FEW_GROUPS", 1)


def by_teams(program):
    """How the kernels run that have panels of rows."""
    return [kernel.schedule for kernel in program.kernels if "rows a team" in kernel.schedule]


def check(emulated, program, arrays, orders=("shuffled",), target=CUDA_SM90, where=IN_BLOCK, specs=None):  # noqa: F811
    """That a program has panels of rows, which lie there, and the bits of the CPU."""
    graph = graph_of(program, arrays, specs)
    compiled = compile_graph(graph, target)
    found = by_teams(compiled)
    assert found and all(where in how for how in found), found
    for launch in compiled.launches:
        assert launch.memory <= target.block_memory
        assert not launch.memory or launch.block == launch.group_size == ROW_BLOCK_GROUP
    with np.errstate(all="ignore"):
        want = cpu.load(compile_graph(graph, host_target.target())).run([np.array(a) for a in arrays])
    executable = cuda.load(compiled, 0)
    for order in orders:
        emulated.order = order
        got = executable.run([placed(a) for a in arrays])
        assert all(same_bits(g.get(), w) for g, w in zip(got, want, strict=True)), order
    return compiled


MORE = {
    "gradient of shared": (gradient(shared), [some(2, 4, 20, 5), some(2, 2, 23, 5), some(2, 2, 23, 6)]),
    "gradient of shared with masks": (
        gradient(shared_masked),
        [some(2, 6, 20, 5), some(2, 2, 17, 5), some(2, 2, 17, 6), some(1, 6, 20, 17)],
    ),
    "gradient of a batch of one": (gradient(by_hand), heads(20, 23, 4, 1, 2)),
    "gradient of shared by all": (gradient(shared_causal), [some(4, 37, 5), some(1, 37, 5), some(1, 37, 6)]),
}


@pytest.mark.parametrize("way", [*WAYS, *MORE])
def test_however_it_is_written(emulated, way):  # noqa: F811
    check(emulated, *(WAYS | MORE)[way])


@pytest.mark.parametrize("program", [causal, gradient(causal)], ids=["forwards", "derivatives"])
def test_every_order_of_threads(emulated, program):  # noqa: F811
    check(emulated, program, heads(37, 37, 5, 2), tuple(ORDERS))


@pytest.mark.parametrize("rows", [2, 15, 16, 17, 33])
@pytest.mark.parametrize("keys", [5, LANES - 1, LANES + 1, K_BLOCK + 1])
def test_edges_of_tiles_lanes_and_blocks(emulated, rows, keys):  # noqa: F811
    check(emulated, by_hand, heads(rows, keys, min(rows, keys, 3), 2))


@pytest.mark.parametrize("depth", [1, 8, 9])
def test_depths(emulated, depth):  # noqa: F811
    check(emulated, gradient(by_hand), heads(18, 21, depth, 2))


def test_a_depth_of_several_blocks(emulated):  # noqa: F811
    check(emulated, by_hand, heads(K_BLOCK + 5, K_BLOCK + 6, K_BLOCK + 3))


@pytest.mark.parametrize("program", [attend, gradient(attend)], ids=["forwards", "derivatives"])
def test_rows_of_several_chunks(emulated, program):  # noqa: F811
    arrays = [some(16, 2), some(CHUNK + 5, 2), some(CHUNK + 5, 2)]
    check(emulated, program, arrays, where="")


@pytest.mark.parametrize("program", [attend, gradient(causal)], ids=["forwards", "derivatives"])
def test_rows_that_a_block_has_no_memory_for(emulated, program):  # noqa: F811
    arrays = heads(40, 40, 4, 5)[:2] + [some(5, 40, 4)]
    small = replace(CUDA_SM80, block_memory=12 * 1024)
    compiled = check(emulated, program, arrays, tuple(ORDERS), small, ON_DEVICE)
    for launch in compiled.launches:
        if launch.memory:
            assert launch.scratch_bytes > 0


def test_what_a_panel_takes_and_nothing_else_has_all_scores():
    shape = (4, 8, 1024, 64)
    specs = [hf.TensorSpec(shape, np.float32)] * 3
    scores = 4 * 8 * 1024 * 1024 * 4
    for program, nodes in ((attend, 1), (gradient(causal), 2)):
        compiled = compile_graph(graph_of(program, None, specs), CUDA_SM90)
        assert len(by_teams(compiled)) == nodes
        assert compiled.arena_bytes < scores // 4
        assert all(launch.scratch_bytes == 0 for launch in compiled.launches)
    (how,) = by_teams(compile_graph(graph_of(attend, None, specs), CUDA_SM90))
    assert how.startswith("16 rows a team of 128; ") and how.endswith(IN_BLOCK)


@pytest.mark.parametrize("program", [by_hand, causal, gradient(hidden)], ids=["by hand", "causal", "derivatives"])
def test_what_is_not_finite_goes_the_same_way(emulated, program):  # noqa: F811
    arrays = heads(34, 34, 4, 2)
    arrays[0][0, 3] = np.inf
    arrays[1][1, 5] = np.nan
    arrays[2][0, 30] = -np.inf
    arrays[0][1, 7] = 3e38
    arrays[0][1, 8] = -0.0
    check(emulated, program, arrays)


def test_a_mask_that_hides_all(emulated):  # noqa: F811
    mask = np.zeros((34, 34), bool)
    mask[20:] = True

    def program(q, k, v, mask):
        return hf.nn.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    check(emulated, gradient(program), [*heads(34, 34, 4, 2), mask])


@pytest.mark.parametrize("dtype", [np.float64, hf.bfloat16, np.float16])
def test_other_dtypes(emulated, dtype):  # noqa: F811
    arrays = [a.astype(dtype) for a in heads(20, 35, 4, 2)]
    check(emulated, by_hand, arrays)


def test_open_batch_axes(emulated):  # noqa: F811
    specs = [hf.TensorSpec((None, 3, 20, 8), np.float32)] * 3
    check(emulated, gradient(by_hand), [some(2, 3, 20, 8)] * 3, specs=specs)


@pytest.mark.parametrize("keys", [2, 57])
def test_open_keys(emulated, keys):  # noqa: F811
    specs = [hf.TensorSpec((2, 20, 8), np.float32), *[hf.TensorSpec((2, None, 8), np.float32)] * 2]
    arrays = [some(2, 20, 8), some(2, keys, 8), some(2, keys, 8)]
    check(emulated, by_hand, arrays, where=ON_DEVICE, specs=specs)


def test_derivatives_of_open_keys_keep_their_scores(emulated):  # noqa: F811
    specs = [hf.TensorSpec((2, 20, 8), np.float32), *[hf.TensorSpec((2, None, 8), np.float32)] * 2]
    assert not by_teams(compile_graph(graph_of(gradient(by_hand), None, specs), CUDA_SM90))


def test_few_panels_are_left_to_what_is_cut_finer(monkeypatch):
    monkeypatch.setattr(tile_heights, "FEW_GROUPS", 32)
    assert not by_teams(compile_graph(graph_of(by_hand, heads(64, 64, 8, 4)), CUDA_SM90))
    assert by_teams(compile_graph(graph_of(by_hand, heads(128, 64, 8, 4)), CUDA_SM90))


def test_scores_that_are_wanted_are_made_as_ever():
    def program(q, k, v):
        shares = hf.nn.softmax(q @ hf.permute_dims(k, (0, 2, 1)))
        return shares @ v, shares

    assert not by_teams(compile_graph(graph_of(program, heads(64, 64, 8, 4)), CUDA_SM90))


def test_within_a_loop_all_threads_do_it_together(emulated):  # noqa: F811
    def program(q, k, v):
        return hf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, attend(x, k, v)), (0, q))[1]

    arrays = [some(2, 20, 4)] * 3
    graph = graph_of(program, arrays)
    compiled = compile_graph(graph, CUDA_SM90)
    assert not by_teams(compiled)
    (want,) = cpu.load(compile_graph(graph, host_target.target())).run(arrays)
    (got,) = cuda.load(compiled, 0).run([placed(a) for a in arrays])
    assert same_bits(got.get(), want)


def test_tensor_cores_multiply_where_bits_are_given_up(emulated):  # noqa: F811
    arrays = [a.astype(hf.bfloat16) for a in (some(2, 32, 16), some(2, 48, 16), some(2, 48, 16))]
    graph = graph_of(by_hand, arrays)
    compiled = compile_graph(graph, CUDA_SM90, True)
    assert by_teams(compiled)
    assert sum("fragments in tiles" in kernel.schedule for kernel in compiled.kernels) == 2
    (got,) = cuda.load(compiled, 0).run([placed(a) for a in arrays])
    q, k, v = (a.astype(np.float64) for a in arrays)
    scores = q @ k.swapaxes(-1, -2) / 4
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    want = shares / shares.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(got.get().astype(np.float64), want, rtol=0.05, atol=0.02)


def test_a_barrier_that_is_missing_is_found(emulated, monkeypatch):  # noqa: F811
    monkeypatch.setattr(cooperative.CooperativeBlock, "barrier", lambda self: None)
    with pytest.raises((AssertionError, StuckThreads)):
        check(emulated, by_hand, heads(80, 33, 4, 2), tuple(ORDERS))


@pytest.mark.parametrize("target", [CUDA_SM80, CUDA_SM90], ids=["sm_80", "sm_90"])
def test_ptx_asks_for_the_memory_that_launches_give(target):
    specs = [*[hf.TensorSpec((2, 256, 32), np.float32)] * 3, hf.TensorSpec((256, 256), np.float32)]
    compiled = compile_graph(graph_of(masked, None, specs), target)
    text = ptx.assemble(compiled)
    assert ".extern .shared .align 64 .b8 lent[]" in text
    assert "ld.shared" in text and "st.shared" in text and "global.nc" not in text
