"""Names of files, as users give them."""

from __future__ import annotations

import glob
import os
from typing import Any

from hybridflow.errors import ArgumentError, ArgumentTypeError


def paths_of(filenames: Any, stage: str) -> list[str]:
    """Names of files: one, or several.  Raises ArgumentTypeError for what is no name, ArgumentError for none."""
    names = [filenames] if isinstance(filenames, (str, bytes, os.PathLike)) else filenames
    try:
        result = [os.fsdecode(path) for path in names]
    except TypeError:
        raise ArgumentTypeError(stage, f"filenames is {filenames!r:.80}; give a name, or a list of them.") from None
    if not result:
        raise ArgumentError(stage, "there is no file.")
    return result


def matching(pattern: object, stage: str) -> list[str]:
    """The sorted names of the files that match a pattern, or any of several.  Raises ArgumentError for none."""
    paths: set[str] = set()
    for one in paths_of(pattern, stage):
        paths.update(glob.glob(one))
    if not paths:
        raise ArgumentError(stage, f"no file matches {pattern!r}.")
    return sorted(paths)
