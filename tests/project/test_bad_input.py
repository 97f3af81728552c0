"""Wrong calls of every public function and method: each is an error of ours that names the line of the call.

The calls are made from signatures: one good call of each function, in which one argument at a time, or two, are
replaced by what nobody should pass.  A replacement may be good after all, and then the call has to give a result.
"""

from __future__ import annotations

import inspect
import math
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code


class Odd:
    """An object that is nothing in particular."""

    def __repr__(self) -> str:
        return "Odd()"


class Contrary:
    """An object that raises wherever it is asked something."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")

    def __repr__(self) -> str:
        return "Contrary()"


def cyclic() -> Any:
    inside: list[Any] = [1]
    inside.append(inside)
    return inside


WRONG: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "text": lambda: "nonsense",
    "bytes": lambda: b"nonsense",
    "object": Odd,
    "class": lambda: Odd,
    "function": lambda: len,
    "contrary": Contrary,
    "dict": lambda: {"a": 1},
    "set": lambda: {1, 2},
    "generator": lambda: (k for k in (1, 2)),
    "ragged": lambda: [[1, 2], [3]],
    "cyclic": cyclic,
    "nested": lambda: (1, (2, "a")),
    "empty": lambda: (),
    "complex": lambda: 1j,
    "nan": lambda: math.nan,
    "fraction": lambda: 1.5,
    "huge": lambda: 10**40,
    "negative": lambda: -(10**19),
    "seven": lambda: 77,
    "pair": lambda: (0, 0),
    "objects": lambda: np.array([Odd()], object),
    "texts": lambda: np.array(["a"]),
    "dates": lambda: np.array(["2020-01-01"], "datetime64[D]"),
    "axes": lambda: hf.ones((1, 0, 3, 1, 2)),
    "bools": lambda: hf.asarray([True, False]),
    "integers": lambda: hf.asarray([3, -7, 100], dtype=hf.int8),
    "variable": lambda: hf.Variable([1.0, 2.0, 3.0, 4.0, 5.0]),
    "array": lambda: np.ones((4, 1, 3)),
}

MATRIX = [[2.0, 1.0], [1.0, 3.0]]
GOOD: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(["x", "x1", "x2", "value", "p", "logits", "labels", "predictions"], lambda: hf.asarray(MATRIX)),
    **dict.fromkeys(["params", "condition", "fill_value", "start", "elems"], lambda: hf.asarray([1.0, 2.0])),
    **dict.fromkeys(["indices", "repeats", "shift", "axes", "repetitions", "seed"], lambda: [0, 1]),
    **dict.fromkeys(["n_rows", "k", "depth", "num", "n", "num_or_sizes", "offset"], lambda: 2),
    **dict.fromkeys(["axis", "source", "destination", "minval", "stop"], lambda: 0),
    **dict.fromkeys(["dtype", "target", "source_dtype"], lambda: hf.float32),
    "maxval": lambda: 5,
    "shape": lambda: (2, 2),
    "kind": lambda: "integral",
    "rate": lambda: 0.5,
    "paddings": lambda: [(1, 1), (0, 2)],
    "updates": lambda: hf.asarray(MATRIX),
    "equation": lambda: "ij->i",
    "tree": lambda: {"a": 1},
    "structure": lambda: hf.tree.structure({"a": 1}),
    "leaves": lambda: [1],
    "arrays": lambda: [hf.ones(2), hf.ones(2)],
    "function": lambda: hf.sum,
    **dict.fromkeys(["f", "fn", "func"], lambda: hf.negative),
    **dict.fromkeys(["primals", "tangents", "inp"], lambda: (hf.asarray(MATRIX),)),
    "Tout": lambda: hf.float32,
    "identifier": lambda: "mse",
}


def _images(axes: int) -> dict[str, Any]:
    """Arguments of convolutions and pooling over so many axes."""
    filters = hf.ones((*(1,) * axes, 2, 2))
    found = dict.fromkeys(["filters", "filter", "depthwise_filter", "pointwise_filter"], filters)
    found["pointwise_filter"] = hf.ones((1, 1, 4, 2))
    return {**found, "input": hf.ones((1, *(4,) * axes, 2)), "ksize": 2, "strides": 1, "padding": "SAME"}


# Good arguments of functions to which the names mean something else.
SPECIAL: dict[str, dict[str, Any]] = {
    "ragged.concat": {"values": [hf.ragged.constant([[1]])]},
    "ragged.constant": {"pylist": [[1], [2, 3]]},
    "ragged.lookup": {"params": MATRIX, "ids": hf.ragged.constant([[1]])},
    "ragged.map_flat_values": {"op": hf.negative, "args": hf.ragged.constant([[1]]), "kwargs": {}},
    "ragged.row_splits": {"splits": [0, 2]},
    "integrate.simpson": {"y": [1.0, 2.0]},
    "sparse.from_dense": {"x": MATRIX, "format": "coo"},
    "sparse.matmul": {"a": hf.sparse.from_dense(MATRIX), "b": MATRIX},
    "sparse.sparse_dense_matmul": {"sp_a": hf.sparse.from_dense(MATRIX), "b": MATRIX},
    "sparse.sddmm": {"pattern": hf.sparse.from_dense(MATRIX), "x": MATRIX, "y": MATRIX},
    "sparse.add": {"a": hf.sparse.from_dense(MATRIX), "b": MATRIX},
    "sparse.concat": {"axis": 0, "sp_inputs": [hf.sparse.from_dense(MATRIX)]},
    "sparse.eye": {"num_rows": 2},
    "sparse.": {"x": hf.sparse.from_dense(MATRIX), "y": MATRIX},
    "bitwise": {"x": 3, "x1": 3, "x2": 1},
    "permute_dims": {"axes": (1, 0)},
    "can_cast": {"source": hf.int8, "target": hf.int16},
    "broadcast_shapes": {"shapes": (2, 1)},
    "meshgrid": {"arrays": [1, 2]},
    "broadcast_arrays": {"arrays": [1, 2]},
    "result_type": {"values": hf.float32},
    "iinfo": {"dtype": hf.int8},
    "linalg.cross": {"x1": [1.0, 2, 3], "x2": [1.0, 2, 3]},
    "linalg.block_diag": {"arrays": MATRIX},
    "linalg.lanczos": {"A": MATRIX, "v0": [1.0, 2.0], "num_steps": 2},
    "linalg.lu_solve": {"x1": (MATRIX, [0, 1])},
    "searchsorted": {"x1": [1.0, 2.0]},
    "bincount": {"x": [0, 2]},
    "segment": {"segment_ids": [0, 1]},
    "quantile": {"q": 0.5},
    "percentile": {"q": 50},
    "scatter_add": {"updates": 1.0},
    "take_along_axis": {"x": MATRIX, "indices": [[0, 1]]},
    "tensordot": {"axes": 1},
    "tile": {"repetitions": (1, 2)},
    "repeat": {"repeats": 2},
    "roll": {"shift": 1},
    "moveaxis": {"source": 0, "destination": 1},
    "squeeze": {"axis": ()},
    "expand_dims": {"axis": 0},
    "random.bernoulli": {"p": 0.5},
    "random.stateless_bernoulli": {"p": 0.5},
    "random.exponential": {"rate": 2.0},
    "random.fold_in": {"data": 3},
    "random.stateless_binomial": {"counts": 3, "probs": 0.5},
    "dropout": {"rate": 0.5},
    "full": {"fill_value": 3.0},
    "nn.one_hot": {"indices": [0, 1]},
    "nn.ctc_loss": {"labels": [[1]], "logits": hf.ones((2, 1, 2)), "label_length": [1], "logit_length": [2]},
    "nn.conv1d_transpose": {**_images(1), "output_shape": 4},
    "nn.conv2d_transpose": {**_images(2), "output_shape": (4, 4)},
    "nn.conv3d_transpose": {**_images(3), "output_shape": (4, 4, 4)},
    **dict.fromkeys(["nn.conv1d", "nn.max_pool1d", "nn.avg_pool1d"], _images(1)),
    **dict.fromkeys(["nn.conv3d", "nn.max_pool3d", "nn.avg_pool3d"], _images(3)),
    **dict.fromkeys(["nn.conv", "_conv2d", "nn.max_pool", "nn.avg_pool"], _images(2)),
    "fft.": {"s": (2, 2), "axes": (0, 1), "norm": "ortho", "d": 2.0},
    **{
        key: {
            "window_length": 4,
            "beta": 2.0,
            "frame_length": 2,
            "frame_step": 1,
            "fft_length": 2,
            "signal": MATRIX,
            "power": 1,
            "window": None,
            "spectra": MATRIX,
        }
        for key in ["_window", "signal.frame", "overlap", "stft", "spectrogram"]
    },
    **{key: {"x1": [1.0, 2.0], "x2": [1.0, 2.0]} for key in ["convolve", "correlate"]},
    "ct": {"type": 2, "norm": "ortho"},
    **{
        key: {"in1": MATRIX, "in2": MATRIX, "mode": "full", "axes": (0, 1)}
        for key in ["signal.convolve", "signal.correlate", "fftconvolve"]
    },
    "mel_weight": {
        "num_mel_bins": 2,
        "num_spectrogram_bins": 5,
        "sample_rate": 8000.0,
        "lower_edge_hertz": 10.0,
        "upper_edge_hertz": 400.0,
    },
    "lfilter": {"b": [1.0], "a": [1.0, 0.5], "zi": [[0.0, 0.0]]},
    "linspace": {"start": 0.0, "stop": 1.0},
    "arange": {"start": 3.0},
    "gather_nd": {"indices": [[0], [1]]},
    "einsum": {"operands": MATRIX},
    "tree.map": {"function": lambda *xs: xs, "rest": {"a": 2}},
    **{key: {"x": [1.0, 2.0]} for key in ["cumulative", "cummax", "cummin", "cumlogsumexp", "nancum", "vander"]},
    **{key: {"x1": 6, "x2": 4} for key in ["gcd", "lcm"]},
    "gradient": {"f": MATRIX, "varargs": 2.0},
    "tri": {"N": 2},
    "ix_": {"args": [0, 1]},
    "digitize": {"bins": [1.0, 2.0]},
    "histogramdd": {"sample": MATRIX},
    "interp": {"xp": [1.0, 2.0], "fp": [3.0, 4.0]},
    "polyval": {"p": [1.0, 2.0]},
    "roots": {"p": [1.0, -3.0, 2.0]},
    "polyfit": {"x": [1.0, 2.0], "y": [3.0, 4.0], "deg": 1},
    "partition": {"kth": 1},
    "rolling": {"window": 2},
    **{key: {"window_shape": (2, 2)} for key in ["sliding_window_view", "reduce_window"]},
    "put_along_axis": {"x": MATRIX, "indices": [[0, 1]], "values": 5.0},
    "choose": {"a": [0, 1], "choices": MATRIX},
    "select": {"condlist": [True, False], "choicelist": [1.0, 2.0]},
    "piecewise": {"condlist": [[[True, False], [False, True]]], "funclist": [hf.add]},
    "apply_along_axis": {"func1d": hf.sum, "arr": MATRIX, "args": 0},
    "ravel_multi_index": {"multi_index": ([0, 1], [1, 0]), "dims": (2, 2)},
    "unpackbits": {"x": hf.asarray([3], dtype=hf.uint8)},
    "packbits": {"x": [True, False]},
    "ball": {"d": 2},
    "outer": {"x1": [1.0, 2.0], "x2": [1.0, 2.0]},
    "take": {"x": [1.0, 2.0]},
    "where": {"condition": True},
}
# What changes the state of the process, takes functions of the user's or writes files: tested by themselves.
_ELSEWHERE = """
function custom_gradient GradientTape config. memory. set_seed global_generator list_devices device Generator cond
from_scipy minimize root_scalar odeint solve_ivp quad
switch_case case while_loop fori_loop scan foldl foldr map_fn associative_scan plot_model
"""
ELSEWHERE = _ELSEWHERE.split()


WITH_FUNCTIONS = ("fft", "linalg", "losses", "nn", "ragged", "signal", "sparse", "optimize", "integrate")


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for prefix, module in (("", hf), *((f"{name}.", getattr(hf, name)) for name in WITH_FUNCTIONS)):
        for name in module.__all__:
            yield prefix + name, getattr(module, name)
    for prefix, module in (("random.", hf.random), ("tree.", hf.tree)):
        for name in module.__all__:
            yield prefix + name, getattr(module, name)


FUNCTIONS = {
    name: found
    for name, found in public_functions()
    if callable(found)
    and not isinstance(found, type)
    and not any(name == part or (part.endswith(".") and name.startswith(part)) for part in ELSEWHERE)
    and name.rpartition(".")[2] not in ELSEWHERE
}
_METHODS = """
__add__ __radd__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ __rpow__ __matmul__ __and__ __or__
__lshift__ __eq__ __lt__ __getitem__ __contains__ __divmod__ __round__ __format__ __array_namespace__ all any argmax
argmin argsort astype clip copy cumsum dot flatten item max mean min numpy prod ravel repeat reshape round sort squeeze
std sum take to_device tolist transpose var
"""
METHODS = _METHODS.split()


# Of what its arguments may make a function raise, what is special to it: documented there.
TOLD = {"AxisError": ("axis",), "ShapeError": ("x1", "x2", "shape", "labels", "predictions")}


def good(function: str, parameter: inspect.Parameter) -> Any:
    for name, values in SPECIAL.items():
        if (name in function) and parameter.name in values:
            return values[parameter.name]
    make = GOOD.get(parameter.name)
    return hf.asarray(MATRIX) if make is None else make()


def calls(name: str, parameters: list[inspect.Parameter]) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Calls in which one argument is wrong: what is wrong, and the arguments."""
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    for wrong in parameters:
        for what, make in WRONG.items():
            args: list[Any] = []
            kwargs: dict[str, Any] = {}
            for p in parameters:
                if p is not wrong and p not in needed:
                    continue
                value = make() if p is wrong else good(name, p)
                by_position = p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL) or (p in needed and not kwargs)
                if by_position and p.kind is not p.KEYWORD_ONLY:
                    args.append(value)
                else:
                    kwargs[p.name] = value
            yield f"{wrong.name}={what}", args, kwargs


def complaint(call: Callable[[], Any], raised: set[str] | None = None) -> str | None:
    """What is wrong with the way in which a call fails; None if it does not, or as it should.  Classes of errors go
    into ``raised``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except errors.HybridflowError as error:
        if raised is not None:
            raised.add(type(error).__name__)
        if error.where is None or not error.where.startswith(__file__):
            return f"{type(error).__name__} names {error.where}: {error}"
        frames = [
            frame.name for frame in traceback.extract_tb(error.__traceback__) if "test_bad_input" not in frame.filename
        ]
        if len(frames) > 3:
            return f"shows {frames}: {error}"
        return None
    except Exception as error:
        if str(error) in ("no comparison", "no truth"):  # the user's own
            return None
        return f"{type(error).__module__}.{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function = FUNCTIONS[name]
    parameters = list(inspect.signature(function).parameters.values())
    found = {}
    documented = inspect.getdoc(function) or ""
    for what, args, kwargs in calls(name, parameters):
        raised: set[str] = set()
        said = complaint(lambda args=args, kwargs=kwargs: function(*args, **kwargs), raised)
        if said is not None:
            found[what] = said
        untold = {kind for kind in raised if what.partition("=")[0] in TOLD.get(kind, ()) and kind not in documented}
        assert not untold, f"{name}({what}) raises what its documentation does not tell of: {untold}"
    assert not found, "\n" + "\n".join(f"{name}({what}): {said[:200]}" for what, said in found.items())


@pytest.mark.parametrize("name", METHODS)
def test_methods(name: str) -> None:
    x = hf.asarray(MATRIX)
    method = getattr(x, name)
    try:
        parameters = list(inspect.signature(getattr(hf.Tensor, name)).parameters.values())[1:]
    except ValueError:
        parameters = [inspect.Parameter("x", inspect.Parameter.POSITIONAL_ONLY)]
    found = {}
    for what, args, kwargs in calls(name, parameters):
        said = complaint(lambda args=args, kwargs=kwargs: method(*args, **kwargs))
        if said is not None:
            found[what] = said
    assert not found, "\n" + "\n".join(f"x.{name}({what}): {said[:200]}" for what, said in found.items())
    assert x.tolist() == MATRIX


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_calls_would_be_good(name: str) -> None:
    """Or the errors might be those of other arguments."""
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters.values())
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    by_position = [good(name, p) for p in needed if p.kind is not p.KEYWORD_ONLY]
    FUNCTIONS[name](*by_position, **{p.name: good(name, p) for p in needed if p.kind is p.KEYWORD_ONLY})


def set_item(key: Any, value: Any) -> None:
    x = hf.ones((2, 2))
    x[key] = value


def with_tape(use: Callable[[hf.GradientTape, hf.Tensor], Any]) -> Any:
    x = hf.ones(2)
    with hf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = hf.sum(x * x)
    return use(tape, y)


STEP = hf.function(lambda x: x)
OTHERS: dict[str, Callable[[Any], Any]] = {
    "Variable": lambda w: hf.Variable(w),
    "Variable dtype": lambda w: hf.Variable(1.0, dtype=w),
    "assign": lambda w: hf.Variable(MATRIX).assign(w),
    "assign_add": lambda w: hf.Variable(MATRIX).assign_add(w),
    "TensorSpec": lambda w: hf.TensorSpec(w),
    "TensorSpec dtype": lambda w: hf.TensorSpec((2,), w),
    "watch": lambda w: hf.GradientTape().watch(w),
    "gradient target": lambda w: with_tape(lambda tape, y: tape.gradient(w, y)),
    "gradient sources": lambda w: with_tape(lambda tape, y: tape.gradient(y, w)),
    "output gradients": lambda w: with_tape(lambda tape, y: tape.gradient(y, y, w)),
    "function": lambda w: hf.function(w),
    "cache_size": lambda w: hf.function(lambda x: x, cache_size=w),
    "input_signature": lambda w: hf.function(lambda x: x, input_signature=w)(hf.ones(2)),
    "declared": lambda w: hf.function(lambda x: x, input_signature=[hf.TensorSpec((None,))])(w),
    "call": lambda w: STEP(w),
    "keyword": lambda w: STEP(x=w),
    "too many": lambda w: STEP(w, w),
    "in a list": lambda w: STEP([w, hf.ones(2)]),
    "custom_gradient": lambda w: hf.custom_gradient(w),
    "result of custom_gradient": lambda w: hf.custom_gradient(lambda x: w)(hf.ones(2)),
    "Generator": lambda w: hf.random.Generator(w),
    "key": lambda w: set_item(w, 1.0),
    "value": lambda w: set_item(0, w),
    "item of a list": lambda w: hf.asarray([1.0, w]),
    "item of a stack": lambda w: hf.stack([hf.ones(2), w]),
    "grad of": lambda w: hf.grad(w),
    "grad at": lambda w: hf.grad(hf.sum)(w),
    "device": lambda w: hf.device(w),
    "np.sum axis": lambda w: np.sum(hf.ones((2, 2)), axis=w),
    "np.add": lambda w: np.add(hf.ones((2, 2)), w),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_calls(name: str) -> None:
    found = {what: complaint(lambda make=make: OTHERS[name](make())) for what, make in WRONG.items()}
    found = {what: said for what, said in found.items() if said is not None}
    assert not found, "\n" + "\n".join(f"{name}({what}): {said[:200]}" for what, said in found.items())
    assert STEP(hf.ones(2)).tolist() == [1, 1]


def test_lists_that_contain_themselves_are_no_texts() -> None:
    step = hf.function(lambda x: x)
    assert step(hf.strings.constant(["a"])).tolist() == [b"a"]
    assert complaint(lambda: step(cyclic())) is None and complaint(lambda: hf.strings.constant(cyclic())) is None
