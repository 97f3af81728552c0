"""Interpreters without what native code needs: every call is a slow one, with the same result."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from hybridflow.runtime.calls import entry
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.native import object_layout, native_functions

real = native_functions.load
def load(build, settings, symbols, imports):
    return real(lambda: build().replace({symbol!r}, "Py_IsNotInThisVersion"), (*settings, "broken"), symbols, imports)
native_functions.load = load

import hybridflow as hf

@hf.function
def f(x, k=1):
    return hf.exp(x) + k

v = hf.Variable(hf.zeros(3))

@hf.function
def step(x):
    v.assign_add(x)
    return v * 1.0

x = hf.asarray(np.arange(3, dtype=np.float32))
for k in (1, 1, 2, 1):
    np.testing.assert_array_equal(f(x, k).numpy(), (hf.exp(x) + k).numpy())
for k in range(1, 4):
    np.testing.assert_array_equal(step(x).numpy(), k * x.numpy())
assert "does not l" in entry.problem(), entry.problem()
assert entry.enable() is None and (memory_pool.pool() is None) == {no_pool}
from hybridflow.cli import doctor
(finding,) = doctor._native_entry()
assert finding.state == "note" and entry.problem() in finding.text
(finding,) = doctor._memory()
assert finding.state == ("note" if {no_pool} else "ok")
print("done")
"""


@pytest.mark.parametrize(
    "symbol, no_pool", [("PyObject_Vectorcall", False), ("PyErr_Format", True), ("PyObject_GetAttr", False)]
)
def test_a_missing_symbol_turns_native_code_off(symbol, no_pool):
    program = PROGRAM.format(symbol=symbol, no_pool=no_pool)
    environment = {**os.environ, "HF_CACHE_DIR": "off"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr


@pytest.mark.parametrize("missing", ["os.register_at_fork", "sys.getrefcount"])
def test_interpreters_that_lack_a_function(missing):
    program = f"""
import os, random, sys  # random itself needs os.register_at_fork where it thinks that the system has it
del {missing}
import hybridflow as hf

x = hf.constant([1.0, 2.0])
v = hf.Variable(hf.zeros(2))

@hf.function
def step(x):
    v.assign_add(x)
    return hf.exp(v)

for _ in range(3):
    step(x)
assert v.numpy().tolist() == [3.0, 6.0]
with hf.GradientTape() as tape:
    tape.watch(x)
    y = hf.sum(x * x)
assert tape.gradient(y, x).tolist() == [2.0, 4.0]
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr
