"""Texts as numbers, by the tokenizers of the library of that name."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from hybridflow.errors import ArgumentError


def load_tokenizer(path: str | os.PathLike[str]) -> Any:
    """Read the tokenizer of a model: Hugging Face's ``tokenizer.json``, or the folder in which it is.

    The library ``tokenizers`` reads it: the extra of that name.

    Args:
        path: the file or the folder.

    Returns:
        A ``tokenizers.Tokenizer``: ``encode(text).ids`` are numbers, and ``decode(ids)`` is a text.

    Raises:
        ArgumentError: where there is no such file, where it is damaged, and where the library is not installed.

    >>> hf.applications.text.load_tokenizer("model/")  # doctest: +SKIP
    """
    place = Path(path)
    place = place / "tokenizer.json" if place.is_dir() else place
    if not place.is_file():
        raise ArgumentError("load_tokenizer", f"there is no {place}, and nothing is downloaded.")
    try:
        tokenizers = importlib.import_module("tokenizers")
    except ImportError:
        raise ArgumentError(
            "load_tokenizer", "the library tokenizers reads it: pip install 'hybridflow[tokenizers]'."
        ) from None
    try:
        return tokenizers.Tokenizer.from_file(str(place))
    except Exception as error:  # the library's own are of no class
        raise ArgumentError("load_tokenizer", f"{place} is no tokenizer: {error!s:.200}.") from None
