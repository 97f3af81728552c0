"""Random loops over tensors that they assign to give the bits of eager execution, on one and on two threads."""

from __future__ import annotations

import linecache
import re
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from tests.support import random_buffers


def made(text: str, name: str) -> Any:
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names: dict[str, Any] = {"hf": hf}
    exec(compile(text, name, "exec"), names)
    return names["f"]


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_compiled_is_eager(first: int) -> None:
    refused = 0
    for seed in range(first, first + 10):
        text = random_buffers.program(seed)
        f = made(text, f"<buffers {seed}>")
        x = hf.asarray(np.random.default_rng(seed).normal(size=6).astype(np.float32))
        compiled, expected = hf.function(f, strict=True), f(x, 6, 3)
        try:
            compiled(x, hf.asarray(6), hf.asarray(3))
        except hf.errors.TraceError as error:  # which of two tensors a name holds may be left open
            assert re.search("which of several it is|changes it in place where the other binds another", str(error)), (
                text
            )
            refused += 1
            continue
        for _ in range(2):
            found = compiled(x, hf.asarray(6), hf.asarray(3))
            for one, other in zip(found, expected):
                np.testing.assert_array_equal(np.asarray(one), np.asarray(other), err_msg=text)
    assert refused <= 6
