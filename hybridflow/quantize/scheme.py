"""What is quantized in a layer, and how: the first part of a policy's name, as in ``"int8_from_float32"``."""

from __future__ import annotations

import dataclasses
import re

from hybridflow.errors import ArgumentError

_NAME = re.compile(r"(int8|int4)(_weights|_static|_aware_weights|_aware)?(?:_(\d+))?")
_SUFFIXES = {
    "dynamic": "",
    "float": "_weights",
    "static": "_static",
    "aware": "_aware",
    "aware_float": "_aware_weights",
}


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How a layer is quantized.

    ``name`` is ``dtype``, then "_weights" (weight-only), "_static" (inputs by calibrated ranges), "_aware" (fake
    quantization, for training) or "_aware_weights" (that of weights alone).  Without these, inputs are quantized by
    what they are at each call.  A number behind is the size of groups of weights that share a scale.
    """

    dtype: str = "int8"
    inputs: str = "dynamic"  # or "float", "static", "aware", "aware_float"
    group_size: int | None = None

    @property
    def name(self) -> str:
        return f"{self.dtype}{_SUFFIXES[self.inputs]}{'' if self.group_size is None else f'_{self.group_size}'}"

    @classmethod
    def parse(cls, name: object) -> Scheme:
        """The scheme of that name.  Raises ArgumentError for another one."""
        match = _NAME.fullmatch(name) if isinstance(name, str) else None
        if match is None or match[3] == "0":
            raise ArgumentError(
                "quantize",
                f"{name!r} is no scheme. Expected 'int8' or 'int4', with '_weights' (weight-only), '_static' or "
                "'_aware', and a group size behind, as in 'int4_weights_128'.",
            )
        inputs = next(inputs for inputs, suffix in _SUFFIXES.items() if suffix == (match[2] or ""))
        return cls(match[1], inputs, int(match[3]) if match[3] else None)
