"""The emitter: what each method computes, on every target this machine runs, and that every target accepts it."""

import itertools

import ml_dtypes  # noqa: F401  (NumPy learns bfloat16)
import numpy as np
import pytest

from hybridflow.compiler import target as targets
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.codegen.core.llvm_values import Val, literal_text
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.program import Check
from hybridflow.errors import CompileError
from tests.support.bits import same_bits
from tests.support.jit_helper import Compiled, assembly, compile_loop, host_target, loop_text, runnable_targets

# Signalling NaNs and overflow are among the arguments on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

RUNNABLE = runnable_targets()
F32, F64 = dt.float32, dt.float64
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    -2.5,
    np.inf,
    -np.inf,
    np.nan,
    1e-40,
    3.4e38,
    -127.5,
    255.9,
    2.0**31,
    2.0**63,
]


def values(dtype: np.dtype, n: int = 512) -> np.ndarray:
    """Random bits, and the edges."""
    rng = np.random.default_rng(7)
    if dtype == dt.bool_:
        return rng.integers(0, 2, n).astype(bool)
    raw = rng.integers(0, 256, n * dtype.itemsize, dtype=np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        if dt.is_float(dtype):
            moderate = (rng.standard_normal(n) * 100).astype(dtype)
            return np.concatenate([raw, moderate, np.array(SPECIAL).astype(dtype)])
    info = np.iinfo(dtype)
    return np.concatenate([raw, np.array([0, 1, info.min, info.max, info.max - 1], dtype)])


def converted(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The conversion's meaning, in NumPy."""
    with np.errstate(all="ignore"):
        if dt.is_integer(dtype) and dt.is_float(x.dtype):
            info = np.iinfo(dtype)
            exact = [
                0 if v != v else info.max if v > info.max else info.min if v < info.min else int(v)
                for v in x.astype(np.float64).tolist()
            ]
            return np.array([min(max(v, info.min), info.max) for v in exact], dtype)
        if dtype == dt.bfloat16:
            return x.astype(np.float32).astype(dtype)
        return x.astype(dtype)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("source", dt.REAL, ids=dt.SHORT.get)
def test_convert_every_pair(source, target):
    x = values(source)
    e_width = {"sse2": 4, "avx2": 8, "avx512": 16}.get(target, 4)
    for goal, width in itertools.product(dt.REAL, (1, e_width)):
        run = compile_loop(lambda e, v, goal=goal: e.convert(v, goal), [source], width, RUNNABLE[target])
        assert same_bits(run(x), converted(x, goal)), f"{source} -> {goal}, width {width}"


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("narrow", [dt.float16, dt.bfloat16], ids=dt.SHORT.get)
def test_narrow_floats_widen_exactly(narrow, target):
    every = np.arange(1 << 16, dtype=np.uint16).view(narrow)
    run = compile_loop(lambda e, v: e.convert(v, F32), [narrow], 16, RUNNABLE[target])
    assert same_bits(run(every), every.astype(np.float32))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("narrow", [dt.float16, dt.bfloat16], ids=dt.SHORT.get)
def test_narrowing_rounds_to_nearest_even(narrow, target):
    """At, just below and just above each midpoint between neighbours, and each number itself."""
    every = np.arange(1 << 15, dtype=np.uint16).view(narrow).astype(np.float64)
    with np.errstate(invalid="ignore"):
        middle = (every[:-1] + every[1:]) / 2
    exact = np.concatenate([every, middle])
    exact = np.concatenate([exact, -exact]).astype(np.float32)
    bits = exact.view(np.uint32)
    x = np.concatenate([bits, bits + np.uint32(1), bits - np.uint32(1)]).view(np.float32)
    run = compile_loop(lambda e, v: e.convert(v, narrow), [F32], 16, RUNNABLE[target])
    with np.errstate(all="ignore"):
        assert same_bits(run(x), x.astype(narrow))
    quiet = run(np.array([0x7F800001, 0xFFBFFFFF], np.uint32).view(np.float32))
    assert np.isnan(quiet.astype(np.float32)).all()


def test_float64_to_float16_rounds_once():
    tie = 1 + 2.0**-11
    x = np.array([tie, tie + 2.0**-50, tie - 2.0**-50, -tie - 2.0**-50, 65519.999, 65520.0, 2.0**-25, 1e-300, -1e300])
    run = compile_loop(lambda e, v: e.convert(v, dt.float16), [F64], 4)
    with np.errstate(over="ignore"):
        assert same_bits(run(x), x.astype(np.float16))


ARITHMETIC = {
    "add": (lambda e, a, b: e.add(a, b), np.add),
    "sub": (lambda e, a, b: e.sub(a, b), np.subtract),
    "mul": (lambda e, a, b: e.mul(a, b), np.multiply),
    "div": (lambda e, a, b: e.div(a, b), np.divide),
    "copysign": (lambda e, a, b: e.copysign(a, b), np.copysign),
    "minimum": (lambda e, a, b: e.minimum(a, b), lambda a, b: extremum(a, b, np.minimum, True)),
    "maximum": (lambda e, a, b: e.maximum(a, b), lambda a, b: extremum(a, b, np.maximum, False)),
}


def extremum(a, b, choose, sign):
    """NumPy's minimum or maximum, with -0.0 below 0.0 besides."""
    zeros = (a == 0) & (b == 0)
    negative = (np.signbit(a) | np.signbit(b)) if sign else (np.signbit(a) & np.signbit(b))
    return np.where(zeros, np.where(negative, -0.0, 0.0), choose(a, b)).astype(a.dtype)


def pairs(dtype):
    with np.errstate(over="ignore"):
        edge = np.array(SPECIAL).astype(dtype)
    a, b = (v.ravel() for v in np.meshgrid(edge, edge))
    rest = values(dtype)
    return np.concatenate([a, rest]), np.concatenate([b, rest[::-1]])


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_float_arithmetic(name, target):
    build, reference = ARITHMETIC[name]
    for dtype, width in itertools.product((F32, F64), (1, 4, 16)):
        a, b = pairs(dtype)
        with np.errstate(all="ignore"):
            assert same_bits(compile_loop(build, [dtype] * 2, width, RUNNABLE[target])(a, b), reference(a, b)), (
                dtype,
                width,
            )


UNARY = {
    "neg": (lambda e, a: e.neg(a), np.negative),
    "abs": (lambda e, a: e.abs(a), np.abs),
    "sqrt": (lambda e, a: e.sqrt(a), np.sqrt),
    "floor": (lambda e, a: e.floor(a), np.floor),
    "ceil": (lambda e, a: e.ceil(a), np.ceil),
    "trunc": (lambda e, a: e.trunc(a), np.trunc),
    "rint": (lambda e, a: e.rint(a), np.rint),
    "is_nan": (lambda e, a: e.is_nan(a), np.isnan),
}


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_float_unary(name, target):
    build, reference = UNARY[name]
    for dtype, width in itertools.product((F32, F64), (1, 8)):
        x = values(dtype)
        with np.errstate(all="ignore"):
            assert same_bits(compile_loop(build, [dtype], width, RUNNABLE[target])(x), reference(x)), (dtype, width)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_fma_rounds_once(target):
    a = np.array([1 + 2.0**-12, 1 + 2.0**-27, 3.0, np.inf], np.float64)
    run = compile_loop(lambda e, x, y: e.fma(x, x, y), [F32, F32], 4, RUNNABLE[target])
    x, y = a.astype(np.float32), np.array([-1, -1, np.nan, -np.inf], np.float32)
    expected = (x.astype(np.float64) ** 2 + y).astype(np.float32)
    assert same_bits(run(x, y), expected)


COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name):
    for dtype, width in itertools.product((dt.int8, dt.uint8, dt.int64, dt.uint64, F32, F64), (1, 8)):
        a = values(dtype)
        b = np.where(np.arange(a.size) % 3 == 0, a, a[::-1]).astype(dtype)
        run = compile_loop(lambda e, x, y: getattr(e, name)(x, y), [dtype] * 2, width)
        assert same_bits(run(a, b), COMPARISONS[name](a, b)), (dtype, width)


@pytest.mark.parametrize("dtype", dt.INTEGERS, ids=dt.SHORT.get)
def test_integers(dtype):
    a = values(dtype)
    b = np.roll(a, 17)
    b[b == 0] = 1
    info = np.iinfo(dtype)
    a[:2], b[:2] = info.min, dtype.type(-1) if info.min else 1  # the quotient that does not fit
    shift = (np.arange(a.size) % info.bits).astype(dtype)
    wide_a, wide_b = a.astype(object), b.astype(object)

    def wrapped(v):
        return np.array([(int(i) - info.min) % (1 << info.bits) + info.min for i in v], dtype)

    quotient = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(wide_a, wide_b)]
    cases = [
        (lambda e, x, y: e.add(x, y), wrapped(wide_a + wide_b), b),
        (lambda e, x, y: e.sub(x, y), wrapped(wide_a - wide_b), b),
        (lambda e, x, y: e.mul(x, y), wrapped(wide_a * wide_b), b),
        (lambda e, x, y: e.idiv(x, y), wrapped(quotient), b),
        (lambda e, x, y: e.irem(x, y), wrapped(wide_a - np.array(quotient, object) * wide_b), b),
        (lambda e, x, y: e.minimum(x, y), np.minimum(a, b), b),
        (lambda e, x, y: e.maximum(x, y), np.maximum(a, b), b),
        (lambda e, x, y: e.xor(e.or_(x, y), e.not_(e.and_(x, y))), (a | b) ^ ~(a & b), b),
        (lambda e, x, y: e.shl(x, y), a << shift, shift),
        (lambda e, x, y: e.ashr(x, y) if dt.is_signed(dtype) else e.lshr(x, y), a >> shift, shift),
        (lambda e, x, y: e.neg(e.abs(x)), wrapped([-abs(v) for v in wide_a]), b),
    ]
    for k, (build, expected, other) in enumerate(cases):
        for width in (1, 8):
            assert same_bits(compile_loop(build, [dtype] * 2, width)(a, other), expected), (k, width)


def test_division_ignores_lanes_beyond_the_tail():
    def build(e, x, y):
        e.mask = e.lt(e.iota(dt.int32), 3) if e.width > 1 else None
        return e.select(e.mask, e.idiv(x, y), -1)

    run = compile_loop(build, [dt.int32] * 2, 8)
    assert run(np.arange(7, 15, dtype=np.int32), np.array([2, 3, 4, 0, 0, 0, 0, 0], np.int32)).tolist() == [
        *(3, 2, 2),
        *[-1] * 5,
    ]


def test_select_takes_numbers_and_scalar_conditions():
    run = compile_loop(lambda e, c, x: e.select(c, x, -3), [dt.bool_, dt.int16], 8)
    assert run(np.array([True, False]), np.array([7, 8], np.int16)).tolist() == [7, -3]
    run = compile_loop(lambda e, x: e.select(Val("true", dt.bool_, 1), x, e.neg(x)), [F32], 8)
    assert run(np.array([2.0], np.float32)).tolist() == [2.0]


def test_lanes():
    x = np.arange(8, dtype=np.float32)
    for build, expected in [
        (lambda e, v: e.reverse(v), x[::-1]),
        (lambda e, v: e.splat(e.extract(v, 5)), np.full(8, 5)),
        (lambda e, v: e.insert(v, e.const(9.5, F32, 1), 2), [0, 1, 9.5, 3, 4, 5, 6, 7]),
        (lambda e, v: e.shuffle(v, None, [1, 0, 3, 2, 5, 4, 7, 6]), [1, 0, 3, 2, 5, 4, 7, 6]),
        (lambda e, v: e.add(v, e.iota(F32)), 2 * x),
        (lambda e, v: e.select(Val(e.any(e.gt(v, 6.5)), dt.bool_, 1), v, e.zero(F32)), x),
        (lambda e, v: e.select(Val(e.any(e.gt(v, 7.5)), dt.bool_, 1), v, e.zero(F32)), np.zeros(8)),
    ]:
        assert run_lanes(build, x).tolist() == list(expected)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", [dt.bool_, dt.int8, dt.float16, dt.bfloat16, F32, F64], ids=dt.SHORT.get)
def test_settled_values_are_the_same_bits(dtype, target):
    """NaNs with payloads, subnormals, negative zeros: nothing is calculated on the way."""
    x = values(dtype)
    for width in (2, 8):
        run = compile_loop(lambda e, v: e.opaque([v])[0], [dtype], width, RUNNABLE[target])
        assert run(x).tobytes() == x.tobytes(), width


@pytest.mark.parametrize("name", ["sse2", "avx2", "avx512", "aarch64"])
@pytest.mark.parametrize("dtype", [dt.uint8, dt.int16, F32, F64], ids=dt.SHORT.get)
def test_settled_values_take_no_instruction_but_are_not_looked_behind(name, dtype):
    target = targets.NAMED[name]
    width = target.lanes(8 * dtype.itemsize)

    def swapped(e, v, settled):
        found = e.reverse(v)
        return e.reverse(e.opaque([found])[0] if settled else found)

    def instructions(build):
        text = assembly(loop_text(build, [dtype], target, width)[0], target)
        return [line for line in text.splitlines() if line[:1] == "\t" and line[1:2] not in ".#/"]

    plain = instructions(lambda e, v: v)
    assert len(instructions(lambda e, v: e.opaque([v])[0])) == len(plain)
    assert len(instructions(lambda e, v: swapped(e, v, False))) == len(plain)  # two shuffles that are none
    assert len(instructions(lambda e, v: swapped(e, v, True))) > len(plain)


def run_lanes(build, x):
    return compile_loop(build, [F32], x.size)(x)


def memory_kernel(body, width, target=None):
    """``kernel(n, out, a, index)`` around ``body(e)``, run on arrays."""
    target = target or host_target()
    e = Emitter(target, width)
    body(e)
    e.line("ret void")
    module = LLVMModule(target)
    module.function(e, "kernel", "i64 %n, ptr %out, ptr %a, ptr %index")
    return module.render()


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
@pytest.mark.parametrize("dtype", [dt.bool_, dt.int8, dt.float16, dt.bfloat16, F32, F64], ids=dt.SHORT.get)
@pytest.mark.parametrize("width", [1, 8])
def test_masked_and_indexed_memory(dtype, width, target):
    """A masked load, a gather and a scatter with the tail's mask; what the mask switches off stays as it was."""
    active = 5 if width > 1 else 1

    def body(e):
        mask = e.lt(e.iota(), e.splat(Val("%n", dt.int64, 1)))
        x = e.load("%a", dtype, mask)
        back = e.gather("%a", dtype, e.sub(width - 1, e.iota()), mask)
        e.store(x, "%out", mask)
        e.scatter(back, e.gep("%out", dtype, width), e.load("%index", dt.int64), mask)

    text = memory_kernel(body, width, RUNNABLE[target])
    a = np.arange(1, width + 1).astype(dtype)
    index = np.roll(np.arange(width), 1)
    compiled = Compiled(text, RUNNABLE[target], dtype, 2 * width)
    out = np.zeros(2 * width, dtype)
    compiled.call(active, out, a, index)
    expected = np.zeros(2 * width, dtype)
    expected[:active] = a[:active]
    expected[width + index[:active]] = a[::-1][:active]
    assert same_bits(out, expected)


@pytest.mark.parametrize("width", [1, 8])
def test_raise_if_keeps_the_first_check(width):
    checks = []

    def body(e):
        e.status, e.on_check = "%out", lambda check: checks.append(check) or len(checks)
        x = e.load("%a", F32)
        e.mask = e.lt(e.iota(), e.splat(Val("%n", dt.int64, 1)))
        for limit in (10.0, 2.0, 1.0):
            e.raise_if(e.gt(x, limit), Check("DivisionError", "test", f"above {limit}", None))

    compiled = Compiled(memory_kernel(body, width), host_target(), F32, width)

    def status(n, a):
        out, a = np.zeros(1, np.int32), np.full(width, a, np.float32)
        compiled.call(n, out, a, a)
        return -int(out[0])

    assert [status(1, a) for a in (0.5, 1.5, 5.0, 50.0)] == [0, 3, 2, 1]
    assert status(0, 50.0) == 0


def test_raise_if_without_a_place_to_report_says_so():
    e = Emitter(host_target(), 4)
    with pytest.raises(CompileError, match="no place to report"):
        e.raise_if(e.const(True, dt.bool_), Check("DivisionError", "test", "m", None))


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_scale2_rounds_once(target):
    for dtype, lowest in ((F32, -149), (F64, -1074)):
        k = np.repeat(np.arange(lowest - 3, -lowest - 20), 3).astype(dtype)
        m = np.tile(np.array([1.2345678, 0.75, 1.9999999], dtype), k.size // 3)
        results = [
            compile_loop(lambda e, x, y: e.scale2(x, y), [dtype] * 2, w, RUNNABLE[target])(m, k) for w in (1, 4, 8)
        ]
        with np.errstate(over="ignore", under="ignore"):
            expected = np.ldexp(m, k.astype(np.int32))
        assert all(same_bits(r, expected) for r in results)


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_scale2_leaves_nothing_in_lanes_that_are_not_kept(target):
    """Whatever the operands are there; and NaN is not less than anything."""
    x = np.array([3.0, -3.0, np.nan, -np.inf, np.inf, 2.0, -1e30, -2.5] * 4)
    for dtype in (F32, F64):
        k = x.astype(dtype)
        m = np.where(k < 0, np.resize([np.nan, -np.inf, 1e30], k.size), 1.5).astype(dtype)
        kept = np.nan_to_num(k, posinf=5, nan=7, neginf=-5)
        expected = np.where(kept < 0, 0, np.ldexp(1.5, np.abs(kept).clip(0, 9).astype(int))).astype(dtype)
        for width in (1, 2, 4, 8, 16, 32):

            def build(e, m, k):
                exponent = e.select(e.is_nan(k), 7.0, e.select(e.eq(k, np.inf), 5.0, k))
                return e.scale2(m, exponent, e.not_lt(k, 0.0))

            assert same_bits(compile_loop(build, [dtype] * 2, width, RUNNABLE[target])(m, k), expected), (dtype, width)


def test_rarely_chooses_lane_by_lane():
    def build(e, x):
        return e.rarely(e.gt(x, 5.0), [x], "negated", lambda e, x: [e.neg(x)], x)[0]

    x = np.array([1, 2, 9, 3, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2], np.float32)
    for width in (1, 4, 16):
        assert compile_loop(build, [F32], width)(x).tolist() == np.where(x > 5, -x, x).tolist()


@pytest.mark.parametrize("target", RUNNABLE, ids=str)
def test_mostly_asks_all_lanes(target):
    """Lanes that do not hold are never given to the quick code alone, be they one of many, or NaN."""

    def build(e, x):
        def holds(e, x):
            return e.le(e.abs(x), 5.0)

        def general(e, x):
            return e.select(e.le(e.abs(x), 5.0), e.add(x, x), e.const(-1.0, F32, x.width))

        return e.mostly(holds, lambda e, x: e.add(x, x), "doubled", general, x)

    x = np.ones(256, np.float32)
    x[[37, 38, 90, 255]] = 9, -np.inf, np.nan, 5.5
    with np.errstate(invalid="ignore"):
        expected = np.where(np.abs(x) <= 5, 2 * x, -1)
    for width in (1, 2, 4, 8, 16, 32):
        assert compile_loop(build, [F32], width, RUNNABLE[target])(x).tolist() == expected.tolist()


def test_table_is_read_by_gather():
    def build(e, i):
        return e.gather(e.table(np.arange(10, dtype=np.float64) / 8, "eighths"), F64, i)

    for width in (1, 8):
        assert compile_loop(build, [dt.int64], width)(np.array([9, 0, 4])).tolist() == [1.125, 0.0, 0.5]


def test_literals_are_exact():
    assert literal_text(0.1, F32) == "0x3FB99999A0000000"
    assert literal_text(-0.0, F64) == "0x8000000000000000"
    assert literal_text(1.5, dt.float16) == "0xH3E00"
    assert literal_text(-2, dt.bfloat16) == "49152"
    assert literal_text(True, dt.bool_) == "true"
    assert literal_text(1e300, F32) == "0x7FF0000000000000"


def everything(e: Emitter, x: Val) -> Val:
    """One expression that uses most of the emitter."""
    total = x
    for goal in dt.REAL:
        total = e.add(total, e.convert(e.convert(x, goal), F32))
    total = e.minimum(total, e.maximum(x, e.sqrt(e.abs(e.floor(x)))))
    total = e.fma(total, e.rint(x), e.ceil(e.trunc(x)))
    i = e.convert(x, dt.int32)
    total = e.add(total, e.convert(e.idiv(i, e.or_(e.abs(i), 1)), F32))
    total = e.scale2(total, e.rint(x))
    index = e.convert(e.and_(i, 7), dt.int64)
    total = e.add(total, e.gather(e.table(np.arange(8, dtype=np.float32), "eight"), F32, index))
    return e.rarely(e.gt(total, 3.0), [total], "signed", lambda e, total, x: [e.copysign(total, x)], total, x)[0]


@pytest.mark.parametrize("name", targets.NAMED)
def test_every_target_accepts_it(name):
    target = targets.NAMED[name]
    widths = (1,) if target.kind == "cuda" else (1, target.lanes(32))
    for width in widths:
        text, _ = loop_text(everything, [F32], target, width)
        assert "kernel" in assembly(text, target)


def test_fastmath_marks_float_operations_but_not_in_strict_code():
    text, _ = loop_text(lambda e, x: e.add(x, 1.0), [F32], host_target(), 4, fastmath=True)
    assert "fadd reassoc" in text

    def strict(e, x):
        with e.strict():
            return e.add(x, 1.0)

    text, _ = loop_text(strict, [F32], host_target(), 4, fastmath=True)
    assert "reassoc" not in text
    assert "reassoc" not in loop_text(lambda e, x: e.add(x, 1.0), [F32], host_target(), 4)[0]


def test_products_and_sums_are_not_contracted():
    """The NVPTX back end and x86 would both gladly make one fma of them."""
    for target in (targets.AVX512, targets.CUDA_SM90):
        text, _ = loop_text(lambda e, x, y: e.add(e.mul(x, y), y), [F32, F32], target, 1)
        assert "fma" not in assembly(text, target)


@pytest.mark.parametrize("dtype", [F32, dt.float64, dt.int32, dt.int64], ids=str)
def test_lanes_that_keep_their_values_are_stored_with_the_others(dtype):
    """LLVM would gladly leave them out by a mask."""

    def larger(e, x):
        old = e.load(e.gep("%out", dtype, Val("%i", dt.int64, 1)), dtype)
        return e.select(e.gt(x, old), x, old)

    assert "maskmov" not in assembly(loop_text(larger, [dtype], targets.AVX2, 8)[0], targets.AVX2)
