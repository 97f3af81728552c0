"""Libraries that C calls: ``hf.aot.compile``; object files as far as that needs it, and archives of them."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybridflow.aot import c_text, cpu_level
from hybridflow.aot.entries import Entry, Ports, entries_of
from hybridflow.aot.glue_code import Glue, program_symbol
from hybridflow.aot.weights import Layout
from hybridflow.compiler import target as targets
from hybridflow.compiler.target import Target
from hybridflow.errors import ArgumentError, CompileError
from hybridflow.runtime.machine import host_target, machine_code
from hybridflow.saved.loading import Loaded, load
from hybridflow.saved.saved_function import SavedFunction
from hybridflow.saved.saving import save

TARGETS = {
    "x86-64-v3": targets.AVX2,
    "x86-64-v4": targets.AVX512,
    "aarch64": targets.AARCH64,
    "x86-64": targets.SSE2,
}
FORMATS = ("object", "archive", "shared")
WEIGHTS = ("embedded", "file")
_LIBC = {"memcpy", "memmove", "memset", "malloc", "free"}  # what programs may need
_OF_MATH = re.compile(r"fmaf?|roundeven(f|l)?|ldexpf?|__.*")


@dataclass(frozen=True)
class Library:
    """What ``hf.aot.compile`` wrote.

    Args:
        name: the prefix of all its functions.
        target: what machine it is for.
        files: the paths of its files, by what they are.
        functions: the functions in C, with the signatures in Python that they stand for.
        needs: the functions of the C library that it calls.

    Example:
        >>> import tempfile
        >>> double = hf.function(lambda x: 2 * x, input_signature=[hf.TensorSpec([None])])
        >>> hf.aot.compile(double, tempfile.mkdtemp() + "/double", target="x86-64-v3")
        Library(name='double', target='x86-64-v3', functions={'double_run': 'serving_default(x: f32[x_0])'}, needs=())
    """

    name: str
    target: str
    files: dict[str, str] = field(repr=False)
    functions: dict[str, str]
    needs: tuple[str, ...]


def compile(
    model: object,
    path: str | os.PathLike[str],
    target: str | Sequence[str] = "native",
    input_signature: Sequence[Any] | None = None,
    weights: str = "embedded",
    formats: str | Sequence[str] = "object",
    allow_slow: bool = False,
) -> Library:
    """Compile functions to machine code that C calls, without Python: an object file and a header.

    The code has the bits that it has in Python.  It is the code of the same programs: one for each open extent, and
    those for extents of 0 and 1.  Variables that a function assigns, those of optimizers too, are a ``state`` that the
    caller has; the values that they hold now are its first ones.  All other values are in the library.

    Args:
        model: a function, a model or module, the path of a file of ``hf.saved.save``, or a dict of several by names.
        path: where the files go, without an ending; its last part is the prefix of the functions in C.
        target: "native", "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512) or "aarch64"; Linux, as ELF. Of several for
            x86-64 calls take the best that the processor has.
        input_signature: a TensorSpec for each parameter, where ``model`` does not say what its arguments are.
        weights: "embedded" in the object file, or a "file" beside it that the caller maps, for large ones.
        formats: one or several of "object", "archive" and "shared"; the last takes a C compiler.
        allow_slow: whether to compile for "x86-64" without AVX2, where each multiplication that is added is a call.

    Returns:
        A Library: its functions and files.

    Raises:
        ArgumentError: for options that there are not, functions that call Python or return what C has no type for.
        ArgumentTypeError: for what cannot be saved in a file.
        CompileError: where LLVM has no code for the target, or a shared library cannot be linked.

    Example:
        >>> import os, tempfile
        >>> model = hf.Sequential([hf.Input((4,)), hf.layers.Dense(2)])
        >>> folder = tempfile.mkdtemp()
        >>> hf.aot.compile(model, os.path.join(folder, "line"), target="x86-64-v3").functions
        {'line_run': 'serving_default(inputs: f32[batch,4])'}
        >>> sorted(os.listdir(folder))
        ['hybridflow.h', 'hybridflow_threads.c', 'line.h', 'line.o', 'line_example.c']
    """
    names = (target,) if isinstance(target, str) else tuple(target)
    machines = _machines(names, allow_slow)
    wanted = (formats,) if isinstance(formats, str) else tuple(formats)
    for value, known, what in ((weights, WEIGHTS, "weights"), *((one, FORMATS, "formats") for one in wanted)):
        if value not in known:
            raise ArgumentError("aot", f"{what} is {value!r}; there are {', '.join(map(repr, known))}.")
    folder, prefix = os.path.split(os.fspath(path))
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", prefix):
        raise ArgumentError("aot", f"{prefix!r} is no name in C: end the path in letters, digits and _.")
    functions, ports = _functions(model, input_signature), _ports(model)
    variants = [entries_of(functions, machine, prefix, number, ports) for number, machine in enumerate(machines)]
    entries, said = variants[0], ", ".join(names)
    layout = Layout([entry for variant_entries in variants for entry in variant_entries], prefix, weights == "file")
    content, public = _object(variants, layout, machines, prefix)
    needs = undefined_symbols(content)
    odd = [name for name in needs if name not in _LIBC and not (allow_slow and _OF_MATH.fullmatch(name))]
    if odd:
        raise CompileError("aot", f"{said} has no instructions for what {', '.join(odd)} does.")
    os.makedirs(folder or ".", exist_ok=True)
    files = {"object": f"{prefix}.o", "header": f"{prefix}.h", "example": f"{prefix}_example.c"}
    written: dict[str, bytes] = {
        files["object"]: content,
        files["header"]: c_text.header(prefix, entries, layout, machines, said, needs).encode(),
        files["example"]: c_text.example(prefix, entries, layout).encode(),
        "hybridflow.h": c_text.SHARED_HEADER.encode(),
        "hybridflow_threads.c": c_text.THREADS.encode(),
    }
    if layout.in_file:
        files["weights"] = f"{prefix}.weights"
        written[files["weights"]] = layout.file
    if "archive" in wanted:
        files["archive"] = f"lib{prefix}.a"
        written[files["archive"]] = archive(files["object"], content, public)
    for name, data in written.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    if "shared" in wanted:
        files["shared"] = f"lib{prefix}.so"
        _link(os.path.join(folder, files["object"]), os.path.join(folder, files["shared"]), machines[0])
    return Library(
        prefix,
        said,
        {what: os.path.join(folder, name) for what, name in files.items()},
        {f"{prefix}_{entry.name}": entry.text for entry in entries},
        tuple(needs),
    )


def _machines(names: Sequence[str], allow_slow: bool) -> list[Target]:
    """The targets of these names, those with fewer instructions first."""
    result = []
    for name in names:
        if name != "native" and name not in TARGETS:
            raise ArgumentError("aot", f"target is {name!r}; there are 'native', {', '.join(map(repr, TARGETS))}.")
        if name == "x86-64" and not allow_slow:
            raise ArgumentError(
                "aot",
                "x86-64 has no fused multiplication: programs are a hundred times slower. Compile for 'x86-64-v3', "
                "which every server since 2015 has, or give allow_slow=True.",
            )
        result.append(host_target.target() if name == "native" else TARGETS[name])
    result.sort(key=cpu_level.needed)
    levels = [cpu_level.needed(one) for one in result]
    if len({one.triple for one in result}) != 1 or len(set(levels)) < len(levels):
        raise ArgumentError(
            "aot", f"target is {tuple(names)!r}; give one, or several for x86-64 of which each has more than the other."
        )
    return result


def _functions(model: object, input_signature: Sequence[Any] | None) -> dict[str, SavedFunction]:
    """The functions of a model as a file would have them."""
    if isinstance(model, Loaded) and input_signature is None:
        return model.functions
    if isinstance(model, SavedFunction) and input_signature is None:
        return {"run": model}
    if isinstance(model, (str, os.PathLike)):
        return load(model).functions
    if isinstance(model, Mapping):
        result = {}
        for name, one in model.items():
            by_shape = _functions(one, input_signature)
            result.update({str(name) if len(by_shape) == 1 else f"{name}_{k}": f for k, f in by_shape.items()})
        return result
    with tempfile.TemporaryDirectory() as folder:
        return load(save(model, os.path.join(folder, "model.hf"), input_signature=input_signature)).functions


def _ports(model: object) -> Ports | None:
    """The names of a model's inputs and outputs, where it has some: one of an ONNX file."""
    names = [getattr(model, of, None) for of in ("input_names", "output_names")]
    if not all(isinstance(of, tuple) and all(isinstance(name, str) for name in of) for of in names):
        return None
    return Ports(*(tuple(of or ()) for of in names))


def _object(
    variants: Sequence[Sequence[Entry]], layout: Layout, machines: Sequence[Target], prefix: str
) -> tuple[bytes, list[str]]:
    """The object file, and the names in it that are for others."""
    glue = Glue(machines, prefix, layout)
    for one in zip(*variants, strict=True):
        glue.add(one)
    glue.finish()
    texts = [glue.text()]
    for entries, machine in zip(variants, machines):
        for choice in [choice for entry in entries for choice in entry.choices]:
            program = choice.program
            text = program.text + program.sharing
            text = text.replace("attributes #0 = {", f"attributes #0 = {{{cpu_level.attributes(machine)}", 1)
            texts.append(re.sub(rf"@{program.entry}\b", f"@{program_symbol(choice, program.entry)}", text))
    return machine_code.compile_library(texts, machines[0], glue.public), glue.public


def _link(source: str, result: str, machine: Target) -> None:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or machine.triple.partition("-")[0] != host_target.detect().triple.partition("-")[0]:
        raise CompileError(
            "aot", f"there is no C compiler here to link a shared library for {machine.triple}. Link {source} yourself."
        )
    done = subprocess.run([compiler, "-shared", "-o", result, source], capture_output=True, text=True)
    if done.returncode:
        raise CompileError("aot", f"{compiler} does not link {source}: {done.stderr.strip()}")


_SYMTAB = 2  # the type of a section with symbols
_UNDEFINED = 0  # the section of a symbol that others define


def undefined_symbols(content: bytes) -> list[str]:
    """The names that a 64-bit ELF object file leaves to the linker."""
    if content[:6] != b"\x7fELF\x02\x01":
        raise CompileError("aot", "the object file is none of 64-bit ELF.")
    table, size, count = struct.unpack_from("<Q", content, 40)[0], *struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, table + k * size) for k in range(count)]
    symbols = []
    for _, kind, _, _, offset, length, link, _, _, entry in sections:
        if kind != _SYMTAB:
            continue
        texts = sections[link][4]
        for at in range(offset + entry, offset + length, entry):
            name, _, _, section = struct.unpack_from("<IBBH", content, at)
            if section == _UNDEFINED:
                end = content.index(b"\0", texts + name)
                symbols.append(content[texts + name : end].decode())
    return sorted(filter(None, symbols))


def archive(name: str, content: bytes, symbols: list[str]) -> bytes:
    """A static library (``ar``) of one object file, with the index of symbols that linkers look for.  It says no time
    and no user, so that it is the same each time."""
    names = b"".join(symbol.encode() + b"\0" for symbol in symbols)
    index_size = 4 + 4 * len(symbols) + len(names)
    index_padded = index_size + index_size % 2
    member = f"{name}/"
    long_names = b"" if len(member) <= 16 else f"{name}/\n".encode()
    place = 8 + 60 + index_padded + (60 + len(long_names) + len(long_names) % 2 if long_names else 0)
    index = struct.pack(">I", len(symbols)) + struct.pack(">I", place) * len(symbols) + names
    parts = [b"!<arch>\n", _member("/", index)]
    if long_names:
        parts.append(_member("//", long_names))
    parts.append(_member("/0" if long_names else member, content))
    return b"".join(parts)


def _member(name: str, content: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(content):<10}`\n".encode()
    return head + content + b"\n" * (len(content) % 2)
