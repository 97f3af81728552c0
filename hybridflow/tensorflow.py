"""``python -m hybridflow.tensorflow script.py``: run a file that imports TensorFlow or Keras, as it is."""

from __future__ import annotations

__traits__ = ("impure",)

import os
import runpy
import sys
from collections.abc import Sequence

_USE = """usage: python -m hybridflow.tensorflow [--v1] [-m MODULE | SCRIPT] [ARGUMENT ...]

Runs a Python file whose imports of tensorflow and keras are answered by hybridflow.
--v1: import tensorflow is TensorFlow 1, with placeholders and sessions"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one file or module; returns its exit code: 0 done, 2 wrong use."""
    from hybridflow import compat

    rest = list(sys.argv[1:] if arguments is None else arguments)
    version = 2
    if rest and rest[0] == "--v1":
        version = 1
        del rest[0]
    is_module = bool(rest) and rest[0] == "-m"
    if is_module:
        del rest[0]
    if not rest or rest[0] in ("-h", "--help"):
        print(_USE, file=sys.stdout if rest else sys.stderr)
        return 0 if rest else 2
    if not is_module and not os.path.exists(rest[0]):
        print(f"python -m hybridflow.tensorflow: there is no file {rest[0]!r}", file=sys.stderr)
        return 2
    compat.install(version)
    sys.argv[:] = rest
    if is_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
        runpy.run_path(rest[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
