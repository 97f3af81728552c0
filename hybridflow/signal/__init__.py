"""Signals: windows, frames, spectrograms, cosine transforms, convolution and linear filters.

All of them are compiled, differentiated and vectorised like any other function.  Names and defaults are those of
``tf.signal`` and ``scipy.signal``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.signal.convolution import convolve, correlate, fftconvolve
from hybridflow.signal.cosine import dct, idct
from hybridflow.signal.filters import lfilter
from hybridflow.signal.framing import frame, overlap_and_add
from hybridflow.signal.spectra import istft, linear_to_mel_weight_matrix, spectrogram, stft
from hybridflow.signal.windows import (
    hamming_window,
    hann_window,
    kaiser_bessel_derived_window,
    kaiser_window,
    vorbis_window,
)

__all__ = [
    "convolve",
    "correlate",
    "dct",
    "fftconvolve",
    "frame",
    "hamming_window",
    "hann_window",
    "idct",
    "istft",
    "kaiser_bessel_derived_window",
    "kaiser_window",
    "lfilter",
    "linear_to_mel_weight_matrix",
    "overlap_and_add",
    "spectrogram",
    "stft",
    "vorbis_window",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
