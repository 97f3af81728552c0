"""What programs of TensorFlow 1 have around their graphs: flags, logging, ``tf.app.run``, files, settings."""

from __future__ import annotations

import argparse
import glob as _glob
import logging as _logging
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

_logger = _logging.getLogger("hybridflow.compat")


class GraphKeys:
    """Names of collections."""

    GLOBAL_VARIABLES, LOCAL_VARIABLES, TRAINABLE_VARIABLES = "variables", "local_variables", "trainable_variables"
    METRIC_VARIABLES, REGULARIZATION_LOSSES, LOSSES = "metric_variables", "regularization_losses", "losses"
    UPDATE_OPS, SUMMARIES, GLOBAL_STEP, QUEUE_RUNNERS = "update_ops", "summaries", "global_step", "queue_runners"
    MOVING_AVERAGE_VARIABLES, TRAIN_OP, WEIGHTS = "moving_average_variables", "train_op", "weights"
    INIT_OP, SAVERS, MODEL_VARIABLES, ACTIVATIONS = "init_op", "savers", "model_variables", "activations"


class Settings:
    """A configuration, such as ``tf.ConfigProto``: any fields, none of which changes what is computed."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = Settings()
        return made


ConfigProto = GPUOptions = RunOptions = OptimizerOptions = GraphOptions = RunMetadata = Settings


class _Flags:
    """``tf.flags.FLAGS``: values of what ``DEFINE_`` defined, from the command line."""

    def __init__(self) -> None:
        self.__dict__["_parser"] = argparse.ArgumentParser(allow_abbrev=False)
        self.__dict__["_values"] = None

    def _define(self, name: str, default: Any, help: str | None, kind: Callable[[str], Any]) -> None:
        self._parser.add_argument(f"--{name}", default=default, help=help, type=kind)
        self.__dict__["_values"] = None

    def _parse(self, argv: list[str]) -> list[str]:
        """Read the arguments that are flags; returns the others."""
        values, rest = self._parser.parse_known_args(argv)
        self.__dict__["_values"] = vars(values)
        return rest

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._values is None:
            self._parse(sys.argv[1:])
        if name not in self._values:
            raise AttributeError(f"there is no flag {name!r}; the flags are {', '.join(self._values) or 'none'}.")
        return self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)
        self._values[name] = value


FLAGS = _Flags()


def _is_true(text: Any) -> bool:
    if str(text).lower() not in ("true", "false", "1", "0", "t", "f", "yes", "no"):
        raise ValueError(f"{text!r} is neither true nor false")
    return str(text).lower() in ("true", "1", "t", "yes")


def _definer(kind: Callable[[str], Any]) -> Callable[..., None]:
    return lambda name, default, help=None: FLAGS._define(name, default, help, kind)


flag_names = {
    "FLAGS": FLAGS,
    "DEFINE_string": _definer(str),
    "DEFINE_integer": _definer(int),
    "DEFINE_float": _definer(float),
    "DEFINE_boolean": _definer(_is_true),
    "DEFINE_bool": _definer(_is_true),
}


def run(main: Callable[[list[str]], Any] | None = None, argv: list[str] | None = None) -> None:
    """``main(arguments that are no flags)``, then the end of the process with what it returns."""
    given = sys.argv if argv is None else argv
    rest = FLAGS._parse(given[1:])
    function = main or sys.modules["__main__"].main
    sys.exit(function([given[0], *rest]))


def _shown(level: int) -> Callable[..., None]:
    return lambda text, *values: _logger.log(level, text, *values)


log_names: dict[str, Any] = {
    "debug": _shown(10), "info": _shown(20), "warn": _shown(30), "warning": _shown(30), "error": _shown(40),
    "fatal": _shown(50), "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50,
    "set_verbosity": lambda level: _logger.setLevel(level), "get_verbosity": lambda: _logger.level,
}  # fmt: skip


def _made(path: str) -> None:
    os.makedirs(path, exist_ok=True)


file_names: dict[str, Any] = {
    "Exists": os.path.exists, "IsDirectory": os.path.isdir, "ListDirectory": os.listdir, "MakeDirs": _made,
    "MkDir": os.mkdir, "Remove": os.remove, "DeleteRecursively": shutil.rmtree, "Glob": _glob.glob,
    "Copy": shutil.copyfile, "Rename": os.rename, "GFile": open, "Open": open, "FastGFile": open, "Walk": os.walk,
    "exists": os.path.exists, "isdir": os.path.isdir, "listdir": os.listdir, "makedirs": _made, "glob": _glob.glob,
    "rmtree": shutil.rmtree, "remove": os.remove, "join": os.path.join,
}  # fmt: skip
