"""Libraries of ``hf.aot.compile`` called from C: a program is written, compiled by ``cc`` and run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybridflow.aot.library import Library

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler here")
FLAGS = ("-Wall", "-Wextra", "-Werror", "-std=c99")

_HEAD = """
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void hf_threads_host(hf_host *host, int32_t workers);
static void *aligned(int64_t bytes)
{{
    char *memory = (char *)malloc((size_t)bytes + 128);
    memory += 64 - (uintptr_t)memory % 64;
    memset(memory, 0xA5, (size_t)bytes);
    return memory;
}}
static void *input(const char *path, int64_t bytes)
{{
    void *memory = aligned(bytes);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fread(memory, 1, (size_t)bytes, file) != (size_t)bytes)
        exit(3);
    fclose(file);
    return memory;
}}
int main(void)
{{
    int64_t size;
    int32_t status, k;
    void *workspace;
    hf_host threads, *host = NULL;
    (void)threads;
"""


def built(folder: Path, source: str, library: Library, flags: Sequence[str] = ()) -> Path:
    """A program that is linked with the library, and the example of a host."""
    assert COMPILER is not None
    (folder / "main.c").write_text(source)
    files = ["main.c", os.path.basename(library.files["object"]), "-x", "c", "-std=gnu99", "hybridflow_threads.c"]
    command = [COMPILER, *FLAGS, *flags, "-o", "main", *files, "-lpthread"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "main"


def called(
    folder: Path,
    library: Library,
    function: str,
    extents: Sequence[int],
    arrays: Sequence[np.ndarray],
    results: Sequence[np.ndarray],
    state: bool = False,
    workers: int = 1,
    times: int = 1,
    flags: Sequence[str] = (),
) -> tuple[int, list[np.ndarray]]:
    """The status of a function of the library, called ``times`` times, and its last results, which are like
    ``results`` in shape and dtype."""
    lines = [_HEAD.format(name=library.name)]
    if workers > 1:
        lines.append(f"    hf_threads_host(&threads, {workers}); host = &threads;")
    given = [str(extent) for extent in extents]
    for k, array in enumerate(arrays):
        array = np.asarray(array)
        (folder / f"in{k}.bin").write_bytes(array.tobytes())
        lines.append(f'    void *a{k} = input("in{k}.bin", {array.nbytes});')
    for k, array in enumerate(results):
        lines.append(f"    void *y{k} = aligned({np.asarray(array).nbytes});")
    if state:
        lines.append(f"    {library.name}_state *state = ({library.name}_state *)aligned(sizeof(*state));")
        lines.append(f"    {library.name}_state_init(state);")
    arguments = [*given, *(f"a{k}" for k in range(len(arrays))), *["state"] * state]
    arguments += [f"y{k}" for k in range(len(results))]
    if "weights" in library.files:
        size = os.path.getsize(library.files["weights"])
        lines.append(f'    void *weights = input("{library.name}.weights", {size});')
        arguments.append("weights")
    lines += [
        f"    size = {function}_workspace({', '.join([*given, 'host'])});",
        "    workspace = aligned(size < 0 ? 0 : size);",
        f"    for (k = 0; k < {times}; k++) {{",
        f"        status = {function}({', '.join([*arguments, 'workspace', 'host'])});",
        "        if (status != 0) {",
        f'            printf("%d %s\\n", (int)status, {library.name}_error(status));',
        "            return 0;",
        "        }",
        "    }",
    ]
    for k, array in enumerate(results):
        size = np.asarray(array).nbytes
        lines.append(f'    {{ FILE *f = fopen("out{k}.bin", "wb"); fwrite(y{k}, 1, {size}, f); fclose(f); }}')
    lines += ['    printf("0\\n");', "    return 0;", "}"]
    program = built(folder, "\n".join(lines), library, flags)
    done = subprocess.run([str(program)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
    status = int(done.stdout.split()[0])
    found: list[Any] = []
    if status == 0:
        for k, array in enumerate(map(np.asarray, results)):
            content = (folder / f"out{k}.bin").read_bytes()
            found.append(np.frombuffer(content, array.dtype).reshape(array.shape))
    return status, found


def same_bits(found: Sequence[np.ndarray], wanted: Sequence[Any]) -> bool:
    """Whether arrays have the same bits."""
    pairs = zip(found, map(np.asarray, wanted), strict=True)
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
