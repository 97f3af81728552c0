"""Names that people bring from NumPy, TensorFlow, JAX and PyTorch: methods that are there, and answers for the rest."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core import name_hints

pytestmark = pytest.mark.code

VALUES = np.array([[1.0, -2.25, 3.0], [4.0, 5.5, -6.125]], np.float32)

# Called on a tensor and on the NumPy array of the same values.
SAME: list[Callable[[Any], Any]] = [
    lambda x: x.sum(),
    lambda x: x.sum(0),
    lambda x: x.sum(axis=1, keepdims=True),
    lambda x: x.sum((0, 1), np.float64),
    lambda x: x.prod(1),
    lambda x: x.mean(),
    lambda x: x.mean(0, None, None, True),
    lambda x: x.max(),
    lambda x: x.min(axis=0),
    lambda x: x.std(),
    lambda x: x.std(axis=0, ddof=1),
    lambda x: x.var(0, None, None, 1),
    lambda x: x.argmax(),
    lambda x: x.argmin(1),
    lambda x: (x > 0).any(0),
    lambda x: (x > 0).all(),
    lambda x: x.reshape(3, 2),
    lambda x: x.reshape((6,)),
    lambda x: x.reshape(-1, order="C"),
    lambda x: x.flatten(),
    lambda x: x.ravel(),
    lambda x: x.transpose(),
    lambda x: x.transpose(1, 0),
    lambda x: x.transpose((1, 0)),
    lambda x: x.reshape(1, 2, 3).squeeze(),
    lambda x: x.reshape(1, 2, 3).squeeze(axis=0),
    lambda x: x.clip(-1, 2),
    lambda x: x.clip(max=2),
    lambda x: x.astype(np.float64),
    lambda x: x.copy(),
    lambda x: x.round(),
    lambda x: x.round(1),
    lambda x: x.round(decimals=-1),
    lambda x: x.cumsum(),
    lambda x: x.cumsum(axis=1),
    lambda x: x.dot(np.ones((3, 2), np.float32)),
    lambda x: x.dot(np.float32(2)),
    lambda x: x[0].dot(x[1]),
    lambda x: x.argsort(),
    lambda x: x.argsort(axis=0),
    lambda x: x.argsort(None),
    lambda x: x.take([5, 0]),
    lambda x: x.take([1], axis=1),
    lambda x: x.repeat(2),
    lambda x: x.repeat([1, 2], axis=0),
    lambda x: np.sum(x, axis=0),
    lambda x: np.mean(x),
    lambda x: np.std(x, axis=1, ddof=1),
    lambda x: np.argmax(x, axis=0),
    lambda x: np.cumsum(x),
    lambda x: np.clip(x, 0, 1),
    lambda x: np.transpose(x),
]


@pytest.mark.parametrize("k", range(len(SAME)))
def test_methods_are_numpys(k: int) -> None:
    call, x = SAME[k], hf.asarray(VALUES)
    wanted = np.asarray(call(VALUES))
    results = [
        call(x),
        call(hf.Variable(x)),
        hf.function(lambda x: call(x))(x),
        hf.function(lambda v: call(v))(hf.Variable(x)),
    ]
    for got in results:
        assert isinstance(got, hf.Tensor)
        assert got.dtype == wanted.dtype and got.shape == wanted.shape
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6)


def test_sorting_leaves_the_tensor_as_it_is() -> None:
    x = hf.asarray([3.0, 1.0, 2.0])
    assert x.sort().tolist() == [1, 2, 3] and x.tolist() == [3, 1, 2]
    assert hf.Variable(x).sort(descending=True).tolist() == [3, 2, 1]
    assert x.item is not None and x[0].item() == 3.0


def test_methods_raise_what_their_functions_raise() -> None:
    x = hf.ones((2, 3))
    with pytest.raises(hf.errors.ShapeError, match=r"\[sum\] axis 5"):
        x.sum(5)
    with pytest.raises(hf.errors.ArgumentError, match="tensors are not written into"):
        x.sum(out=np.zeros(()))
    with pytest.raises(hf.errors.ArgumentError, match="row-major"):
        x.flatten(order="F")
    with pytest.raises(hf.errors.ArgumentError, match="integers to -1 places"):
        hf.asarray([15]).round(-1)


def test_gradients_pass_through_methods() -> None:
    x = hf.asarray(VALUES)
    found = hf.grad(lambda x: (x.transpose().flatten().clip(-3, 4) * 2).mean() + x.dot(x.T).sum())(x)
    wanted = hf.grad(lambda x: hf.mean(hf.clip(hf.reshape(hf.permute_dims(x), (6,)), -3, 4) * 2) + hf.sum(x @ x.T))(x)
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("name", sorted(name_hints.OF_MODULE))
def test_the_module_answers(name: str) -> None:
    assert name not in hf.__all__, "it is there: take it out of the table"
    assert not hasattr(hf, name)
    with pytest.raises(AttributeError, match=f"module 'hybridflow' has no attribute '{name}'"):
        getattr(hf, name)


@pytest.mark.parametrize("name", sorted(name_hints.OF_TENSOR))
def test_tensors_answer(name: str) -> None:
    for value in (hf.ones(2), *([] if name in dir(hf.Variable) else [hf.Variable([1.0])])):
        assert not hasattr(value, name) and getattr(value, name, 5) == 5
        assert name not in dir(value)
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(value, name)


def test_answers() -> None:
    def answer(get: Callable[[], Any]) -> str:
        with pytest.raises(AttributeError) as caught:
            get()
        return str(caught.value)

    x = hf.ones((2, 2))
    assert answer(lambda: hf.softmax) == "module 'hybridflow' has no attribute 'softmax'; write hf.nn.softmax(x, axis)."
    assert answer(lambda: hf.permut_dims).endswith("did you mean permute_dims?")
    assert answer(lambda: hf.qwertz) == "module 'hybridflow' has no attribute 'qwertz'"
    assert answer(lambda: x.backward()).endswith("or hf.grad(f).")
    assert answer(lambda: x.exp()) == "'Tensor' object has no attribute 'exp'; write hf.exp(x)."
    assert (
        answer(lambda: hf.Variable(x).atan2(x)) == "'Variable' object has no attribute 'atan2'; write hf.atan2(x, y)."
    )
    assert answer(lambda: x.contiguous()).endswith("write x itself; tensors are contiguous where it matters.")
    assert answer(lambda: x.block_until_ready()).endswith(
        ", and it takes none: results are ready when they are returned."
    )


def test_errors_of_answers_are_ordinary_ones() -> None:
    try:
        hf.softmax  # noqa: B018
    except AttributeError as error:
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error) and copy.copy(error) is not None
    assert "sum" in dir(hf.ones(1))
    assert "class Tensor" in pydoc.render_doc(hf.Tensor)
    assert dict(inspect.getmembers(hf.ones((2, 2))))["shape"] == (2, 2)


def test_wrong_use_that_others_allow() -> None:
    with pytest.raises(hf.errors.DTypeError, match="give the shape as one tuple"):
        hf.zeros(3, 4)
    with pytest.raises(hf.errors.ShapeError, match=r"axis 5 is out of range: the result of f32\[3\] has 2 axes"):
        hf.expand_dims(hf.ones(3), 5)
    with pytest.raises(hf.errors.ArgumentTypeError, match="give a list of one per parameter"):
        hf.function(lambda x: x, input_signature=hf.TensorSpec([2]))


@pytest.mark.parametrize(
    ("room", "name"), [(room, name) for room, table in name_hints.OF_ROOM.items() for name in table]
)
def test_rooms_answer_too(room: str, name: str) -> None:
    module = getattr(hf, room)
    assert name not in module.__all__, "it is there: take it out of the table"
    with pytest.raises(
        AttributeError, match=f"module 'hybridflow.{room}' has no attribute '{name}'(; write |, and it takes)"
    ):
        getattr(module, name)


def test_rooms_name_the_nearest() -> None:
    with pytest.raises(AttributeError, match="did you mean cholesky"):
        hf.linalg.choleski  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean Dense"):
        hf.layers.Dens  # noqa: B018


@pytest.mark.parametrize(
    "room", [n for n in hf.__all__ if inspect.ismodule(getattr(hf, n)) and n not in ("compat", "errors")]
)
def test_rooms_show_their_own_names_alone(room: str) -> None:
    module = getattr(hf, room)
    assert [name for name in dir(module) if not name.startswith("_")] == sorted(module.__all__)
    assert not hasattr(module, "no_such_name")


X, Y = np.array([0.5, -1.5, 2.0, 0.0]), np.array([1.0, 4.0, -2.0, 3.0])
M, N = X.reshape(2, 2) + 1, Y.reshape(2, 2)
GIVEN = {"i": 2, "values": np.array([7.0, 8.0]), "axis": 0, "bins": np.array([-1.0, 0.0, 1.0]), "degree": 2}
GIVEN |= {"start": np.float64(1.0), "stop": np.float64(2.0), "num": 5}
HOLES = np.array([[1.0, np.nan, 3.0], [4.0, 5.0, np.nan]])
WITH_NUMPY: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "allclose": (np.allclose, X, X + 1e-12),
    "argwhere": (lambda x, y: np.argwhere(x), M - 1.5, Y),
    "array_equal": (np.array_equal, X, Y),
    "delete": (lambda x, y: np.delete(x, 2), X, Y),
    "dstack": (lambda x, y: np.dstack([x, y]), M, N),
    "fix": (lambda x, y: np.fix(x), X, Y),
    "flatnonzero": (lambda x, y: np.flatnonzero(x), M - 1, Y),
    "fliplr": (lambda x, y: np.fliplr(x), M, Y),
    "flipud": (lambda x, y: np.flipud(x), M, Y),
    "geomspace": (lambda x, y: np.geomspace(1.0, 2.0, 5), X, Y),
    "inner": (np.inner, M, N),
    "insert": (lambda x, y: np.insert(x, 2, GIVEN["values"]), X, Y),
    "logspace": (lambda x, y: np.logspace(1.0, 2.0, 5), X, Y),
    "row_stack": (lambda x, y: np.vstack([x, y]), M, N),
    "sinc": (lambda x, y: np.sinc(x), X, Y),
    "vdot": (np.vdot, X, Y),
}


P, Q = np.array([3.0, -1.5, 0.25, 2.0]), np.array([0.5, 2.0, -3.0, 1.0])
WIDE, GAPS = np.array([[1.0, -2.0, 0.5], [4.0, 0.0, 2.0]]), np.array([[1.0, np.nan, 0.5], [4.0, -1.0, 2.0]])
INTS, OTHER_INTS = np.array([5, 3, 3, 9, 0]), np.array([3, 9, 7])
SYMMETRIC = np.array([[4.0, 1.0], [1.0, 3.0]])
IN_OTHER_WORDS = (  # the name, the variables of its answer, what NumPy computes of them
    ("absolute", {"x": P}, np.absolute(P)),
    ("addcmul", {"x": P, "y": Q, "z": Q, "value": 0.5}, P + 0.5 * Q * Q),
    ("append", {"x": P, "y": Q}, np.append(P, Q)),
    ("atleast_1d", {"x": np.array(2.0)}, np.atleast_1d(np.array(2.0))),
    ("bartlett", {"n": 9}, np.bartlett(9)),
    ("bitwise_not", {"x": INTS}, ~INTS),
    ("bucketize", {"boundaries": np.sort(P), "x": Q}, np.searchsorted(np.sort(P), Q)),
    ("c_", {"x": P, "y": Q}, np.c_[P, Q]),
    ("cartesian_prod", {"x": P, "y": INTS.astype(float)}, np.array([(a, b) for a in P for b in INTS])),
    ("cdist", {"x": WIDE, "y": GAPS[1:]}, np.linalg.norm(WIDE - GAPS[1:], axis=1)[:, None]),
    ("degrees", {"x": P}, np.degrees(P)),
    ("diag_embed", {"x": P}, np.diag(P)),
    ("dist", {"x": P, "y": Q}, np.linalg.norm(P - Q)),
    ("hsplit", {"x": WIDE, "parts": 3}, np.hsplit(WIDE, 3)),
    ("hstack", {"x": WIDE, "y": GAPS}, np.hstack([WIDE, GAPS])),
    ("index_add", {"x": P, "indices": INTS[1:3], "updates": Q[:2], "axis": 0}, P + np.array([0, 0, 0, 2.5])),
    ("kthvalue", {"x": P, "axis": 0, "k": 2}, np.sort(P)[1]),
    ("left_shift", {"x": INTS, "y": 2}, INTS << 2),
    ("lerp", {"x": P, "y": Q, "weight": 0.25}, P + 0.25 * (Q - P)),
    ("logcumsumexp", {"x": P, "axis": 0}, np.logaddexp.accumulate(P)),
    ("logit", {"x": np.array([0.25, 0.5])}, np.log([1 / 3, 1.0])),
    ("pdist", {"x": WIDE}, np.linalg.norm(WIDE[:, None] - WIDE[None], axis=-1)),
    ("putmask", {"mask": P > 0, "values": Q, "x": P}, np.where(P > 0, Q, P)),
    ("right_shift", {"x": INTS, "y": 1}, INTS >> 1),
    ("sequence_mask", {"n": 10, "lengths": INTS}, np.arange(10) < INTS[:, None]),
    ("tril_indices", {"n": 3}, np.tril_indices(3)),
    ("triu_indices", {"n": 3}, np.triu_indices(3)),
    ("truncatemod", {"x": P, "y": Q}, np.fmod(P, Q)),
    ("union1d", {"x": INTS, "y": OTHER_INTS}, np.union1d(INTS, OTHER_INTS)),
    ("vsplit", {"x": WIDE, "parts": 2}, np.vsplit(WIDE, 2)),
    ("vstack", {"x": WIDE, "y": GAPS}, np.vstack([WIDE, GAPS])),
    ("xlogy", {"x": np.array([0.0, 2.0]), "y": np.array([0.0, 3.0])}, [0.0, 2 * np.log(3.0)]),
    ("linalg.band_part", {"x": SYMMETRIC, "upper": 0, "lower": 1}, np.tril(SYMMETRIC)),
    ("nn.crelu", {"x": P}, np.maximum(np.concatenate([P, -P]), 0.0)),
    ("nn.l2_loss", {"x": P}, np.sum(P**2) / 2),
    ("nn.mish", {"x": P}, P * np.tanh(np.log1p(np.exp(P)))),
)


def computed(name: str, variables: dict[str, Any]) -> Any:
    """What comes of an answer; of several statements the last one counts."""
    room, _, last = name.rpartition(".")
    answer = name_hints.OF_ROOM[room][last] if room else name_hints.OF_MODULE[last]
    *steps, final = answer.partition(" of ")[0].split("; ")
    given = {key: hf.asarray(v) if isinstance(v, np.ndarray) else v for key, v in variables.items()} | {"hf": hf}
    exec("\n".join(steps), given)
    result = eval(final, given)
    return [part.numpy() for part in result] if isinstance(result, (list, tuple)) else np.asarray(result)


@pytest.mark.parametrize("name", WITH_NUMPY)
def test_what_is_to_be_written_is_what_numpy_has(name: str) -> None:
    wanted, x, y = WITH_NUMPY[name]
    np.testing.assert_allclose(computed(name, GIVEN | {"x": x, "y": y}), wanted(x, y), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(("name", "variables", "expected"), IN_OTHER_WORDS, ids=[row[0] for row in IN_OTHER_WORDS])
def test_what_is_to_be_written_computes_it(name: str, variables: dict[str, Any], expected: Any) -> None:
    np.testing.assert_allclose(computed(name, variables), np.asarray(expected), rtol=2e-6, atol=1e-12)
