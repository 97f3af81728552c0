"""Every op of the table, compiled: against its reference, and eager against graph bit for bit.

Eager runs an op as a program with symbolic extents on arrays in a normal form; a graph has static shapes and a loop
nest per shape.  The two share the emitter and nothing else of the schedule, so equal bits say that the order of every
reduction and product depends on the shape alone.
"""

import zlib

import numpy as np
import pytest

from hybridflow.compiler import target
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.results import TupleType, parts_of
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.eager import single_op_programs
from hybridflow.errors import HybridflowError
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import host_target, machine_code

# Near their zeros errors are relative to what cancels there, which is about 1 on the samples.
WITH_ZEROS = {"log_gamma", "digamma", "bessel_j0", "bessel_j1", "gammainc_da", "betainc_da"}
# Sums of many terms and exponentials of large logarithms; tests/special has their bounds.
ITERATED = {"gammainc": 20, "gammaincc": 20, "gammainc_da": 100, "betainc": 20, "betainc_da": 100}
ABSOLUTE = {"random_von_mises": 3e-8}  # angles whose cosines are near 1 have half of the digits
TOLERANCE = {dt.float16: 2e-3, dt.bfloat16: 2e-2, dt.float32: 3e-6, dt.float64: 1e-14}

CASES = [(name, dtype) for name, op in TABLE.items() for dtype in op.dtypes]
IDS = [f"{name}-{dt.SHORT[dtype]}" for name, dtype in CASES]
MARKED = [pytest.param(*case, marks=pytest.mark.usual_level if case[1] == dt.float32 else ()) for case in CASES]


def samples(name, dtype):
    rng = np.random.default_rng(zlib.crc32(f"{name}{dtype}".encode()))
    return TABLE[name].samples(rng, dtype)


def graph_of(op, arrays, attrs):
    b = GraphBuilder(TABLE, op.name)
    parameters = [b.parameter(TensorType(a.shape, a.dtype)) for a in arrays]
    out = b.emit(op, *parameters, **attrs)
    return b.finish(b.results(out) if isinstance(out.type, TupleType) else [out])


def eager(op, arrays, attrs):
    types = tuple(TensorType(a.shape, a.dtype) for a in arrays)
    attrs = op.canon(types, dict(attrs)) if op.canon else attrs
    out = op.infer(*types, **attrs)
    made = [
        np.asarray(x, part.dtype)
        for x, part in zip(several(single_op_programs.run(op, arrays, attrs, out)), parts_of(out))
    ]
    return tuple(made) if isinstance(out, TupleType) else made[0]


def several(results):
    return results if isinstance(results, tuple) else (results,)


def bits(array):
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def same_bits(a, b):
    """Equal in type and bits; a NaN equals any NaN, whose payload IEEE leaves open."""
    assert a.dtype == b.dtype and a.shape == b.shape
    if dt.is_float(a.dtype):
        nans = np.isnan(a.astype(np.float64))
        np.testing.assert_array_equal(nans, np.isnan(b.astype(np.float64)))
        a, b = np.where(nans, np.zeros((), a.dtype), a), np.where(nans, np.zeros((), b.dtype), b)
    np.testing.assert_array_equal(bits(a), bits(b))


@pytest.mark.parametrize(("name", "dtype"), MARKED, ids=IDS)
def test_compiled_op(name, dtype):
    op = TABLE[name]
    for arrays, attrs in samples(name, dtype):
        arrays = tuple(np.asarray(a) for a in arrays)
        graph = graph_of(op, arrays, attrs)
        try:
            wanted = several(op.reference(*arrays, **graph.nodes[0].attrs))
        except HybridflowError as error:
            with pytest.raises(type(error)):
                cpu.load(compile_graph(graph, host_target.target())).run(list(arrays))
            with pytest.raises(type(error)):
                eager(op, arrays, attrs)
            continue
        made = cpu.load(compile_graph(graph, host_target.target())).run(list(arrays))
        for got, want, alone in zip(made, wanted, several(eager(op, arrays, attrs)), strict=True):
            close(op, got, np.asarray(want))
            same_bits(alone, got)


def close(op, got, want):
    """Near enough to the reference."""
    tolerance = TOLERANCE.get(want.dtype)
    if tolerance is None:
        np.testing.assert_array_equal(got, want)
    else:
        assert got.dtype == want.dtype and got.shape == want.shape
        reference = want.astype(np.float64)
        finite = np.abs(reference[np.isfinite(reference)])
        folds = op.kind.value in ("contract", "convolve", "scan", "reduce", "transform")
        near_zero = tolerance * (finite.max(initial=0) * folds + (op.name in WITH_ZEROS)) + ABSOLUTE.get(op.name, 0)
        tolerance *= ITERATED.get(op.name, 1)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(got.astype(np.float64), reference, rtol=tolerance, atol=near_zero)


@pytest.mark.parametrize("name", [name for name, op in TABLE.items() if op.dtypes])
@pytest.mark.parametrize("other", ["sse2", "avx2", "avx512", "aarch64"])
def test_op_compiles_for_every_cpu(name, other):
    op = TABLE[name]
    dtype = dt.float32 if dt.float32 in op.dtypes else op.dtypes[0]
    arrays, attrs = max(samples(name, dtype), key=lambda s: sum(a.size for a in s[0]))
    program = compile_graph(graph_of(op, arrays, attrs), target.NAMED[other])
    assert machine_code.compile_object(program.text, program.target)
