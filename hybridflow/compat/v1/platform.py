"""What programs of TensorFlow 1 have around their graphs: flags, logging, ``tf.app.run``, files, settings."""

from __future__ import annotations

import argparse
import glob as _glob
import logging as _logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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

    def __init__(self, **fields: object) -> None:
        vars(self).update(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        result = self.__dict__[name] = Settings()
        return result


class OptimizerOptions(Settings):
    """Levels, none of which changes what is computed."""

    L0, L1, DEFAULT, OFF, ON_1, ON_2 = -1, 0, 0, -1, 1, 2


class RunOptions(Settings):
    """Levels of tracing."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = range(4)


ConfigProto = GPUOptions = GraphOptions = RunMetadata = Settings


class _Flags:
    """``tf.flags.FLAGS``: values of what ``DEFINE_`` defined, from the command line."""

    def __init__(self) -> None:
        self.__dict__["_parser"] = argparse.ArgumentParser(allow_abbrev=False)
        self.__dict__["_values"] = None

    def _define(self, name: str, default: object, help: str | None, kind: Callable[[str], Any], **more: object) -> None:
        if kind is _is_true:  # "--name" alone, and "--noname", are values
            more |= {"nargs": "?", "const": True}
            self._parser.add_argument(f"--no{name}", dest=name, action="store_false", default=argparse.SUPPRESS)
        self._parser.add_argument(f"--{name}", default=default, help=help, type=kind, **more)
        self.__dict__["_values"] = None

    def flag_values_dict(self) -> dict[str, Any]:
        """All flags with their values."""
        if self._values is None:
            self._parse(sys.argv[1:])
        return dict(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self.flag_values_dict()

    def __call__(self, argv: list[str], known_only: bool = False) -> list[str]:
        return [argv[0], *self._parse(list(argv[1:]))]

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

    def __setattr__(self, name: str, value: object) -> None:
        getattr(self, name)
        self._values[name] = value


FLAGS = _Flags()


def _is_true(text: object) -> bool:
    if str(text).lower() not in ("true", "false", "1", "0", "t", "f", "yes", "no"):
        raise ValueError(f"{text!r} is neither true nor false")
    return str(text).lower() in ("true", "1", "t", "yes")


def _definer(kind: Callable[[str], Any]) -> Callable[..., None]:
    return lambda name, default, help=None, **_: FLAGS._define(name, default, help, kind)


def _several(kind: Callable[[str], Any]) -> Callable[..., None]:
    """A flag that is given several times."""

    def define(name: str, default: object, help: str | None = None, **_: object) -> None:
        start = default if default is None or isinstance(default, (list, tuple)) else [default]
        FLAGS._define(name, start, help, kind, action=_Append)

    return define


class _Append(argparse.Action):
    """The first value that is given takes the place of the default."""

    def __call__(self, parser: object, namespace: object, values: object, option_string: str | None = None) -> None:
        held = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [values] if held is self.default else [*held, values])


def _list_flag(name: str, default: object, help: str | None = None, **_: object) -> None:
    start = _parts(default) if isinstance(default, str) else default
    FLAGS._define(name, start, help, _parts)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text else []


def _enum_flag(name: str, default: object, enum_values: list[str], help: str | None = None, **_: object) -> None:
    FLAGS._define(name, default, help, str, choices=list(enum_values))


flag_names = {
    "FLAGS": FLAGS,
    "DEFINE_string": _definer(str),
    "DEFINE_integer": _definer(int),
    "DEFINE_float": _definer(float),
    "DEFINE_boolean": _definer(_is_true),
    "DEFINE_bool": _definer(_is_true),
    "DEFINE_list": _list_flag,
    "DEFINE_enum": _enum_flag,
    "DEFINE_multi_string": _several(str),
    "DEFINE_multi_integer": _several(int),
    "DEFINE_multi_float": _several(float),
    "mark_flag_as_required": lambda name: None,
}


def run(main: Callable[[list[str]], Any] | None = None, argv: list[str] | None = None) -> None:
    """``main(arguments that are no flags)``, then the end of the process with what it returns."""
    arguments = sys.argv if argv is None else argv
    rest = FLAGS._parse(arguments[1:])
    function = main or sys.modules["__main__"].main
    sys.exit(function([arguments[0], *rest]))


class GFile:
    """``tf.gfile.GFile``: a file that is opened when it is first used, with ``size``."""

    def __init__(self, name: str | os.PathLike[str], mode: str = "r") -> None:
        self._name, self._mode = name, mode
        self._file: Any = None

    @property
    def name(self) -> Any:
        return self._name

    def _open(self) -> Any:
        if self._file is None:
            self._file = open(  # noqa: SIM115  # closed by close()
                self._name, self._mode, encoding=None if "b" in self._mode else "utf-8"
            )
        return self._file

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._open(), name)

    def size(self) -> int:
        """Bytes of it."""
        return os.path.getsize(self._name)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._open())

    def __enter__(self) -> GFile:
        self._open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Stat(NamedTuple):
    """What ``tf.gfile.Stat`` tells of a file."""

    length: int
    mtime_nsec: int
    is_directory: bool


def _stat(filename: str | os.PathLike[str]) -> _Stat:
    status = os.stat(filename)
    return _Stat(status.st_size, status.st_mtime_ns, os.path.isdir(filename))


def _copied(oldpath: str | os.PathLike[str], newpath: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Raises FileExistsError where there is such a file, unless it is to be overwritten."""
    if os.path.exists(newpath) and not overwrite:
        raise FileExistsError(f"file already exists: {newpath}")
    shutil.copyfile(oldpath, newpath)


def _renamed(oldname: str | os.PathLike[str], newname: str | os.PathLike[str], overwrite: bool = False) -> None:
    """The same, without the old one."""
    if os.path.exists(newname) and not overwrite:
        raise FileExistsError(f"file already exists: {newname}")
    os.replace(oldname, newname)


def _logger_at(level: int) -> Callable[..., None]:
    return lambda text, *values: _logger.log(level, text, *values)


_told: dict[str, int] = {}


def _every(level: int, text: str, n: int, *values: object, most: int | None = None) -> None:
    """Log each nth time that the same text is to be logged, or the first so many times."""
    count = _told[text] = _told.get(text, -1) + 1
    if count < most if most is not None else count % n == 0:
        _logger.log(level, text, *values)


log_names: dict[str, Any] = {
    "debug": _logger_at(10), "info": _logger_at(20), "warn": _logger_at(30), "warning": _logger_at(30),
    "error": _logger_at(40), "fatal": _logger_at(50), "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50,
    "set_verbosity": lambda level: _logger.setLevel(level), "get_verbosity": lambda: _logger.level,
    "log": lambda level, text, *values: _logger.log(level, text, *values),
    "log_every_n": lambda level, text, n, *values: _every(level, text, n, *values),
    "log_first_n": lambda level, text, n, *values: _every(level, text, 0, *values, most=n),
}  # fmt: skip


def _make_folders(path: str) -> None:
    os.makedirs(path, exist_ok=True)


file_names: dict[str, Any] = {
    "Exists": os.path.exists, "IsDirectory": os.path.isdir, "ListDirectory": os.listdir, "MakeDirs": _make_folders,
    "MkDir": os.mkdir, "Remove": os.remove, "DeleteRecursively": shutil.rmtree, "Glob": _glob.glob,
    "Copy": _copied, "Rename": _renamed, "GFile": GFile, "Open": GFile, "FastGFile": GFile, "Walk": os.walk,
    "Stat": _stat, "copy": _copied, "rename": _renamed, "stat": _stat, "walk": os.walk,
    "exists": os.path.exists, "isdir": os.path.isdir, "listdir": os.listdir, "makedirs": _make_folders,
    "glob": _glob.glob, "rmtree": shutil.rmtree, "remove": os.remove, "join": os.path.join,
}  # fmt: skip
