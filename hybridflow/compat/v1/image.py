"""``tf.image`` of TensorFlow 1, where it is not that of TensorFlow 2: pictures are resampled on another grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybridflow.compat.tf.image import extract_patches, resize as resize_anew
from hybridflow.compat.v1.arguments import as_extents
from hybridflow.compat.v1.literals import literal
from hybridflow.compat.v1.table import Table
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.nn.image_resize import ON_GRIDS, resized_on_grid

if TYPE_CHECKING:
    from hybridflow.compat.export import TensorLike


TABLE = Table()
op = TABLE.op


class ResizeMethod:
    """``tf.image.ResizeMethod``."""

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC, AREA = range(4)


def _resized(images: TensorLike, size: TensorLike, method: str, align_corners: bool, half_pixel_centers: bool) -> Any:
    x = literal(images)
    height, width = as_extents(size)
    if align_corners and half_pixel_centers:
        raise ValueError("If half_pixel_centers is True, align_corners must be False.")
    grid = "corners" if align_corners else "middles" if half_pixel_centers else "starts"
    return resized_on_grid(x, height, width, method, grid)


@op("ResizeBilinear")
def resize_bilinear(
    images: TensorLike, size: TensorLike, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    return _resized(images, size, "bilinear", align_corners, half_pixel_centers)


@op("ResizeNearestNeighbor")
def resize_nearest_neighbor(
    images: TensorLike, size: TensorLike, align_corners: bool = False, half_pixel_centers: bool = False
) -> Any:
    return _resized(images, size, "nearest", align_corners, half_pixel_centers)


@op("ResizeImages", "resize", "resize_images")
def resize_images(
    images: TensorLike,
    size: TensorLike,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
) -> Any:
    """Raises ValueError for a method that is not there: of TensorFlow 1's own, "bicubic"."""
    x = literal(images)
    height, width = as_extents(size)
    if preserve_aspect_ratio:
        scale = min(height / x.shape[-3], width / x.shape[-2])
        height, width = round(x.shape[-3] * scale), round(x.shape[-2] * scale)
    if (height, width) == x.shape[-3:-1]:
        return x
    name = _METHODS.get(method, method)
    if name == "area":
        return resize_anew(x, (height, width), name)
    if name not in ON_GRIDS:
        raise ValueError(
            f"tf.image.resize_images: there is no method {method!r}; there are bilinear, nearest and area."
        )
    return _resized(x, (height, width), name, align_corners, False)


_METHODS = {
    ResizeMethod.BILINEAR: "bilinear", ResizeMethod.NEAREST_NEIGHBOR: "nearest", ResizeMethod.BICUBIC: "bicubic",
    ResizeMethod.AREA: "area",
}  # fmt: skip


@op("ExtractImagePatches")
def extract_image_patches(
    images: ArrayLike,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    sizes: Any = None,
) -> Any:
    return extract_patches(literal(images), ksizes or sizes, strides, rates, padding)
