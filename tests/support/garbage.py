"""Python's garbage, where references and memory are counted: none of an earlier test may go meanwhile."""

from __future__ import annotations

import gc


def collect_all() -> None:
    """Collect until nothing is left: what goes lets other things go, some only at the next collection."""
    for _ in range(20):
        if not gc.collect():
            return
