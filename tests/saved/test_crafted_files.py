"""Files of saved functions that somebody made by hand: what they hold stays inside of its arrays, or is refused."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.checkpoint import files
from hybridflow.compiler.index.bounds_proofs import check_in_bounds, with_conditions
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Dim, symbols, value_at
from hybridflow.compiler.ir.graph import Graph, Literal, Node, parameter
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.eager.dispatch import apply
from hybridflow.errors import HybridflowError, VerifyError
from tests.support.paths import ROOT

pytestmark = pytest.mark.code


def crafted(folder: Path, graph: str, arguments: list[Any], **said: Any) -> Path:
    """A file with right sums that holds a graph of somebody's choice."""
    path = folder / "f"
    f = hf.function(lambda x: x + 1)
    f(hf.zeros((8,)))
    hf.saved.save(f, path)
    texts = dict(files.File(path).texts)
    programs = json.loads(texts["programs"])
    programs["serving_default"] = programs["serving_default"][:1]
    programs["serving_default"][0].update(
        graph=graph,
        parameters=[[f"a{k}", "POSITIONAL_OR_KEYWORD"] for k in range(len(arguments))],
        arguments={"list": [{"spec": [shape, dtype, None]} for shape, dtype in arguments]},
        sources=[None] * len(arguments),
        **said,
    )
    files.write(path, {}, {**texts, "programs": json.dumps(programs)})
    return path


def graph(body: str, parameters: str = '%0: f32[8] "x"') -> str:
    return f"graph f({parameters}) {{\n{body}\n}}"


PANELS = """
  %1: (f32[8],) = panels(%0) {batch=(), block=4, rows=8, starts=(START,), steps=((4,),), sums=0, tail=(),
    body=graph body(%0: i64[] "row", %1: f32[4] "w") {
      %2: f32[4] = negative(%1)
      return %2
    }}
  %2: f32[8] = project(%1) {index=0}
  return %2"""
INNER = """graph b(%0: f32[8] "x") {
      %1: f32[3] = slice(%0) {start=(6,), step=(1,), stop=(9,)}
      return %1
    }"""

# By the op, or what it is about: the body of a graph of x, f32[8], or of a whole graph.
REFUSED = {
    "panels": graph(PANELS.replace("START", "0")),
    "panels far away": graph(PANELS.replace("START", "1000000000000")),
    "a fused product": graph("%1: f32[8] = multiply_add(%0, %0, %0)\nreturn %1"),
    "a maximum with its place": graph(
        "%1: (f32[], i64[]) = max_with_position(%0) {axes=(0,)}\n%2: f32[] = project(%1) {index=0}\nreturn %2"
    ),
    "gaps of a product": graph(
        "%1: f32[8,8] = matmul(%0, %0) {gaps=True, lanes=False, sum_dtype=f32, transpose_a=False, transpose_b=False}\n"
        "return %1",
        '%0: f32[8,8] "x"',
    ),
    "lanes of a product": graph(
        "%1: f32[8,8] = matmul(%0, %0) {lanes=True, sum_dtype=f32, transpose_a=False, transpose_b=False}\nreturn %1",
        '%0: f32[8,8] "x"',
    ),
    "a slice to behind the end": graph("%1: f32[3] = slice(%0) {start=(6,), step=(1,), stop=(9,)}\nreturn %1"),
    "a slice from before the start": graph("%1: f32[3] = slice(%0) {start=(-1,), step=(1,), stop=(2,)}\nreturn %1"),
    "a slice with a type of its own": graph("%1: f32[9] = slice(%0) {start=(0,), step=(1,), stop=(8,)}\nreturn %1"),
    "a slice backwards": graph("%1: f32[8] = slice(%0) {start=(0,), step=(-1,), stop=(8,)}\nreturn %1"),
    "an open slice": graph("%1: f32[10] = slice(%0) {start=(0,), step=(1,), stop=(10,)}\nreturn %1", '%0: f32[n] "x"'),
    "an open slice from the end": graph(
        "%1: f32[10] = slice(%0) {start=(n-10,), step=(1,), stop=(n,)}\nreturn %1", '%0: f32[n] "x"'
    ),
    "too weak a condition": graph(
        "assume n-9 >= 0\n%1: f32[10] = slice(%0) {start=(0,), step=(1,), stop=(10,)}\nreturn %1", '%0: f32[n] "x"'
    ),
    "a condition of another symbol": graph(
        "assume m-10 >= 0\n%1: f32[10] = slice(%0) {start=(0,), step=(1,), stop=(10,)}\nreturn %1",
        '%0: f32[n] "x", %9: f32[m] "y"',
    ),
    "a condition of nothing": graph("assume m-10 >= 0\nreturn %0"),
    "a negative extent": graph("%1: i64[n-3] = iota() {axis=0, dtype=i64, shape=(n-3,)}\nreturn %1", '%0: f32[n] "x"'),
    "more elements than can be counted": graph(
        "%1: i64[n,n,n,n,n,n,n] = iota() {axis=0, dtype=i64, shape=(n,n,n,n,n,n,n)}\n"
        "%2: i64[] = sum(%1) {axes=(0,1,2,3,4,5,6)}\nreturn %2",
        '%0: f32[n] "x"',
    ),
    "a negative padding": graph(
        "%1: f32[n-2] = pad(%0) {high=(n-10,), interior=(0,), low=(0,), value=0.0}\nreturn %1", '%0: f32[8] "x"'
    ),
    "an open negative padding": graph(
        "%1: f32[2*n-10] = pad(%0) {high=(n-10,), interior=(0,), low=(0,), value=0.0}\nreturn %1", '%0: f32[n] "x"'
    ),
    "padding between, negative": graph(
        "%1: f32[1] = pad(%0) {high=(0,), interior=(-1,), low=(0,), value=0.0}\nreturn %1"
    ),
    "windows larger than there are": graph(
        "%1: f32[1,9] = windows(%0) {axes=(0,), dilation=(1,), size=(9,), step=(1,)}\nreturn %1"
    ),
    "one window too many": graph(
        "%1: f32[7,3] = windows(%0) {axes=(0,), dilation=(1,), size=(3,), step=(1,)}\nreturn %1"
    ),
    "open windows": graph(
        "%1: f32[n-2,3] = windows(%0) {axes=(0,), dilation=(1,), size=(3,), step=(1,)}\nreturn %1", '%0: f32[n] "x"'
    ),
    "a reshape to more": graph("%1: f32[9] = reshape(%0) {shape=(9,)}\nreturn %1"),
    "an open reshape": graph("%1: f32[n] = reshape(%0) {shape=(n,)}\nreturn %1", '%0: f32[m] "x", %9: f32[n] "y"'),
    "a broadcast from elsewhere": graph("%1: f32[9,8] = broadcast(%0) {axes=(0,), shape=(9, 8)}\nreturn %1"),
    "an axis twice": graph("%1: f32[8,8] = transpose(%0) {perm=(0, 0)}\nreturn %1", '%0: f32[8,3] "x"'),
    "an axis that is not there": graph("%1: f32[8] = reverse(%0) {axes=(1,)}\nreturn %1"),
    "more first elements than there are": graph(
        "%1: i64[9] = first_positions(%0) {axis=0, count=9, descending=False}\nreturn %1"
    ),
    "open first elements": graph(
        "%1: i64[9] = first_positions(%0) {axis=0, count=9, descending=False}\nreturn %1", '%0: f32[n] "x"'
    ),
    "a sum of another axis": graph("%1: f32[] = sum(%0) {axes=(1,)}\nreturn %1"),
    "joined to more": graph("%1: f32[17] = concat(%0, %0) {axis=0}\nreturn %1"),
    "a result that is not there": graph(
        '%1: (f32[8],) = call(%0) {body=graph b(%0: f32[8] "x") {return %0}}\n%2: f32[8] = project(%1) {index=1}\n'
        "return %2"
    ),
    "a scan over more": graph(
        '%1: (f32[9],) = scan(%0) {body=graph b(%0: f32[] "x") {return %0}, carries=0, length=9, reverse=False, '
        "stacked=1}\n%2: f32[9] = project(%1) {index=0}\nreturn %2"
    ),
    "a body of another type": graph(
        '%1: (f32[9],) = call(%0) {body=graph b(%0: f32[9] "x") {return %0}}\n%2: f32[9] = project(%1) {index=0}\n'
        "return %2"
    ),
    "a branch of another type": graph(
        "%1: bool[] = constant() {value=bool[] True}\n"
        '%2: (f32[8],) = cond(%1, %0) {branches=(graph a(%0: f32[8] "x") {return %0}, graph b(%0: f32[8] "x") {\n'
        "  %1: f32[9] = concat(%0, %0) {axis=0}\n  return %1}, )}\n%3: f32[8] = project(%2) {index=0}\nreturn %3"
    ),
    "inside of a call": graph(
        f"%1: (f32[3],) = call(%0) {{body={INNER}}}\n%2: f32[3] = project(%1) {{index=0}}\nreturn %2"
    ),
    "inside of a loop": graph(
        "%1: (f32[8],) = while(%0) {\n"
        '  body=graph b(%0: f32[8] "x") {\n'
        "    %1: f32[8] = slice(%0) {start=(1,), step=(1,), stop=(9,)}\n    return %1},\n"
        '  cond=graph c(%0: f32[8] "x") {\n    %1: bool[] = constant() {value=bool[] False}\n    return %1}}\n'
        "%2: f32[8] = project(%1) {index=0}\nreturn %2"
    ),
    "inside of a derivative": graph(
        f"%1: (f32[8],) = custom(%0) {{derivative={INNER.replace('return %1', 'return')}, given=0, made=1}}\n"
        "%2: f32[8] = project(%1) {index=0}\nreturn %2"
    ),
    "where the extent is found when it runs": graph(
        "%1: i64[] = constant() {value=i64[] 3}\n"
        '%2: (f32[],) = sized(%1, %0) {body=graph b(%0: f32[8] "x") {\n'
        "  %1: f32[s] = slice(%0) {start=(0,), step=(1,), stop=(s,)}\n"
        "  %2: f32[] = sum(%1) {axes=(0,)}\n  return %2},\n"
        '  symbol="s"}\n%3: f32[] = project(%2) {index=0}\nreturn %3'
    ),
    "a graph within a tuple of tuples": graph(f"%1: f32[8] = reverse(%0) {{axes=(({INNER},),)}}\nreturn %1"),
    "an attribute that nobody knows": graph("%1: f32[8] = exp(%0) {in_bounds=True}\nreturn %1"),
    "an attribute that is missing": graph("%1: f32[8] = slice(%0) {start=(0,), stop=(8,)}\nreturn %1"),
    "a constant of fewer bytes": graph("%1: f32[8] = constant() {value=f32[8] 0x00}\nreturn %1"),
    "a truth value of 2": graph("%1: bool[1] = constant() {value=bool[1] 0x02}\nreturn %1"),
    "a function in Python": graph(
        "%1: (f32[8],) = ask(%0) {is_last=False, number=0, types=(f32[8],)}\n%2: f32[8] = project(%1) {index=0}\n"
        "return %2"
    ),
    "a callback": graph(
        "%1: token = token()\n%2: (token, f32[8]) = callback(%1, %0) {number=0, types=(f32[8],)}\n"
        "%3: f32[8] = project(%2) {index=1}\nreturn %3"
    ),
    "a callback within": graph(
        '%1: token = token()\n%2: (token,) = call(%1) {body=graph b(%0: token "t") {\n'
        "  %1: (token,) = callback(%0) {number=0, types=()}\n  %2: token = project(%1) {index=0}\n  return %2}}\n"
        "return %0"
    ),
    "a requirement": graph(
        '%1: bool[] = constant() {value=bool[] False}\n%2: () = require(%1) {message="", number=0}\nreturn %0'
    ),
    "an assigned argument": graph("%1: f32[8] = exp(%0)\nreturn %1\nupdate %0 = %1"),
    "state that nobody gives": graph("return %0", '%0: f32[8] "x" state'),
    "filters of too many places": graph(
        "%2: f32[3,1,1,1] = convolve_filter(%0, %1) {dilation=(1,), high=(0,), interior=(0,), low=(0,), size=(3,), "
        "step=(1,)}\nreturn %2",
        '%0: f32[1,n,1,1] "x", %1: f32[1,n,1,1] "g"',
    ),
    "windows of a convolution that do not fit": graph(
        "%2: f32[1,n-2,1,1] = convolve(%0, %1) {dilation=(1,), high=(0,), interior=(0,), low=(0,), step=(1,)}\n"
        "return %2",
        '%0: f32[1,n,1,1] "x", %1: f32[3,1,1,1] "f"',
    ),
    "a state of a generator of one word": graph(
        "%1: u32[8] = random_bits(%0) {first=0, shape=(8,)}\nreturn %1", '%0: u64[1] "x"'
    ),
}


def arguments_of(text: str) -> list[Any]:
    """The signature of the parameters that are written in a graph's first line."""
    found = re.findall(r'%\d+: (\w+)\[([^\]]*)\] "\w+"(?! state)', text.split("{", 1)[0])
    names = {"f32": "float32", "u64": "uint64", "i64": "int64"}
    return [([int(e) if e.isdigit() else None for e in shape.split(",") if e], names[short]) for short, shape in found]


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_front_end_makes_is_refused(tmp_path: Path, name: str) -> None:
    text = REFUSED[name]
    path = crafted(tmp_path, text, arguments_of(text))
    with pytest.raises(errors.CheckpointError):
        hf.saved.load(path)


def test_the_graphs_are_refused_for_their_own_fault() -> None:
    """Right twins of them are taken, so it is not the way in which they are written."""
    for name, mended in {
        "a slice to behind the end": ("stop=(9,)", "stop=(8,)", "f32[3]", "f32[2]"),
        "an open slice": ("{\n", "{\n  assume n-10 >= 0\n"),
        "an open slice from the end": ("{\n", "{\n  assume n-10 >= 0\n"),
        "too weak a condition": ("n-9", "n-10"),
        "a negative extent": ("{\n", "{\n  assume n-3 >= 0\n"),
        "an open negative padding": ("{\n", "{\n  assume n-10 >= 0\n"),
        "more elements than can be counted": ("{\n", "{\n  assume -n*n*n*n*n*n*n+1000000 >= 0\n"),
        "open first elements": ("{\n", "{\n  assume n-9 >= 0\n"),
        "inside of a call": ("start=(6,)", "start=(5,)", "stop=(9,)", "stop=(8,)"),
        "windows of a convolution that do not fit": ("{\n", "{\n  assume n-3 >= 0\n"),
        "one window too many": ("f32[7,3]", "f32[6,3]"),
        "a scan over more": ("9", "8"),
    }.items():
        text = REFUSED[name]
        for old, new in zip(mended[::2], mended[1::2]):
            assert old in text, name
            text = text.replace(old, new)
        check_in_bounds(parse(text, TABLE))


def test_ops_that_passes_alone_write_are_internal() -> None:
    """What no function of the front end writes, and no rule of an op does, is marked in the table."""
    reads = ROOT / "hybridflow" / "onnx" / "saving.py"  # graphs, also those that passes made
    sources = [
        p
        for p in ROOT.glob("hybridflow/**/*.py")
        if not {"compiler", "runtime"} & set(p.relative_to(ROOT).parts) and p != reads
    ]
    rules = [
        # What complex values are made of is a pass's: their rules are written for that.
        *(p for p in ROOT.glob("compiler/ops/*.py") if not p.name.startswith("complex_")),
        *(ROOT / "compiler" / f"{n}.py" for n in ("autodiff", "batching", "forward_mode")),
    ]
    front, derived = ("\n".join(path.read_text() for path in paths) for paths in (sources, rules))
    call = re.compile(r"\bb\.(\w+)\(")
    written = {*call.findall(front), *call.findall(derived), *re.findall(r"(?<=[\"'])\w+(?=[\"'])", front)}
    for name, op in TABLE.items():
        # No file may have replicas wait for each other.
        assert (op.internal is True) == (op.kind is Kind.COLLECTIVE or name not in written), name


# ---- every attribute of every op


def changes(value: Any) -> Iterator[Any]:
    """Values of the kind of an attribute's, near and far."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, -value - 1, value * 2 + 1, 0, 2**31, -(2**31), 2**62, -(2**62))
    elif isinstance(value, tuple):
        for k, part in enumerate(value):
            yield from ((*value[:k], new, *value[k + 1 :]) for new in changes(part))
        yield from ((), (*value, *value), value[:-1], value[::-1])
    elif isinstance(value, np.dtype):
        yield from (dt.float32, dt.int8, dt.uint64, dt.bool_)
    elif isinstance(value, Literal):
        yield Literal.of(np.zeros((3,), np.float32))
    elif isinstance(value, float):
        yield from (0.0, float("inf"))
    elif isinstance(value, str):
        yield value + "x"
    yield from (None, "text")


def types_near(type: TensorType) -> Iterator[TensorType]:
    yield type
    for k, extent in enumerate(type.shape):
        for new in (extent + 1, extent - 1):
            if isinstance(new, Dim) or new >= 0:
                yield type.with_shape((*type.shape[:k], new, *type.shape[k + 1 :]))


def is_taken(g: Graph) -> bool:
    """Whether a file may hold a graph."""
    try:
        text = to_text(g)
    except (AttributeError, KeyError, TypeError):  # of values that no text spells
        return False
    try:
        check_in_bounds(parse(text, TABLE))
    except HybridflowError:
        return False
    return True


def of_node(op: Any, inputs: tuple[Node, ...], attrs: Any, type: Any) -> Graph:
    node = Node(op, inputs, attrs, type)
    return Graph("g", inputs, (node,), (node,))


OPS = [op for op in TABLE.values() if op.internal is not True and op.name not in ("transfer", "random_bits")]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_attributes_near_right_ones(op: Any) -> None:
    """Whatever an attribute is: the graph is refused, or the op means something whose shape is the node's."""
    rng = np.random.default_rng(3)
    taken = 0
    for arrays, given in op.samples(rng, op.dtypes[0])[:12] if op.dtypes else ():
        types = tuple(TensorType(x.shape, x.dtype) for x in arrays)
        attrs = dict(given) if op.canon is None else op.canon(types, dict(given))
        inputs = tuple(parameter(t, f"x{k}") for k, t in enumerate(types))
        result = op.infer(*types, **attrs)
        if not isinstance(result, TensorType):
            continue
        assert is_taken(of_node(op, inputs, attrs, result)), attrs
        others = [{**attrs, name: new} for name, value in attrs.items() for new in changes(value)]
        for changed in others:
            for type in (result, *_inferred(op, types, changed)):
                if is_taken(of_node(op, inputs, changed, type)):
                    taken += 1
                    assert 0 in type.shape or type.shape == _meaning(op, arrays, changed, type), (changed, type)
        for type in types_near(result):
            assert type == result or not is_taken(of_node(op, inputs, attrs, type))


def _inferred(op: Any, types: Any, attrs: Any) -> Iterator[TensorType]:
    try:
        yield op.infer(*types, **attrs)
    except Exception:  # whatever a rule makes of nonsense
        return


def _meaning(op: Any, arrays: Any, attrs: Any, type: TensorType) -> tuple[int, ...]:
    """The shape of what NumPy makes of it; of what is too large to be made that of the node."""
    if np.prod([float(n) for n in type.shape]) > 1e7:
        return type.shape
    try:
        return np.asarray(op.reference(*arrays, **attrs)).shape
    except (errors.IndexRangeError, OverflowError):  # that is found when it runs
        return type.shape


# ---- open extents


VIEWS = ("slice", "pad", "windows", "reshape", "broadcast", "transpose", "reverse", "concat", "take", "first_positions")


@pytest.mark.parametrize("op", [TABLE[name] for name in VIEWS], ids=lambda op: op.name)
def test_open_extents_hold_for_all_that_conditions_allow(op: Any) -> None:
    """Extents are replaced by symbols, attributes by what is near: for each call that the conditions allow, the op has
    the node's shape."""
    rng = np.random.default_rng(5)
    tried = 0
    for arrays, given in op.samples(rng, dt.float32):
        if any(n < 2 for x in arrays for n in x.shape) or not arrays[0].shape:
            continue
        shapes = [tuple(Dim(f"n{k}_{a}") for a in range(x.ndim)) for k, x in enumerate(arrays)]
        own = {n: Dim(f"n0_{a}") for a, n in enumerate(arrays[0].shape)}
        inputs = tuple(parameter(TensorType(s, x.dtype), f"x{k}") for k, (s, x) in enumerate(zip(shapes, arrays)))
        types = tuple(node.type for node in inputs)
        for attrs in _open_attributes(op, types, given, own):
            for type in _inferred(op, types, attrs):
                g = of_node(op, inputs, attrs, type)
                try:
                    whole = with_conditions(g, ())
                except (VerifyError, HybridflowError):
                    continue
                assert is_taken(whole) and (bool(whole.conditions) <= (not is_taken(g)))
                for _ in range(6):
                    tried += _holds_for(op, whole, types, attrs, type, rng)
    assert tried or op.name in ("windows", "first_positions")


def _open_attributes(op: Any, types: Any, given: dict[str, Any], own: dict[int, Dim]) -> Iterator[dict[str, Any]]:
    def opened(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(opened, value))
        return own.get(value, value) if type(value) is int else value

    for attrs in (dict(given), {name: opened(value) for name, value in given.items()}):
        for moved in ({}, *({name: _moved(value)} for name, value in attrs.items())):
            try:
                yield dict(attrs | moved) if op.canon is None else op.canon(types, attrs | moved)
            except HybridflowError:
                continue


def _moved(value: Any) -> Any:
    if isinstance(value, tuple) and value:
        first = value[0] + Dim("n0_0") - 3 if isinstance(value[0], (int, Dim)) else value[0]
        return (first, *value[1:])
    return value


def _holds_for(op: Any, whole: Graph, types: Any, attrs: Any, type: TensorType, rng: np.random.Generator) -> bool:
    names = sorted({name for t in types for extent in t.shape for name in symbols(extent)})
    sizes = {name: int(rng.integers(2, 12)) for name in names}
    if any(value_at(condition, sizes) < 0 for condition in whole.conditions):
        return False

    def closed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(closed, value))
        return value_at(value, sizes) if isinstance(value, Dim) else value

    shapes = [closed(t.shape) for t in types]
    arrays = [np.zeros(shape, t.dtype) for shape, t in zip(shapes, types)]
    found = op.reference(*arrays, **{name: closed(value) for name, value in attrs.items()})
    assert found.shape == closed(type.shape), (attrs, sizes)
    return True


# ---- what is found when it runs


@contextlib.contextmanager
def on_threads(count: int) -> Iterator[None]:
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(count)
    try:
        yield
    finally:
        hf.config.set_num_threads(before)


@pytest.mark.parametrize("shape", [(5,), (70,), (3, 5), (9, 67), (4, 3, 2)])
@pytest.mark.parametrize("count", [1, 3, 40])
def test_indices_that_nobody_looked_at(tmp_path: Path, shape: tuple[int, ...], count: int) -> None:
    """A file may say that indices are known to be in range: those that are not have no effect."""
    rng = np.random.default_rng(count)
    rest = ",".join(map(str, shape))
    taken = ",".join(map(str, (count, *shape[1:])))
    text = graph(
        f"%3: f32[{rest}] = scatter_set(%0, %1, %2) {{axis=0, known=True}}\nreturn %3",
        f'%0: f32[{rest}] "x", %1: i64[{count}] "i", %2: f32[{taken}] "u"',
    )
    loaded = hf.saved.load(crafted(tmp_path, text, arguments_of(text)))
    for indices in (
        rng.integers(-2 * shape[0], 2 * shape[0], count),
        rng.choice([0, shape[0], -shape[0] - 1, 2**62, -(2**62), 2**63 - 1, -(2**63)], count),
    ):
        x = rng.standard_normal(shape).astype("f4")
        updates = rng.standard_normal((count, *shape[1:])).astype("f4")
        expected = x.copy()
        for index, update in zip(indices.tolist(), updates):
            if -shape[0] <= index < shape[0]:
                expected[index] = update
        for threads in (1, 2, 3):
            with on_threads(threads):
                found = loaded(x, np.asarray(indices, np.int64), updates)
            np.testing.assert_array_equal(found, expected)
        reference = TABLE["scatter_set"].reference(x, np.asarray(indices), updates, axis=0, known=True)
        np.testing.assert_array_equal(reference, expected)
        tensors = (hf.asarray(x), hf.asarray(np.asarray(indices, np.int64)), hf.asarray(updates))
        np.testing.assert_array_equal(apply(TABLE["scatter_set"], *tensors, axis=0, known=True), expected)


SIZED = """%2: (f32[],) = sized(%1, %0) {body=graph b(%0: f32[8] "x") {
      %1: f32[s,8] = broadcast(%0) {axes=(1,), shape=(s, 8)}
      %2: f32[s,8] = sort(%1) {axis=1, descending=False}
      %3: f32[] = sum(%2) {axes=(0, 1)}
      return %3
    }, symbol="s"}
  %3: f32[] = project(%2) {index=0}
  return %3"""


def test_counts_that_no_memory_holds(tmp_path: Path) -> None:
    """Of an extent that is found when the program runs, the memory may be more than 64 bits can say."""
    text = graph(SIZED, '%0: f32[8] "x", %1: i64[] "c"')
    loaded = hf.saved.load(crafted(tmp_path, text, arguments_of(text)))
    x = np.ones(8, np.float32)
    assert float(loaded(x, np.int64(3))) == 40.0 and float(loaded(x, np.int64(-5))) == 16.0
    for bits, more in itertools.product(range(47, 63), (-2, -1, 0, 1, 5, 1000)):
        with pytest.raises(HybridflowError, match="no memory"):
            loaded(x, np.int64(2**bits + more))


def test_texts_are_right_as_they_are_written() -> None:
    for text in REFUSED.values():
        try:
            again = to_text(parse(text, TABLE))
        except HybridflowError:
            continue
        assert to_text(parse(again, TABLE)) == again


# ---- small files that would take all time or memory


def open_shape(extent: str) -> str:
    return graph("return %0", f'%0: f32[{extent}] "x"')


def nested_quotients(count: int) -> str:
    extent = "n"
    for k in range(count):
        extent = f"({extent}+m{k})//(k{k}+1)"
    return extent


TAKES_LONG = {
    "a product of sums": open_shape("*".join(f"(a{k}+b{k})" for k in range(24))),
    "a product of names": open_shape("*".join(f"a{k}" for k in range(100))),
    "quotients of quotients": open_shape(nested_quotients(40)),
    "a product of quotients": open_shape("*".join(f"((n{k}+m{k})//3)" for k in range(17))),
    "digits": open_shape("*".join(["9" * 900] * 500)),
    "brackets": open_shape("(" * 5000 + "n" + ")" * 5000),
    "marks": "graph f(" + "(" * 2_000_000,
    "entries": graph(f"%1: f32[{'1,' * 70_000}] = reshape(%0) {{shape=(8,)}}\nreturn %1"),
    "conditions of many terms": graph(
        "\n".join(f"assume {'+'.join(f'{i + 2}*n{i}' for i in range(59))}-{k} >= 0" for k in range(100))
        + "\n%1: f32[n0-n1] = iota() {axis=0, dtype=f32, shape=(n0-n1,)}\nreturn %1",
        f'%0: f32[{",".join(f"n{k}" for k in range(60))}] "x"',
    ),
}


@pytest.mark.parametrize("name", TAKES_LONG)
def test_limits_come_before_work(name: str) -> None:
    """Each of them took minutes, or more memory than there is."""
    with pytest.raises(HybridflowError):
        check_in_bounds(parse(TAKES_LONG[name], TABLE))


def test_marks_take_no_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(HybridflowError):
            parse(TAKES_LONG["marks"], TABLE)
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()
