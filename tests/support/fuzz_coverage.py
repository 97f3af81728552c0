"""What of fusion and of the passes random programs reach: ``python -m tests.support.fuzz_coverage 0 800``.

Prints the coverage of lines and branches of ``compiler/loops`` and ``compiler/passes`` by the fuzzer alone, and what is
missed.  Needs the package ``coverage``.
"""

from __future__ import annotations

import sys


def main(first: int, count: int) -> None:
    import coverage

    measured = coverage.Coverage(branch=True, source=["compiler"], data_file=None, messages=False)
    measured.start()
    from tests.support.fuzz import run  # the modules' own lines count as well

    run(first, count, minutes=1e9, shrink=0.0, log="")
    measured.stop()
    for part in ("*/compiler/loops/*", "*/compiler/passes/*"):
        print(f"{part}: {measured.report(include=[part], show_missing=True):.1f} %")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
