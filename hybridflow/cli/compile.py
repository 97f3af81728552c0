"""``hybridflow compile MODEL -o FOLDER``: machine code that C calls, of a saved file or a function."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from typing import Any

from hybridflow.aot import library
from hybridflow.cli import output, target
from hybridflow.errors import ArgumentError
from hybridflow.serving import endpoint


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "compile",
        help="machine code that C calls",
        description="An object file and a C header of a saved, ONNX or Keras model, or FILE::function with --shapes.",
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("-o", "--output", metavar="FOLDER", default=".", help="where the files go (default: here)")
    parser.add_argument("--name", help="the prefix of functions in C (default: the file's name)")
    targets = ("native", *(name for name in library.TARGETS if name != "x86-64"))
    parser.add_argument(
        "--target", action="append", choices=targets, help="the machine (default: this one); several for x86-64"
    )
    parser.add_argument("--weights", default="embedded", choices=library.WEIGHTS, help="where (default: embedded)")
    parser.add_argument("--format", action="append", choices=library.FORMATS, help="may be given several times")
    parser.add_argument("--shapes", metavar="SHAPES", help=target.SHAPES_HELP)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    path, _, function = options.model.partition("::")
    if not os.path.isfile(path):
        raise ArgumentError("compile", f"there is no file {path}.", "")
    stem = os.path.splitext(os.path.basename(path))[0]
    name = options.name or re.sub(r"\W+", "_", function or stem, flags=re.ASCII).strip("_")
    signature = None
    model: Any = path
    if function or path.endswith(".py"):
        model = target.load(options.model, "compile")
        if options.shapes is not None:
            signature = target.specs(model, options.shapes, "compile")
    elif path.endswith(".onnx"):  # whose inputs and outputs have names
        from hybridflow import onnx

        model = onnx.load(path)
    formats = options.format or ["object"]
    with endpoint.saved_form(path) if model is path else contextlib.nullcontext(model) as source:
        compiled = library.compile(
            source, os.path.join(options.output, name), options.target or "native", signature, options.weights, formats
        )
    if options.json:
        output.print_json({"functions": compiled.functions, "files": compiled.files, "needs": list(compiled.needs)})
        return 0
    for symbol, text in compiled.functions.items():
        print(f"{symbol:<24}  {text}")
    for what, file in compiled.files.items():
        print(f"{what:<10}{os.path.getsize(file):>12,} bytes  {file}")
    return 0
