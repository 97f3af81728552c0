"""TensorFlow's ``tf.debugging``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import DTypeLike


@tf_export("debugging.assert_type")
def assert_type(tensor: Any, tf_type: DTypeLike, message: str | None = None, name: str | None = None) -> Any:
    """Assert that a tensor has a dtype."""
    return hf.debugging.assert_type(tensor, tf_type, message=message)


export(hf.debugging.Assert, "debugging.Assert", "Assert")
export(hf.debugging.assert_all_finite, "debugging.assert_all_finite")
export(hf.debugging.assert_equal, "debugging.assert_equal", "assert_equal")
export(hf.debugging.assert_greater, "debugging.assert_greater", "assert_greater")
export(hf.debugging.assert_greater_equal, "debugging.assert_greater_equal")
export(hf.debugging.assert_less, "debugging.assert_less", "assert_less")
export(hf.debugging.assert_less_equal, "debugging.assert_less_equal")
export(hf.debugging.assert_near, "debugging.assert_near")
export(hf.debugging.assert_negative, "debugging.assert_negative")
export(hf.debugging.assert_non_negative, "debugging.assert_non_negative")
export(hf.debugging.assert_non_positive, "debugging.assert_non_positive")
export(hf.debugging.assert_none_equal, "debugging.assert_none_equal")
export(hf.debugging.assert_positive, "debugging.assert_positive")
export(hf.debugging.assert_rank, "debugging.assert_rank", "assert_rank")
export(hf.debugging.assert_rank_at_least, "debugging.assert_rank_at_least")
export(hf.debugging.assert_rank_in, "debugging.assert_rank_in")
export(hf.debugging.assert_scalar, "debugging.assert_scalar")
export(hf.debugging.assert_shapes, "debugging.assert_shapes")
export(hf.debugging.check_numerics, "debugging.check_numerics")
export(hf.debugging.disable_check_numerics, "debugging.disable_check_numerics")
export(hf.debugging.enable_check_numerics, "debugging.enable_check_numerics")
