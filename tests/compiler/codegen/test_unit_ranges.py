"""What phases promise, piece by piece (``phase_host``): of golden programs, of all ops, of random programs, and of maps
over several loops that are cut, some of which are read across."""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.codegen.control import driver
from hybridflow.compiler.codegen.control.dispatch import KernelCall
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.codegen.core.kernel_dedup import BufferPart
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.phases import EmittedKernel, Phase, kernel_parameters
from hybridflow.compiler.codegen.core.unit_ranges import UnitRanges
from hybridflow.compiler.index.index_expr import LoopVar
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.extents import symbols
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.text import parse
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.loops.buffer_assignment import plan
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import partition
from hybridflow.compiler.program import Program, Slot, value_at
from hybridflow.compiler.target import NAMED
from hybridflow.errors import CompileError
from hybridflow.runtime.machine import host_target
from tests.compiler.passes.test_golden_programs import _CASE, FILES
from tests.support import teams
from tests.support.bits import same_bits
from tests.support.device_programs import PROGRAMS, graph_of, largest_sample, traced, typical_dtypes
from tests.support.fuzz import fast_compiler
from tests.support.phase_host import PhaseError, check_phases, compiled, donating, small_pieces
from tests.support.random_programs import traced as random_graph

EXTENT = 70  # of axes that a graph leaves open


def arrays_for(graph: Graph) -> list[np.ndarray]:
    """For integers, positions that every array of these tests has."""
    rng = np.random.default_rng(len(graph.nodes))
    found = []
    for node in graph.inputs:
        sizes = {name: EXTENT for extent in node.shape for name in symbols(extent)}
        shape = tuple(value_at(extent, sizes) for extent in node.shape)
        found.append(rng.integers(0, 3, shape) if not dt.is_float(node.dtype) else rng.normal(size=shape))
    return [x.astype(node.dtype) for x, node in zip(found, graph.inputs)]


def check(graph: Graph, arrays: list[np.ndarray], target: str = "") -> int:
    """As it is and in small pieces, with memory of its own for results and with that of arguments; how many phases
    could be cut."""
    machine = NAMED[target] if target and host_target.can_run(NAMED[target]) else host_target.target()
    count = 0
    for pieces, given in itertools.product((contextlib.nullcontext, small_pieces), (graph, donating(graph))):
        with pieces():
            count += check_phases(compiled(given, machine), arrays)
    return count


def cpu_programs() -> Iterator[tuple[str, str, Graph]]:
    for path in FILES:
        case = _CASE.fullmatch(path.read_text())
        assert case is not None
        if NAMED[case["target"]].kind == "cpu":
            yield path.stem, case["target"], parse(case["text"], TABLE)


@pytest.mark.parametrize(("target", "graph"), [pytest.param(t, g, id=name) for name, t, g in cpu_programs()])
def test_golden_programs(target, graph):
    for machine in (target, ""):
        check(graph, arrays_for(graph), machine)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_programs(name):
    check(traced(name), [np.asarray(a) for a in PROGRAMS[name][1]])


@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if op.dtypes])
def test_ops(name):
    for dtype in typical_dtypes(TABLE[name]):
        arrays, attrs = largest_sample(TABLE[name], dtype)
        with fast_compiler(), small_pieces():
            check_phases(compiled(graph_of(TABLE[name], arrays, attrs), host_target.target()), arrays)


@pytest.mark.parametrize(
    ("channels", "size", "extent", "groups", "columns", "dtype"),
    [
        (5, (3, 3), 20, 1, 3, "f4"),  # a last tile has rows that the result does not have; several blocks of places
        (40, (3, 3), 5, 1, 9, "f8"),  # a last slice has fewer channels
        (7, (1, 5), 9, 2, 2, "f4"),
        (2, (2, 2), 9, 13, 1, "f4"),  # vectors across groups
        (3, (3, 1), 9, 6, 3, "f8"),
    ],
)
def test_filter_gradients_leave_no_trace_of_scratch_memory(channels, size, extent, groups, columns, dtype):
    rng = np.random.default_rng(0)
    places = [extent - n + 1 for n in size]
    image = rng.normal(size=(1, extent, extent, groups, channels)).astype(dtype)
    cotangent = rng.normal(size=(1, *places, groups, columns)).astype(dtype)
    graph = graph_of(TABLE["convolve_filter"], [image, cotangent], {"size": size})
    with fast_compiler(), small_pieces():
        check_phases(compiled(graph, host_target.target()), [image, cotangent])


@pytest.mark.sample(2)
def test_random_programs(seeds, monkeypatch):
    monkeypatch.setattr(logging.getLogger("hybridflow"), "level", logging.ERROR)
    cut = 0
    for seed in seeds:
        with np.errstate(all="ignore"), fast_compiler(), small_pieces():
            found = random_graph(seed)
            if found is None or any(node.op.name == "callback" for node in found[0].nodes):
                continue
            graph, arrays = found
            cut += check_phases(compiled(donating(graph) if seed % 2 else graph, host_target.target()), arrays, seed)
    assert cut > 0 or len(seeds) < 10


# ---- maps over several loops, which read across

PERMUTED = [
    ((2, 9, 40, 33), (0, 3, 1, 2)),
    ((3, 40, 33), (0, 2, 1)),
    ((2, 3, 37, 20), (1, 0, 3, 2)),
    ((5, 17, 3, 18), (2, 0, 3, 1)),
    ((2, 2, 2, 19, 35), (1, 0, 2, 4, 3)),
    ((70, 70), (1, 0)),
]


def permuted(shape: tuple[int, ...], perm: tuple[int, ...], dtype: np.dtype, backwards: bool) -> Graph:
    """z + w, turned, in the place of z."""
    b = GraphBuilder(TABLE, "permuted")
    w = b.parameter(TensorType(shape, dtype))
    z = b.parameter(TensorType(tuple(shape[k] for k in perm), dtype))
    turned = b.transpose(b.reverse(w, axes=(len(shape) - 1,)) if backwards else w, perm=perm)
    return donating(b.finish([b.add(z, turned)]))


@pytest.mark.parametrize("target", ["", "avx2", "sse2"])
@pytest.mark.parametrize(("shape", "perm"), PERMUTED)
def test_permuted_operands(shape, perm, target):
    for dtype, backwards in itertools.product((dt.float32, dt.float64, dt.int8), (False, True)):
        graph = permuted(shape, perm, dtype, backwards)
        assert check(graph, arrays_for(graph), target) > 0


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_residuals_of_permuted_images(threads, dtype):
    rng = np.random.default_rng(threads)
    z, w = (rng.normal(size=s).astype(dtype) for s in ((2, 128, 28, 28), (2, 28, 28, 128)))

    def residual(z: hf.Tensor, w: hf.Tensor) -> hf.Tensor:
        return z + hf.permute_dims(w, (0, 3, 1, 2))

    with teams.threads(threads):
        for donated in ((), (0,)):
            function = hf.function(residual, donate_argnums=donated)
            for _ in range(3):
                found = function(hf.asarray(z), hf.asarray(w))
                assert same_bits(found.numpy(), z + w.transpose(0, 3, 1, 2))


# ---- where loops may be asked for their part


def cut_of(*extents: int) -> tuple[KernelBuilder, UnitRanges, list[LoopVar]]:
    code = KernelBuilder(Emitter(host_target.target(), 1))
    loops = [LoopVar(f"i{k}", n) for k, n in enumerate(extents)]
    return code, UnitRanges(code, loops, "%begin", "%end"), loops


def test_the_part_of_a_loop_is_known_within_those_around_it():
    _, cut, (outer, middle, inner) = cut_of(3, 4, 5)
    with cut.iterations(outer):
        with cut.iterations(middle):
            first = cut.bounds(inner)
            assert cut.bounds(inner) == first
        with pytest.raises(CompileError, match="part of loop i2 is asked for where loops around it are not open"):
            cut.bounds(inner)
    cut.check_used()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_it_is_known_nowhere_else(number):
    _, cut, loops = cut_of(3, 4, 5)
    with pytest.raises(CompileError, match="This is a defect of hybridflow"):
        cut.bounds(loops[number])
    if number:
        with pytest.raises(CompileError, match="are not open"), cut.iterations(loops[number]):
            pass


def test_a_cut_that_nobody_asks_for_is_refused():
    _, cut, (outer, _) = cut_of(3, 4)
    with cut.iterations(outer):
        pass
    with pytest.raises(CompileError, match="pieces of the units of a phase do the same work"):
        cut.check_used()
    cut_of()[1].check_used()


# ---- defects that are planted


def test_pieces_that_do_whole_planes_are_found(monkeypatch):
    monkeypatch.setattr(UnitRanges, "bounds", lambda self, var: (0, self._code.extent(var.extent)))
    monkeypatch.setattr(UnitRanges, "check_used", lambda self: None)
    graph = permuted(*PERMUTED[0], dt.float32, False)
    with pytest.raises(PhaseError, match=r"alone leave something else|write what other units write"):
        check(graph, arrays_for(graph))


UNITS, SIZE = 6, 8  # units, and bytes of each


def written_by_hand(body: Callable[[KernelBuilder, str, str], None]) -> Program:
    """A program of one phase: ``body(code, unit, end)`` for each of its units."""
    b = GraphBuilder(TABLE, "by_hand")
    x = b.parameter(TensorType((UNITS,), dt.float64))
    graph = b.finish([b.exp(x)])
    module = LLVMModule(host_target.target())
    code = KernelBuilder(Emitter(module.target, 1))
    with code.loop("%begin", "%end") as unit:
        body(code, str(unit.index), "%end")
    code.e.line("ret void")
    symbol = module.function(code.e, module.fresh("k"), kernel_parameters(2), linkage="internal")
    found = plan(graph, partition(graph, module.target))
    kernel = EmittedKernel((Phase(symbol, (UNITS,)),), scratch=SIZE)
    calls = [KernelCall(kernel, [BufferPart(x, 0), BufferPart(graph.outputs[0], 0)], None, 0, 0, 0)]
    memory, sharing = driver.write(module, "main", graph, found, [], calls)
    slot = (Slot((UNITS,), "f64"),)
    return Program(
        "by_hand",
        module.target,
        module.render(),
        "main",
        slot,
        slot,
        (),
        memory.arena,
        scratch_bytes=memory.scratch,
        sharing=module.addition(sharing),
    )


def _copy(code: KernelBuilder, source: object, target: object) -> None:
    value = code.e.load(code.at("%a0", source, SIZE), dt.float64)  # type: ignore[arg-type]
    code.e.store(value, code.at("%a1", target, SIZE))  # type: ignore[arg-type]


def _right(code: KernelBuilder, unit: str, end: str) -> None:
    _copy(code, unit, unit)


def _next_too(code: KernelBuilder, unit: str, end: str) -> None:
    """Writes the following element too, with the value that its own unit gives it."""
    _copy(code, unit, unit)
    after = code.min(code.add(unit, 1), UNITS - 1)
    _copy(code, after, after)


def _neighbour(code: KernelBuilder, unit: str, end: str) -> None:
    """Reads what the unit before has written."""
    _copy(code, unit, unit)
    with code.when(code.compare("slt", 0, unit)):
        before = code.e.load(code.at("%a1", code.sub(unit, 1), SIZE), dt.float64)
        code.e.store(before, code.at("%a1", unit, SIZE))


def _behind(code: KernelBuilder, unit: str, end: str) -> None:
    """Writes behind the result."""
    _copy(code, unit, code.add(unit, 3))


def _nothing_but_the_last(code: KernelBuilder, unit: str, end: str) -> None:
    """Writes where a piece ends, not where a unit does."""
    last = code.sub(end, 1)
    _copy(code, last, last)


def _in_order(code: KernelBuilder, unit: str, end: str) -> None:
    """Adds to what is there."""
    code.e.store(code.e.add(code.e.load("%a1", dt.int64), 1), "%a1")


def _scratch_that_lasts(code: KernelBuilder, unit: str, end: str) -> None:
    """Hopes to find what it left in scratch memory."""
    with code.when(code.compare("eq", unit, 0)):
        code.e.store(code.e.load("%a0", dt.float64), "%scratch")
    code.e.store(code.e.load("%scratch", dt.float64), code.at("%a1", unit, SIZE))


def _others_scratch(code: KernelBuilder, unit: str, end: str) -> None:
    _copy(code, unit, unit)
    code.e.store(code.e.load("%a0", dt.float64), code.at("%scratch", -8, SIZE))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (_next_too, "write what other units write"),
        (_neighbour, "leave something else"),
        (_behind, "writes where nobody may"),
        (_in_order, "leave something else"),
        (_scratch_that_lasts, "leave something else"),
        (_others_scratch, "another one's scratch memory"),
        (_nothing_but_the_last, "other bits than the entry that runs all in place"),
    ],
)
def test_phases_that_break_a_promise_are_found(body, what):
    x = np.arange(1.0, UNITS + 1)
    assert check_phases(written_by_hand(_right), [x]) == 1
    with pytest.raises(PhaseError, match=what):
        check_phases(written_by_hand(body), [x])
