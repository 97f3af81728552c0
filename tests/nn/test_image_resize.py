"""Pictures of another size, where rows and columns are known and where they are open: the same formulas of NumPy and of
tensor ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.nn.image_resize import SAMPLERS, resized, resized_on_grid

SIZES = ((2, 4, 6, 2), (1, 5, 7, 2), (1, 1, 12, 2))
EXACT = ("bilinear", "nearest", "area")  # the others have exp, sin and powers, of which NumPy's last bit is another


def pictures(shape: tuple[int, ...]) -> Any:
    x = np.random.default_rng(sum(shape)).standard_normal(shape).astype("f4")
    return hf.asarray(np.where(x > 1.5, np.float32(np.inf), x))


def saved(f: Any, path: Path) -> Any:

    spec = hf.TensorSpec(("b", "h", "w", 2), "float32")
    return hf.saved.load(hf.saved.save(hf.function(f, input_signature=(spec,)), path / "f"))


def agree(found: Any, wanted: Any, exact: bool) -> None:
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    if exact:
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", list(SAMPLERS))
def test_open_rows_and_columns(method: str, tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return resized(x, 5, 2 * x.shape[2], method, antialias=method == "bicubic")

    loaded = saved(f, tmp_path)
    for shape in SIZES:
        x = pictures(shape) if method in ("nearest", "bilinear") else hf.clip(pictures(shape), -2.0, 2.0)
        agree(loaded(x), f(x), method in EXACT)


@pytest.mark.parametrize(("method", "grid"), (("bilinear", "starts"), ("nearest", "corners")))
def test_open_rows_and_columns_on_grids(method: str, grid: str, tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return resized_on_grid(x, 5, 7, method, grid)

    loaded = saved(f, tmp_path)
    for shape in SIZES:
        agree(loaded(pictures(shape)), f(pictures(shape)), True)


def test_layers_take_open_rows_and_columns(tmp_path: Path) -> None:
    x = hf.Input((None, None, 2))
    y = hf.layers.UpSampling2D(2, interpolation="bilinear")(hf.layers.Resizing(3, 4)(x))
    model = hf.Model(x, hf.layers.Resizing(2, 2, "nearest")(y))
    for shape in SIZES[:2]:
        agree(
            model(pictures(shape)),
            resized(resized(resized(pictures(shape), 3, 4, "bilinear"), 6, 8, "bilinear"), 2, 2, "nearest"),
            True,
        )
