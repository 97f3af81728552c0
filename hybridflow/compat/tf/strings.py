"""TensorFlow's ``tf.strings``."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export, tf_export
from hybridflow.errors import ArgumentError
from hybridflow.strings.host import mapped

for _name in hf.strings.__all__:
    if _name not in ("StringTensor", "constant"):
        export(getattr(hf.strings, _name), f"strings.{_name}")
export(hf.strings.as_string, "as_string")


@tf_export("io.encode_base64")
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """``tf.io.encode_base64``: of the letters that are safe in addresses, with ``=`` at the end where ``pad``."""

    def encode(text: bytes) -> bytes:
        result = base64.urlsafe_b64encode(text)
        return result if pad else result.rstrip(b"=")

    return mapped("encode_base64", encode, input)


@tf_export("io.decode_base64")
def decode_base64(input: Any, name: str | None = None) -> Any:
    """``tf.io.decode_base64``, with ``=`` at the end or without.  Raises ArgumentError for other letters."""

    def decode(text: bytes) -> bytes:
        body = text.rstrip(b"=")
        try:
            return base64.b64decode(body + b"=" * (-len(body) % 4), b"-_", validate=True)
        except binascii.Error:
            raise ArgumentError("decode_base64", f"Invalid character found in base64: {text!r:.60}.") from None

    return mapped("decode_base64", decode, input)
