"""Schedules of products, convolutions, scans, sorts and scatters: pure functions, pinned; and that every one of those
that there are for a kernel gives the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.codegen.ordering.ordering_schedule import (
    counts_in_tables,
    scan_schedule,
    scatter_schedule,
    sort_schedule,
)
from hybridflow.compiler.codegen.products import convolution, convolution_filter_gradient, product_schedule
from hybridflow.compiler.codegen.products.convolution import WindowFacts
from hybridflow.compiler.codegen.products.convolution_filter_gradient import FilterGradientFacts
from hybridflow.compiler.codegen.products.packed_formats import packed_format_of
from hybridflow.compiler.codegen.products.padded_input_tiles import WindowGeometry
from hybridflow.compiler.codegen.products.product_schedule import BlockedSchedule, FactorFacts, ProductFacts
from hybridflow.compiler.ir.extents import Dim
from hybridflow.compiler.loops.schedule_choice import USUAL, Choices, Chooser
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.lowering import PrefixScan, ScatterAdd, Sort
from hybridflow.compiler.ops.packed_panels import panel_width
from hybridflow.compiler.target import NAMED, Target
from hybridflow.eager import measured_schedules
from tests.support.bits import same_bits
from tests.support.paths import DATA
from tests.support.teams import threads

FILE = DATA / "golden" / "schedules.txt"
CPUS = {name: target for name, target in NAMED.items() if target.kind == "cpu"}
SIZES = ((1, 4096, 4096), (3, 5, 7), (64, 64, 64), (512, 512, 512), (2000, 300, 40), (40, 300, 2000), (8, 3000, 8))


def factor(dtype: str, free: int, depth: int, across: bool = False) -> FactorFacts:
    """A matrix in memory whose elements lie side by side along the depth, or ``across`` it."""
    steps, along = ((1, free), (free, 1)) if across else ((depth, 1), (1, depth))
    return FactorFacts(np.dtype(dtype), (1, 1), along, 0, steps, (free, depth))


def product(
    target: Target, m: int, k: int, n: int, dtype: str = "float32", lies: str = "nn", **how: bool
) -> ProductFacts:
    """``lies``: of each factor whether it is transposed."""
    form = packed_format_of(target, np.dtype(dtype), np.dtype(dtype))
    left, right = factor(dtype, m, k, lies[0] == "t"), factor(dtype, n, k, lies[1] == "n")
    return ProductFacts((), m, n, k, form, left, right, **{"is_plain": True, **how})


def products(target: Target) -> list[ProductFacts]:
    """Of several sizes, and of ways to lie and dtypes that make a difference."""
    result = [product(target, *size, lies=lies) for size in SIZES for lies in ("nn", "nt", "tn")]
    result += [product(target, 200, 300, 120, dtype) for dtype in ("float64", "int8", "int32")]
    result.append(product(target, 512, 512, 512, "int8"))
    result.append(product(target, 3, 512, 512, "int8"))
    width = panel_width(target)
    panels = FactorFacts(np.dtype(np.int8), (2, 2), (1, 2), 0, (2, 1), (width, 2), panels=width)
    result += [replace(product(target, m, 512, 512, "int8"), right=panels) for m in (1, 9)]
    result.append(product(target, 1, 300, 200, by_lanes=True))
    result.append(product(target, 300, 200, 300, lies="nt", symmetric=True))
    return result


def windows(images: int | Dim, size: int, step: int, groups: int, channels: int, columns: int) -> WindowGeometry:
    places = (32 - size) // step + 1
    return WindowGeometry(
        *(images, (1, 32, 32), (1, places, places), (1, size, size), (1, step, step), (0, 0, 0), (0, 0, 0), (1, 1, 1)),
        *(groups, channels, columns),
    )


WINDOWS = (
    windows(4, 3, 1, 1, 16, 32),
    windows(2, 7, 2, 1, 3, 64),
    windows(2, 3, 1, 24, 1, 1),
    windows(Dim("n"), 1, 1, 1, 64, 10),
)


def lines() -> list[str]:
    result = []
    for name, target in CPUS.items():
        found = [(facts, list(product_schedule.candidates(facts, target))) for facts in products(target)]
        f32 = np.dtype(np.float32)
        found += [(f, list(convolution.tilings(f, target))) for f in (WindowFacts(w, f32, True) for w in WINDOWS)]
        of_filter = [FilterGradientFacts(w, f32, True) for w in WINDOWS]
        found += [(f, list(convolution_filter_gradient.tilings(f, target))) for f in of_filter]
        for facts, schedules in found:
            result.append(f"{name}: {facts}\n    {schedules[0]}\n    and {len(schedules) - 1} more")
    for name, target in NAMED.items():
        result += [f"{name}: {what}\n    {schedule}" for what, schedule in orderings(target)]
    return result


def orderings(target: Target) -> Iterator[tuple[str, object]]:
    """Schedules of scans, sorts and scatters, of several shapes."""
    f32, on_gpu = np.dtype(np.float32), target.kind == "cuda"
    init = TABLE["cumulative_sum"].init
    assert init is not None
    for shape, axis in (((100, 1000), 1), ((1000, 100), 0), ((1 << 20,), 0), ((4, Dim("n")), 1), ((3, 5), 1)):
        found = scan_schedule(target, init(f32), f32, shape, PrefixScan(axis), on_gpu)
        yield f"scan of {shape} along {axis}", found
        for sort in (Sort(axis, False), Sort(axis, False, values=True), Sort(axis, True, count=5)):
            yield f"{sort} of {shape}", sort_schedule(target, sort, f32, shape, on_gpu)
        for adding in (ScatterAdd(axis, False, None), ScatterAdd(axis, True, None)):
            yield f"{adding} into {shape}", scatter_schedule(target, adding, f32, shape)
    for cells, updates in ((256, 1000), (256, 1025), (1 << 20, 1 << 24), (0, 5), (256, Dim("n"))):
        found = counts_in_tables(target, ScatterAdd(0, False, None), np.dtype(np.int64), (cells,), updates)
        yield f"{updates} counted into {cells}", "tables" if found else "no tables"


def test_schedules_are_pinned(request: pytest.FixtureRequest) -> None:
    found = "\n".join(lines()) + "\n"
    if request.config.getoption("--update-golden"):
        FILE.write_text(found)
    assert found == FILE.read_text(), "run with --update-golden and read the diff"


@pytest.mark.parametrize("target", CPUS.values(), ids=list(CPUS))
def test_candidates_are_legal_and_in_order(target: Target) -> None:
    for facts in products(target):
        ways = list(product_schedule.candidates(facts, target))
        whole = [w for w in ways if not isinstance(w, product_schedule.SplitSchedule)]
        assert all(product_schedule.legal(w, facts, target) for w in whole), facts
        assert len(set(map(str, ways))) == len(ways) <= 32, facts
        costs = [product_schedule.cost(w, facts, target) for w in whole]
        assert costs[0] == min(costs), facts


def test_tiles_fit_into_registers() -> None:
    for target in CPUS.values():
        for facts in products(target):
            for way in product_schedule.candidates(facts, target):
                if isinstance(way, BlockedSchedule):
                    tile = way.blocks.tile
                    assert tile.rows * tile.vectors < target.registers, (facts, way)
                    assert way.blocks.height % tile.rows == 0 and way.blocks.columns % tile.columns == 0


# ---- choosing


def test_the_first_is_chosen_and_no_other_is_made() -> None:
    def schedules():
        yield "first"
        raise AssertionError("asked for another")

    chooser = Chooser(USUAL)
    assert chooser("facts", schedules()) == "first" and chooser.count == 1 and chooser.facts == ""


@pytest.mark.parametrize(
    ("choices", "expected"),
    [
        (Choices(0), "a"),
        (Choices(2), "c"),
        (Choices(4), "b"),
        (Choices(None, {"facts": "b"}), "b"),
        (Choices(None, {"facts": "no longer there"}), "a"),
        (Choices(None, {"others": "b"}), "a"),
    ],
)
def test_choices(choices: Choices, expected: str) -> None:
    chooser = Chooser(choices)
    assert chooser("facts", iter(["a", "b", "b", "c"])) == expected
    assert chooser.facts == "facts" and chooser.count == 3


# ---- the same bits


def values(*shape: int) -> hf.Tensor:
    numbers = np.random.default_rng(len(shape)).normal(size=shape)
    numbers.flat[:: max(numbers.size // 3, 1)] = -0.0
    return hf.asarray((numbers * np.exp(5 * numbers)).astype(np.float32))


CASES = {
    "tiles": (lambda x, y: x @ y, (37, 70, 0), (70, 45, 0)),
    "deep": (lambda x, y: x @ y, (3, 1100, 0), (1100, 5, 0)),
    "row": (lambda x, y: x @ y.T, (1, 90, 0), (70, 90, 0)),
    "vector": (lambda x, y: y @ x[0], (2, 90, 0), (70, 90, 0)),
    "epilogue": (lambda x, y: hf.nn.relu(x @ y + 1), (20, 33, 0), (33, 50, 0)),
    "convolution": (hf.nn.conv2d, (2, 9, 11, 5), (3, 3, 5, 17)),
    "groups": (hf.nn.depthwise_conv2d, (2, 9, 11, 5), (3, 3, 5, 1)),
    "columns": (lambda x, y: hf.sum(x * y, axis=0), (500, 70, 0), (500, 70, 0)),
    "few columns": (lambda x: hf.max(x, axis=(0, 1), keepdims=True), (17, 17, 9)),
    "few columns of sums": (lambda x: hf.sum(x * x, axis=0), (300, 12)),
    "map": (lambda x, y: hf.exp(x).T + y, (40, 50, 0), (50, 40, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_all_schedules_have_the_same_bits(name: str) -> None:
    function, *shapes = CASES[name]
    arguments = [values(*(n for n in shape if n)) for shape in shapes]
    expected = hf.function(function)(*arguments)
    count, number = 1, 0
    while number < count:
        with measured_schedules.forced(number):
            compiled = hf.function(function)
            for team in (1, 2):
                with threads(team):
                    assert same_bits(np.asarray(compiled(*arguments)), np.asarray(expected)), (number, team)
        count = max(count, *(k.candidates for k in compiled.concrete_functions()[0].executable.program.kernels))
        number += 1
    assert count > 1
