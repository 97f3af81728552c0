"""What C reads of a library: its header, the header that all libraries share, and programs that show how to call it."""

from __future__ import annotations

from collections.abc import Sequence

from hybridflow.aot.entries import C_TYPES, Array, Entry, described
from hybridflow.aot.glue_code import HOST_VERSION, PROBLEMS
from hybridflow.aot.weights import Layout
from hybridflow.compiler.loops.buffer_assignment import ALIGNMENT
from hybridflow.compiler.target import Target
from hybridflow.flags import RELEASE

_PROBLEM_NAMES = ("HF_NULL_POINTER", "HF_UNALIGNED", "HF_NO_PROGRAM", "HF_BAD_HOST", "HF_BAD_WEIGHTS", "HF_WRONG_CPU")

SHARED_HEADER = f"""/* hybridflow.h: what all libraries that hybridflow compiles share.  C99 and C++. */
#ifndef HYBRIDFLOW_H
#define HYBRIDFLOW_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define HF_ALIGNMENT {ALIGNMENT} /* bytes: of results, states, workspaces and weights */

/* Statuses.  0 is success; a number above it is a check of the program that failed, such as an index out of range.
   The library's own NAME_error(status) has the text. */
{chr(10).join(f"#define {name} ({status}) /* {PROBLEMS[status]} */" for name, status in zip(_PROBLEM_NAMES, PROBLEMS))}

/* A host runs parts of a call side by side.  Without one, NULL, a call does all of it in the thread that made it. */
#define HF_HOST_VERSION {HOST_VERSION}

typedef void (*hf_task)(void *args, int64_t begin, int64_t end, int64_t worker);

typedef struct hf_host {{
    uint32_t version; /* HF_HOST_VERSION */
    int32_t workers;  /* how many tasks run side by side at the most */
    /* Calls task(args, begin, end, worker) until the units from 0 to `units` are done: in pieces that begin at
       multiples of `grain`, in any order.  Calls that overlap in time have different numbers `worker`, which are less
       than `workers`.  Returns when all is done.  A piece of fewer than `least` units does not pay; where that is 0
       each unit is worth a piece.  `work` is about how much all of it is. */
    void (*parallel_for)(const struct hf_host *host, hf_task task, void *args, int64_t units, int64_t grain,
                         int64_t least, int64_t work);
    void *data; /* yours */
}} hf_host;

#ifdef __cplusplus
}}
#endif
#endif
"""

THREADS = r"""/* hybridflow_threads.c: a host over POSIX threads, as an example.  Threads begin and end with each
   task: who has many short tasks wants threads that wait for the next one.

       hf_host host;
       hf_threads_host(&host, 4);
*/
#include "hybridflow.h"

#include <pthread.h>

#define HF_MOST_WORKERS 64

typedef struct {
    hf_task task;
    void *args;
    int64_t begin, end, worker;
} piece;

static void *run_piece(void *given)
{
    const piece *p = (const piece *)given;
    p->task(p->args, p->begin, p->end, p->worker);
    return 0;
}

static void run_tasks(const hf_host *host, hf_task task, void *args, int64_t units, int64_t grain, int64_t least,
                      int64_t work)
{
    pthread_t threads[HF_MOST_WORKERS];
    piece pieces[HF_MOST_WORKERS];
    int started[HF_MOST_WORKERS];
    int64_t share = (units + host->workers - 1) / host->workers;
    int64_t begin = 0;
    int count = 0, k;
    (void)work;
    if (share < least)
        share = least;
    share = (share + grain - 1) / grain * grain;
    for (; begin < units; begin += share, count++) {
        piece p;
        p.task = task;
        p.args = args;
        p.begin = begin;
        p.end = begin + share < units ? begin + share : units;
        p.worker = count;
        pieces[count] = p;
    }
    for (k = 1; k < count; k++)
        started[k] = pthread_create(&threads[k], 0, run_piece, &pieces[k]) == 0;
    if (count > 0)
        run_piece(&pieces[0]);
    for (k = 1; k < count; k++) {
        if (started[k])
            pthread_join(threads[k], 0);
        else
            run_piece(&pieces[k]);
    }
}

void hf_threads_host(hf_host *host, int32_t workers)
{
    host->version = HF_HOST_VERSION;
    host->workers = workers < 1 ? 1 : workers > HF_MOST_WORKERS ? HF_MOST_WORKERS : workers;
    host->parallel_for = run_tasks;
    host->data = 0;
}
"""


def header(
    prefix: str, entries: Sequence[Entry], layout: Layout, targets: Sequence[Target], said: str, needs: Sequence[str]
) -> str:
    """The header of a library."""
    upper = prefix.upper()
    cpus = "; ".join(f"{target.cpu}{_switched_on(target.features)}" for target in targets)
    lines = [
        f"/* {prefix}.h: written by hybridflow {RELEASE} for {said}.",
        f"   Machine code: {targets[0].triple}, cpu {cpus}.",
        f"   It needs {', '.join(needs) or 'nothing'} of the C library.",
        "",
        "   Arrays are contiguous, and their last axis varies fastest.  Arguments lie at multiples of the size of an",
        f"   element; results, state, workspace and weights lie at multiples of {ALIGNMENT} bytes.  No two overlap.",
        f"   Functions return 0, or a status of which {prefix}_error has the text: then results hold no meaning, and",
        "   the state holds what it held.  Several threads may call at once, each with its own workspace, results and",
        "   state. */",
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        '#include "hybridflow.h"',
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"const char *{prefix}_error(int32_t status);",
    ]
    if layout.in_file:
        lines += [
            "",
            f"/* The content of {prefix}.weights, read or mapped, is what calls take as `weights`. */",
            f"#define {upper}_WEIGHTS_BYTES {len(layout.file)}",
        ]
    if layout.state:
        lines += ["", *_state(prefix, layout)]
    for entry in entries:
        lines += ["", *_declarations(prefix, entry, layout)]
    lines += ["", "#ifdef __cplusplus", "}", "#endif", "#endif", ""]
    return "\n".join(lines)


def _switched_on(features: str) -> str:
    """LLVM's names of the features that the code may use."""
    names = [name[1:] for name in features.split(",") if name.startswith("+")]
    return f" with {' '.join(names)}" if names else ""


def _state(prefix: str, layout: Layout) -> list[str]:
    lines = [
        f"/* What calls change: {prefix}_state_init writes what it was when the library was made. */",
        f"typedef struct {prefix}_state {{",
    ]
    for field, _ in layout.state.values():
        array = Array(field.name, field.dtype, field.shape)
        whole = max(field.size + -field.size % ALIGNMENT, ALIGNMENT)
        itemsize = _itemsize(field.dtype)
        lines.append(
            f"    {C_TYPES[field.dtype]} {field.name}[{whole // itemsize}]; /* {field.said}: {described(array)} */"
        )
    return [*lines, f"}} {prefix}_state;", "", f"void {prefix}_state_init({prefix}_state *state);"]


def _itemsize(dtype: str) -> int:
    return {"bool": 1, "bf16": 2}.get(dtype) or int(dtype[1:]) // 8


def _declarations(prefix: str, entry: Entry, layout: Layout) -> list[str]:
    name = f"{prefix}_{entry.name}"
    extents = [f"int64_t {extent}" for extent in entry.extents]
    lines = [f"/* {_one_line(entry.text)}"]
    lines += [f"   {array.name}: {described(array)}{_of_model(array)}" for array in (*entry.arguments, *entry.results)]
    if entry.left_out:
        lines.append(f"   Not among the results, as it is known: {', '.join(entry.left_out)}")
    lines[-1] += " */"
    lines.append(_call(f"int64_t {name}_workspace", [*extents, "const hf_host *host"], "bytes, or a status below 0"))
    if entry.extents:
        count = sum(len(result.shape) for result in entry.results)
        lines.append(_call(f"int32_t {name}_shapes", [*extents, "int64_t *shapes"], f"{count} extents of the results"))
    lines.append(_call(f"int32_t {name}", parameters(prefix, entry, layout)))
    return lines


def _one_line(text: str) -> str:
    return text.replace("*/", "* /").replace("\n", " ")


def _of_model(array: Array) -> str:
    """Its name in the model, as text that begins and ends no comment."""
    return f" ({array.model_name!a})".replace("*/", "* /").replace("/*", "/ *") if array.model_name else ""


def parameters(prefix: str, entry: Entry, layout: Layout) -> list[str]:
    """What a call takes."""
    assigns = any(id(variable) in layout.state for variable in entry.assigned)
    return [
        *(f"int64_t {extent}" for extent in entry.extents),
        *(f"const {array.c_type} *{array.name}" for array in entry.arguments),
        *([f"{'' if assigns else 'const '}{prefix}_state *state"] * layout.is_touched(entry)),
        *(f"{array.c_type} *{array.name}" for array in entry.results),
        *(["const void *weights"] * layout.in_file),
        "void *workspace",
        "const hf_host *host",
    ]


def _call(head: str, arguments: Sequence[str], note: str = "") -> str:
    return f"{head}({', '.join(arguments)});" + f" /* {note} */" * bool(note)


def example(prefix: str, entries: Sequence[Entry], layout: Layout) -> str:
    """A program that calls each function once, and prints the beginning of each result."""
    lines = [
        f"/* {prefix}_example.c: calls each function of the library once.",
        f"       cc {prefix}_example.c {prefix}.o -o {prefix}_example */",
        f'#include "{prefix}.h"',
        "",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "",
        "static void *blocks[BLOCKS];",
        "static int count;",
        "",
        "static void release(void)",
        "{",
        "    while (count > 0)",
        "        free(blocks[--count]);",
        "}",
        "",
        "static void *aligned(int64_t bytes)",
        "{",
        "    char *memory = (char *)calloc(1, (size_t)bytes + 2 * HF_ALIGNMENT);",
        "    if (memory == NULL)",
        "        exit(2);",
        "    blocks[count++] = memory;",
        "    return memory + HF_ALIGNMENT - (uintptr_t)memory % HF_ALIGNMENT;",
        "}",
        "",
        "int main(void)",
        "{",
        "    int32_t status;",
        "    int64_t k, bytes;",
        "    atexit(release);",
    ]
    if layout.in_file:
        lines += [
            f"    void *weights = aligned({prefix.upper()}_WEIGHTS_BYTES);",
            f'    FILE *file = fopen("{prefix}.weights", "rb");',
            f"    if (file == NULL || fread(weights, {prefix.upper()}_WEIGHTS_BYTES, 1, file) != 1)",
            "        return 2;",
            "    fclose(file);",
        ]
    if layout.state:
        lines += [
            f"    {prefix}_state *state = ({prefix}_state *)aligned((int64_t)sizeof({prefix}_state));",
            f"    {prefix}_state_init(state);",
        ]
    for entry in entries:
        lines += ["    {", *(f"        {line}" for line in _example_call(prefix, entry, layout)), "    }"]
    text = "\n".join([*lines, "    return 0;", "}", ""])
    return text.replace("[BLOCKS]", f"[{text.count('aligned(') - 1}]")


def _example_call(prefix: str, entry: Entry, layout: Layout) -> list[str]:
    name = f"{prefix}_{entry.name}"
    lines = [f"int64_t {extent} = 2;" for extent in entry.extents]
    leading = ", ".join([*entry.extents, ""])
    ranks = sum(len(result.shape) for result in entry.results)
    if entry.extents:
        lines += [f"int64_t shapes[{max(ranks, 1)}];", f"status = {name}_shapes({leading}shapes);", *_checked(prefix)]
    at = 0
    for array in entry.arguments:
        lines += _filled(array, " * ".join(map(str, ("1", *array.shape))))
    for array in entry.results:
        if entry.extents:
            count = " * ".join(["1", *(f"shapes[{at + k}]" for k in range(len(array.shape)))])
        else:
            count = " * ".join(map(str, ("1", *array.shape)))
        at += len(array.shape)
        lines += [f"int64_t count_{array.name} = {count};"]
        size = f"count_{array.name} * (int64_t)sizeof({array.c_type})"
        lines.append(f"{array.c_type} *{array.name} = ({array.c_type} *)aligned({size});")
    call = [*entry.extents, *(array.name for array in entry.arguments), *["state"] * layout.is_touched(entry)]
    call += [*(array.name for array in entry.results), *["weights"] * layout.in_file, "workspace", "NULL"]
    lines += [
        "void *workspace;",
        f"bytes = {name}_workspace({leading}NULL);",
        "if (bytes < 0) {",
        f"    puts({prefix}_error((int32_t)bytes));",
        "    return 1;",
        "}",
        "workspace = aligned(bytes);",
        f"status = {name}({', '.join(call)});",
        *_checked(prefix),
    ]
    for array in entry.results:
        lines += [
            f'printf("{entry.name} {array.name}:");',
            f"for (k = 0; k < count_{array.name} && k < 8; k++)",
            f'    printf(" %g", (double){array.name}[k]);',
            'printf("\\n");',
        ]
    return lines


def _checked(prefix: str) -> list[str]:
    return ["if (status != 0) {", f"    puts({prefix}_error(status));", "    return 1;", "}"]


def _filled(array: Array, count: str) -> list[str]:
    kind = array.c_type
    value = "(k % 7) * 0.25f" if array.dtype == "f32" else "(k % 7) * 0.25" if array.dtype == "f64" else "0"
    return [
        f"int64_t count_{array.name} = {count};",
        f"{kind} *{array.name} = ({kind} *)aligned(count_{array.name} * (int64_t)sizeof({kind}));",
        f"for (k = 0; k < count_{array.name}; k++)",
        f"    {array.name}[k] = {value};",
    ]
