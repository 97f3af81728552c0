"""Tensors of texts: ``hf.strings``.  Names and arguments are those of ``tf.strings``.

Texts are bytes on the host.  Compiled functions call these functions when they run; what moves elements about, and
comparisons, they do by themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.core.string_tensor import StringTensor
from hybridflow.strings.functions import (
    as_string,
    bytes_split,
    constant,
    format,
    join,
    length,
    lower,
    ngrams,
    reduce_join,
    regex_full_match,
    regex_replace,
    split,
    strip,
    substr,
    to_hash_bucket,
    to_hash_bucket_fast,
    to_hash_bucket_strong,
    to_number,
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_split,
    unicode_split_with_offsets,
    unicode_transcode,
    upper,
)

__all__ = [
    "StringTensor",
    "as_string",
    "bytes_split",
    "constant",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "upper",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
