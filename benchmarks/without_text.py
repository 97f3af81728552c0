"""What a call of ``x + 1`` costs, by how its process came by the function: most of these ways leave no source text.

    python benchmarks/without_text.py [--json] [--limit MICROSECONDS] [--rounds N]

Each way is a fresh process that defines, or is sent, ``f = hf.function(lambda x: x + 1)`` and times batches of calls.
Figures are microseconds of the processor per call: the median of the rounds.  A way whose function is traced more than
once, or that is slower than the limit, is an error.  cloudpickle's ways are left out where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIMIT = 0.3

DEFINE = """
import hybridflow as hf
f = hf.function(lambda x: x + 1)
"""
TIME = """
import statistics, time
x = hf.asarray([1.0, 2.0, 3.0, 4.0])
assert f(x).tolist() == [2.0, 3.0, 4.0, 5.0]
samples = []
for _ in range({rounds}):
    begin = time.process_time()
    for _ in range(20_000):
        f(x)
    samples.append((time.process_time() - begin) / 20_000)
assert len(f.signatures()) == 1
print(statistics.median(samples) * 1e6)
"""
SEND = """
import sys, cloudpickle
import hybridflow as hf
f = {function}
sys.stdout.buffer.write(cloudpickle.dumps(f))
"""
RECEIVE = """
import pickle, sys
import hybridflow as hf
f = pickle.load(open(sys.argv[1], "rb"))
"""


def _python(*arguments: str, standard_input: str | None = None) -> bytes:
    """Standard output of a Python process."""
    environment = {**os.environ, "PYTHONPATH": ROOT, "HF_NUM_THREADS": "1", "HF_OPT": "2"}
    sent = None if standard_input is None else standard_input.encode()
    done = subprocess.run([sys.executable, *arguments], input=sent, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"a measuring process failed:\n{done.stderr.decode()}")
    return done.stdout


def _compiled(text: str, folder: Path) -> str:
    """The path of a file of byte code whose source is gone."""
    source, byte_code = folder / "program.py", folder / "program.pyc"
    source.write_text(text)
    _python("-c", f"import py_compile; py_compile.compile({str(source)!r}, {str(byte_code)!r})")
    source.unlink()
    return str(byte_code)


def _sent(function: str, folder: Path) -> str:
    path = folder / "sent"
    path.write_bytes(_python("-c", SEND.format(function=function)))
    return str(path)


def measure(rounds: int) -> dict[str, float]:
    """Microseconds of a call, by the way."""
    ends = TIME.format(rounds=rounds)
    text = DEFINE + ends
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "script.py"
        script.write_text(text)
        by_eval = f"import hybridflow as hf\nf = hf.function(eval('lambda x: x + 1'))\n{ends}"
        commands: dict[str, tuple[list[str], str | None]] = {
            "script": ([str(script)], None),
            "pipe": (["-"], text),
            "python -c": (["-c", text], None),
            "exec": (["-c", f"exec(open({str(script)!r}).read())"], None),
            "eval": (["-c", by_eval], None),
            "byte code alone": ([_compiled(text, folder)], None),
        }
        if importlib.util.find_spec("cloudpickle") is not None:
            sent = _sent("hf.function(lambda x: x + 1)", folder)
            commands["cloudpickle"] = (["-c", RECEIVE + ends, sent], None)
        for way, (arguments, standard_input) in commands.items():
            found[way] = float(_python(*arguments, standard_input=standard_input))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    found = measure(options.rounds)
    if options.json:
        print(json.dumps(found))
    else:
        for way, microseconds in found.items():
            print(f"{way:16} {microseconds:.3f} µs")
    return int(max(found.values()) > options.limit)


if __name__ == "__main__":
    sys.exit(main())
