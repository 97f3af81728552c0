"""The commands and their options."""

from __future__ import annotations

import argparse
import io
import sys
import textwrap
import traceback
from collections.abc import Sequence

import hybridflow
from hybridflow import flags
from hybridflow.cli import (
    bench,
    cache,
    compile as compile_command,
    doctor,
    function_commands,
    ir,
    onnx,
    run as run_script,
    serve,
    train,
)
from hybridflow.errors import ArgumentError, HybridflowError, is_internal, short_location

FAILED, WRONG_USE = 1, 2


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="hybridflow",
        description="A hybrid eager-plus-tracing tensor compiler.",
        epilog=_environment(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"hybridflow {hybridflow.__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (
        run_script,
        bench,
        function_commands,
        ir,
        onnx,
        compile_command,
        train,
        serve,
        doctor,
        cache,
    ):
        module.add_to(commands)
    return top


def _environment() -> str:
    """What the environment variables say, for ``--help``."""
    lines = ["environment variables:"]
    for flag in flags.ALL:
        first, *rest = textwrap.wrap(flag.doc, 60)
        lines += [f"  {flag.name:<15}  {first}", *(" " * 19 + line for line in rest)]
    return "\n".join(lines)


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code, and says on standard error what went wrong."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # encodings without a µ, or a letter of a file's name
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has printed help, or what is wrong
        return stop.code if isinstance(stop.code, int) else WRONG_USE
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print(f"[{options.command}] interrupted.", file=sys.stderr)
        return FAILED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        return FAILED
    except HybridflowError as error:
        _show_trace()
        print(_message(error), file=sys.stderr)
        # Wrong use is what the command itself found; errors of a program carry the program's file and line.
        return WRONG_USE if isinstance(error, ArgumentError) and not error.where else FAILED
    except Exception as error:
        _show_trace()
        print(f"[{options.command}] {type(error).__name__}: {error}{_location(error)}", file=sys.stderr)
        return FAILED


def _show_trace() -> None:
    if flags.TRACEBACK.value == "full":
        traceback.print_exc()


def _message(error: HybridflowError) -> str:
    """The message, without the line that started the command: a user's file is named where one was involved."""
    if error.where and _is_machinery(error.where.rpartition(":")[0]):
        return str(error).removesuffix(f"  ({short_location(error.where)})")
    return str(error)


def _location(error: Exception) -> str:
    """The innermost line of the user's that the error came through."""
    if isinstance(error, SyntaxError):  # says so itself
        return ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_machinery(f.filename)]
    return f"  ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _is_machinery(filename: str) -> bool:
    """Whether a file is hybridflow's, or of what runs it: the installed script, runpy, importlib, timeit."""
    return is_internal(filename) or filename.startswith(("<frozen", "<timeit")) or filename == sys.argv[0]
