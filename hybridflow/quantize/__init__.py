"""Quantization: ``hf.quantize``, models whose weights are held in 8 or 4 bits, and integer products.

``weights`` quantizes the weights of a model, ``dynamic`` the inputs of its dense layers at each call as well, and
``static`` these by ranges that samples show.  ``prepare_training`` and ``convert`` train a model for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.quantize.arithmetic import dequantize, fake_quantize, find_scale, quantize
from hybridflow.quantize.quantizing import Report, convert, dynamic, prepare_training, static, weights

__all__ = [
    "Report",
    "convert",
    "dequantize",
    "dynamic",
    "fake_quantize",
    "find_scale",
    "prepare_training",
    "quantize",
    "static",
    "weights",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
