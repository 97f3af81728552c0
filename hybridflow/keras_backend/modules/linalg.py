"""``keras.ops.linalg``."""

from __future__ import annotations

from keras.src.backend.common import dtypes, standardize_dtype

import hybridflow as hf
from hybridflow.keras_backend.modules.core import convert_to_tensor


def _floats(x):
    x = convert_to_tensor(x)
    dtype = standardize_dtype(x.dtype)
    if "int" in dtype or dtype == "bool":
        return convert_to_tensor(x, dtypes.result_type(dtype, float))
    return x


def cholesky(a, upper=False):
    return hf.linalg.cholesky(_floats(a), upper=upper)


def cholesky_inverse(a, upper=False):
    a = _floats(a)
    inverse = hf.linalg.triangular_solve(a, hf.eye(a.shape[-1], dtype=a.dtype), lower=not upper)
    other = hf.matrix_transpose(inverse)
    return hf.matmul(inverse, other) if upper else hf.matmul(other, inverse)


def det(x):
    return hf.linalg.det(_floats(x))


def eig(x):
    return tuple(hf.linalg.eig(_floats(x)))


def eigh(x):
    return tuple(hf.linalg.eigh(_floats(x)))


def inv(x):
    return hf.linalg.inv(_floats(x))


def lu_factor(x):
    factors, order = hf.linalg.lu_factor(_floats(x))
    rows, pivots = hf.arange(order.shape[-1]), []
    now = hf.broadcast_to(rows, order.shape)
    for i in range(min(factors.shape[-2:])):  # with which row each one was exchanged
        place = hf.argmax(now == order[..., i : i + 1], axis=-1, keepdims=True)
        now = hf.where(rows == place, now[..., i : i + 1], hf.where(rows == i, order[..., i : i + 1], now))
        pivots.append(place)
    return factors, convert_to_tensor(hf.concat(pivots, axis=-1), "int32")


def norm(x, ord=None, axis=None, keepdims=False):
    x = _floats(x)
    if axis is None and ord is None:
        length = hf.linalg.norm(hf.reshape(x, (-1,)))
        return hf.reshape(length, (1,) * x.ndim) if keepdims else length
    if axis is None:
        axis = tuple(range(x.ndim)) if x.ndim > 1 else -1
        if isinstance(axis, tuple) and len(axis) != 2:
            raise ValueError(f"Improper number of dimensions to norm. Received: x.shape={x.shape} with ord={ord}")
    axis = tuple(axis) if isinstance(axis, list) else axis
    axis = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    if isinstance(ord, str) and isinstance(axis, int):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
    return hf.linalg.norm(x, ord=ord, axis=axis, keepdims=keepdims)


def qr(x, mode="reduced"):
    if mode not in {"reduced", "complete"}:
        raise ValueError(
            f"`mode` argument value not supported. Expected one of {{'reduced', 'complete'}}. Received: mode={mode}"
        )
    return tuple(hf.linalg.qr(_floats(x), mode=mode))


def solve(a, b):
    return hf.linalg.solve(_floats(a), _floats(b))


def solve_triangular(a, b, lower=False):
    a, b = _floats(a), _floats(b)
    is_vector = b.ndim == a.ndim - 1
    solution = hf.linalg.triangular_solve(a, hf.expand_dims(b, -1) if is_vector else b, lower=lower)
    return hf.squeeze(solution, -1) if is_vector else solution


def svd(x, full_matrices=True, compute_uv=True):
    if not compute_uv:
        return hf.linalg.svdvals(_floats(x))
    return tuple(hf.linalg.svd(_floats(x), full_matrices=full_matrices))


def lstsq(a, b, rcond=None):
    return hf.linalg.lstsq(_floats(a), _floats(b), rtol=rcond)[0]


def matrix_rank(x, tol=None):
    x = _floats(x)
    if x.ndim < 2:
        raise ValueError(f"Expected input to have rank >= 2. Received input with shape {x.shape}.")
    if tol is None:
        return convert_to_tensor(hf.linalg.matrix_rank(x), "int32")
    return convert_to_tensor(hf.count_nonzero(hf.linalg.svdvals(x) > convert_to_tensor(tol, x.dtype), axis=-1), "int32")


def pinv(x, rcond=None):
    return hf.linalg.pinv(_floats(x), rtol=rcond)


def jvp(fun, primals, tangents, has_aux=False):
    primals, tangents = (tuple(convert_to_tensor(x) for x in xs) for xs in (primals, tangents))
    return hf.jvp(fun, primals, tangents, has_aux)
