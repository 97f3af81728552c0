"""``python -m hybridflow`` and the ``hybridflow`` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 done, 1 failed or slower than allowed, 2 wrong use."""
    from hybridflow.cli import commands

    return commands.run(sys.argv[1:] if arguments is None else arguments)


def script() -> int:
    """The installed command: ``main`` in a process whose BLAS picks its kernels by itself."""
    from hybridflow.cli import threads

    threads.restart_without_blas_overrides()
    return main()


if __name__ == "__main__":
    sys.exit(script())
