"""``hybridflow train | eval | predict``: models that a TOML file describes, without a program."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from typing import Any, BinaryIO

import numpy as np

from hybridflow.cli import output
from hybridflow.errors import ArgumentError


def add_to(commands: Any) -> None:
    train = commands.add_parser(
        "train",
        help="train a model that a file describes",
        description="Train a model that a TOML file describes. No code of the file is run.",
    )
    train.add_argument("config", metavar="CONFIG.toml", nargs="?", help="data, model, training and output")
    train.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="PLACE=VALUE",
        help="a value in the place of the file's: training.epochs=30, model.layers.1.Dropout.rate=0.3",
    )
    train.add_argument(
        "--resume", choices=("auto", "never"), help="go on with the run of the folder, or begin it anew and remove that"
    )
    train.add_argument("--dry-run", action="store_true", help="all but the training: data, model, one batch")
    train.add_argument("--schema", action="store_true", help="print the JSON Schema of the files, for editors")
    train.add_argument("--quiet", action="store_true", help="show no progress")
    train.add_argument("--json", action="store_true", help="machine-readable output")
    train.set_defaults(run=_train)
    evaluate = commands.add_parser(
        "eval", help="loss and metrics of a trained run", description="Loss and metrics of what train has trained."
    )
    evaluate.add_argument("folder", metavar="RUN", help="the folder of a run")
    evaluate.add_argument("data", metavar="DATA", nargs="?", help="a file or folder like that of the training")
    evaluate.add_argument("--json", action="store_true", help="machine-readable output")
    evaluate.set_defaults(run=_evaluate)
    predict = commands.add_parser(
        "predict", help="predictions of a trained run", description="What a model of train predicts."
    )
    predict.add_argument("folder", metavar="RUN", help="the folder of a run")
    predict.add_argument("data", metavar="DATA", help="a file or folder like that of the training; it needs no labels")
    predict.add_argument("-o", "--output", metavar="FILE", required=True, help="a .npz, .npy or .csv file")
    predict.add_argument("--json", action="store_true", help="machine-readable output")
    predict.set_defaults(run=_predict)


def _train(options: argparse.Namespace) -> int:
    from hybridflow.cli.training import config, runs

    if options.schema:
        output.print_json(runs.schema())
        return 0
    if options.config is None:
        raise ArgumentError("train", "give a file, such as config.toml, or --schema.", "")
    run = runs.Run(config.load(options.config, options.settings, "train"))
    if options.dry_run:
        return _dry_run(run, options.json)
    _, history, signal = run.train(options.resume, 0 if options.quiet or options.json else "auto")
    if signal:
        again = f"hybridflow train {options.config} --resume auto"
        print(f"[train] interrupted: {run.folder} holds whole epochs; go on by {again}", file=sys.stderr)
        return 128 + signal
    last = {name: values[-1] for name, values in history.history.items()}
    if options.json:
        output.print_json({"folder": run.folder, "epochs": len(history.epoch), "logs": last})
    else:
        print(f"{run.folder}: {', '.join(sorted(os.listdir(run.folder)))}")
    return 0


def _dry_run(run: Any, as_json: bool) -> int:
    from hybridflow.cli.training.runs import rows_of

    model, table, validation = run.try_out()
    counts = {"training": rows_of(table.y), "validation": 0 if validation is None else rows_of(validation.y)}
    if as_json:
        output.print_json({"rows": counts, "parameters": model.count_params(), "folder": run.folder})
    else:
        model.summary()
        print(f"{counts['training']} rows to learn, {counts['validation']} to validate on; nothing was written")
    return 0


def _finished(folder: str, command: str) -> Any:
    from hybridflow.cli.training import config, runs

    path = os.path.join(folder, runs.CONFIG)
    if not os.path.exists(path):
        raise ArgumentError(command, f"{folder} is no folder of a run: there is no {runs.CONFIG}.", "")
    return runs.Run(config.load(path, [], command), os.path.abspath(folder))


def _evaluate(options: argparse.Namespace) -> int:
    run = _finished(options.folder, "eval")
    if options.data is not None:
        table = run.data.read(os.path.abspath(options.data))
    elif run.data.test is not None:
        table = run.data.read(run.config.absolute(run.data.test), "test")
    else:
        learned, validation = run.data.split(run.seed)
        table = learned if validation is None else validation
    if table.y is None:
        raise ArgumentError("eval", f"{options.data} has no labels.", "")
    logs = run.trained(table).evaluate(table.x, table.y, verbose=0, return_dict=True)
    metrics = {name: float(value) for name, value in logs.items()}
    if options.json:
        output.print_json(metrics)
    else:
        print(output.table(("metric", "value"), [(name, f"{value:.6g}") for name, value in metrics.items()]))
    return 0


def _predict(options: argparse.Namespace) -> int:
    if not options.output.endswith((".npz", ".npy", ".csv")):
        raise ArgumentError("predict", f"--output {options.output} is of no kind; end it in .npz, .npy or .csv.", "")
    run = _finished(options.folder, "predict")
    table = run.data.read(os.path.abspath(options.data))
    values = run.trained(table).predict(table.x, verbose=0)
    arrays = _by_name(values)
    temporary = f"{options.output}.new"
    with open(temporary, "wb") as file:
        _write(file, options.output, arrays)
    os.replace(temporary, options.output)
    shapes = {name: list(array.shape) for name, array in arrays.items()}
    if options.json:
        output.print_json({"path": options.output, "shapes": shapes})
    else:
        print(f"{options.output}: {', '.join(f'{name} {shape}' for name, shape in shapes.items())}")
    return 0


def _by_name(values: object) -> dict[str, np.ndarray]:
    if isinstance(values, dict):
        return {str(name): np.asarray(part) for name, part in values.items()}
    if isinstance(values, (list, tuple)):
        return {f"output_{place}": np.asarray(part) for place, part in enumerate(values)}
    return {"output": np.asarray(values)}


def _write(file: Any, path: str, arrays: dict[str, np.ndarray]) -> None:
    if path.endswith(".npz"):
        np.savez(file, **arrays)  # type: ignore[arg-type]
        return
    if len(arrays) > 1:
        raise ArgumentError("predict", f"the model has several outputs, {', '.join(arrays)}: write a .npz.", "")
    (array,) = arrays.values()
    if path.endswith(".npy"):
        np.save(file, array)
        return
    flat = array.reshape(len(array), -1)
    lines = csv.writer(text := _Text(file))
    lines.writerow([f"output_{place}" for place in range(flat.shape[1])])
    lines.writerows(flat.tolist())
    del text


class _Text:
    """What is written as text goes into a file of bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return int(self._file.write(text.encode()))
