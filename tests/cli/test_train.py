"""Training that a TOML file describes: what it makes, what it refuses and where, and how it goes on."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.cli import commands
from hybridflow.cli.training import config, datasets, runs, signatures
from hybridflow.cli.training.toml_lines import lines_of
from hybridflow.errors import ArgumentError
from tests.support.bits import same_bits
from tests.support.paths import ROOT

pytestmark = pytest.mark.code

FILE = """
seed = 3

[data]
kind = "npz"
path = "some.npz"
validation = 0.25

[model]
layers = [
    {Dense = {units = 4, activation = "relu"}},
    {Dropout = {rate = 0.5}},
    {Dense = {units = 2}},
]

[training]
epochs = 3
batch_size = 8
optimizer = {Adam = {learning_rate = 0.02}}
loss = {SparseCategoricalCrossentropy = {from_logits = true}}
metrics = ["accuracy"]

[output]
folder = "run"
export = []
report = false
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 3))
    np.savez(tmp_path / "some.npz", x=x, y=(x[:, 0] > 0).astype(np.int8))
    (tmp_path / "some.toml").write_text(FILE, encoding="utf-8")
    return tmp_path


def run_of(folder: Path, *settings: str, text: str | None = None) -> runs.Run:
    if text is not None:
        (folder / "some.toml").write_text(text, encoding="utf-8")
    return runs.Run(config.load(str(folder / "some.toml"), settings, "train"))


def weights(folder: Path) -> dict[str, np.ndarray]:
    return dict(hf.weights.read(str(folder / "run" / runs.WEIGHTS)))


def test_a_file_is_trained_evaluated_and_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = FILE.replace("export = []", 'export = ["hf"]').replace("report = false", "report = true")
    (folder / "some.toml").write_text(text, encoding="utf-8")
    assert commands.run(["train", str(folder / "some.toml"), "--json", "--set", "training.epochs=2"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["epochs"] == 2 and set(told["logs"]) == {"loss", "accuracy", "val_loss", "val_accuracy"}
    assert {"model.hf", "report.html", runs.LOG, runs.CONFIG} <= {*os.listdir(folder / "run")}
    assert commands.run(["eval", str(folder / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["loss"] == pytest.approx(told["logs"]["val_loss"], rel=1e-5)
    out = str(folder / "out.npz")
    assert commands.run(["predict", str(folder / "run"), str(folder / "some.npz"), "-o", out]) == 0
    x = np.load(folder / "some.npz")["x"].astype(np.float32)
    expected = hf.saved.load(str(folder / "run/model.hf"))(hf.asarray(x)).numpy()
    np.testing.assert_allclose(np.load(out)["output"], expected, rtol=1e-5, atol=1e-6)


def test_weights_of_the_last_epochs_are_kept_and_a_library_for_c_is_made(folder: Path) -> None:
    text = FILE.replace("export = []", 'export = ["c"]\nkeep = 2').replace("rate = 0.5", "rate = 0.0")
    run_of(folder, text=text).train(None, 0)
    assert sorted(os.listdir(folder / "run/epochs")) == ["0002.safetensors", "0003.safetensors"]
    last = hf.weights.read(str(folder / "run/epochs/0003.safetensors"))
    for name, value in weights(folder).items():
        np.testing.assert_array_equal(last[name], value)
    assert {"model.o", "model.h"} <= {*os.listdir(folder / "run/model.c")}
    run_of(folder, "training.epochs=1", "output.export=[]").train("never", 0)
    assert os.listdir(folder / "run/epochs") == ["0001.safetensors"]
    with pytest.raises(ArgumentError, match="-1 is no number of epochs"):
        run_of(folder, "output.keep=-1")


def test_a_run_is_not_overwritten_unasked(folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "run" / runs.WEIGHTS).write_bytes(b"dear")
    with pytest.raises(ArgumentError, match="has a run: --resume auto"):
        run_of(folder).train(None, 0)
    assert (folder / "run" / runs.WEIGHTS).read_bytes() == b"dear"


class Killed(BaseException):
    """As a signal that nothing catches."""


CALLBACKS = """
callbacks = [
    {EarlyStopping = {monitor = "loss", patience = 5, restore_best_weights = true}},
    {ReduceLROnPlateau = {monitor = "loss", patience = 1, min_delta = 10.0, factor = 0.5}},
]
"""


@pytest.mark.parametrize("step", [2, 7])
def test_a_killed_run_goes_on_to_the_same_bits(folder: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    text = FILE.replace('metrics = ["accuracy"]', CALLBACKS)
    _, history, _ = run_of(folder, text=text).train("never", 0)
    expected, log = weights(folder), (folder / "run" / runs.LOG).read_text()
    count = 0

    def counted(self: Any, batch: int, logs: Any = None) -> None:
        nonlocal count
        count += 1
        if count == step:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(runs.State, "on_train_batch_end", counted)
        with pytest.raises(Killed):
            run_of(folder).train("never", 0)
    assert not (folder / "run" / runs.WEIGHTS).exists()
    _, again, _ = run_of(folder).train("auto", 0)
    found = weights(folder)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert same_bits(found[name], value), name
    assert again.history == history.history and again.epoch == history.epoch
    assert (folder / "run" / runs.LOG).read_text() == log
    more = "training.callbacks.0.EarlyStopping.patience=6"
    _, longer, _ = run_of(folder, more, "training.epochs=4").train("auto", 0)
    assert longer.epoch == [0, 1, 2, 3]
    with pytest.raises(ArgumentError, match="other callbacks, EarlyStopping, ReduceLROnPlateau"):
        run_of(folder, "training.callbacks=[]").train("auto", 0)


def test_a_signal_lets_the_step_end_and_saves(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_of(folder).train("never", 0)
    expected = weights(folder)
    plain = runs.State.on_epoch_end

    def with_signal(self: Any, epoch: int, logs: Any = None) -> None:
        plain(self, epoch, logs)
        if epoch == 0:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(runs.State, "on_epoch_end", with_signal)
        assert commands.run(["train", str(folder / "some.toml"), "--resume", "never", "--quiet"]) == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert (folder / "run" / runs.INTERRUPTED).exists() and not (folder / "run" / runs.WEIGHTS).exists()
    assert commands.run(["train", str(folder / "some.toml"), "--resume", "auto", "--quiet"]) == 0
    assert all(same_bits(weights(folder)[name], value) for name, value in expected.items())
    assert not (folder / "run" / runs.INTERRUPTED).exists()


WRONG: tuple[tuple[str, str, str], ...] = (
    ("{Dropout =", "{Droput =", r"model.layers\[1\].Droput: there is no Droput in hf.layers; did you mean Dropout"),
    ("learning_rate", "learning_rat", r"training.optimizer.Adam.learning_rat: .* did you mean learning_rate"),
    ("rate = 0.5", "rate = 2", r"model.layers\[1\].Dropout.rate: "),
    ("rate = 0.5", "rate = 'a'", r"model.layers\[1\].Dropout.rate: 'a' is wrong; it must be a number"),
    ("units = 2", "units = 2.5", r"model.layers\[2\].Dense.units: 2.5 is wrong; it must be an integer"),
    ("units = 2", "activation = 'relu'", r"model.layers\[2\].Dense: Dense needs units"),
    ("'relu'", "'rellu'", r"model.layers\[0\].Dense.activation: "),
    ("{units = 2}", "{units = 2, kernel_initializer = {HeNormel = {}}}", "did you mean HeNormal"),
    ("{Dense = {units = 2}}", "{Conv2D = {filters = 2, kernel_size = 3}}", r"model.layers\[2\]: "),
    ("{Dense = {units = 2}}", "{Dense = {units = 2}, inputs = 'dens'}", r"layers\[2\].inputs: .*did you mean dense"),
    ("{Dense = {units = 2}}", "{Lambda = {function = 'os.system'}}", "there is no Lambda in hf.layers"),
    ("{Dense = {units = 2}}", "7", "7 is no object of hf.layers"),
    ("epochs = 3", "epoch = 3", "training.epoch: epoch is not known; did you mean epochs"),
    ("epochs = 3", "epochs = true", "training.epochs: True is wrong"),
    ("{Adam", "{Adm", "there is no Adm in hf.optimizers; did you mean Adam"),
    ("{SparseCategoricalCrossentropy = {from_logits = true}}", "'msee'", "training.loss: there is no msee"),
    ("['accuracy']", "['acuracy']", r"training.metrics\[0\]: there is no acuracy in hf.metrics"),
    ("['accuracy']", "'accuracy'", "training.metrics: 'accuracy' is no array"),
    ("kind = 'npz'", "kind = 'npy'", "data.kind: there is no kind 'npy'; there are npz"),
    ("path = 'some.npz'", "path = 'none.npz'", "data.path: .*none.npz: No such file"),
    ("path = 'some.npz'", "path = 'some.toml'", "data.path: "),
    ("path = 'some.npz'", "x = 'z'\npath = 'some.npz'", "there is no array 'z'; there are x, y"),
    ("validation = 0.25", "validation = 1.5", "data.validation: 1.5 is no share"),
    ("validation = 0.25", "shuffel = 1", "data.shuffel: shuffel is not known"),
    ("[output]", "[outputs]", "outputs is not known; did you mean output"),
    ("export = []", "export = ['onx']", r"output.export\[0\]: onx is not known; did you mean onnx"),
    ("seed = 3", "seed = -3", "seed: -3 is no seed"),
    ("[model]", "[model", "this is no TOML"),
    ("[model]", "[model]\ninput = [4]", r"model.input: the shape is \[4\], and the data are \[3\]"),
    ("[model]", "[model]\nfreeze = ['x*']", r"model.freeze\[0\]: no layer is called 'x\*'"),
    ("[model]", "[model]\nweights = 'none.safetensors'", "model.weights: "),
    ("[model]", "[model]\nfile = 'some.json'", "model.file: a file is the whole model"),
)


@pytest.mark.parametrize("right, wrong, text", WRONG, ids=[str(k) for k in range(len(WRONG))])
def test_what_is_wrong_has_its_place_line_and_a_suggestion(folder: Path, right: str, wrong: str, text: str) -> None:
    plain = FILE.replace('"', "'")
    line = plain[: plain.index(right)].count("\n") + wrong.count("\n") + 1
    with pytest.raises(ArgumentError, match=text) as caught:
        run_of(folder, text=plain.replace(right, wrong, 1)).try_out()
    assert str(caught.value).endswith(f"(some.toml:{line})"), caught.value
    assert not (folder / "run").exists()


def test_settings_are_values_of_the_file(folder: Path) -> None:
    run = run_of(folder, "model.layers.1.Dropout.rate=0.25", "training.optimizer=sgd", "output.tensorboard = false")
    assert run.config.values["model"]["layers"][1] == {"Dropout": {"rate": 0.25}}
    assert run.config.values["training"]["optimizer"] == "sgd"
    with pytest.raises(ArgumentError, match=r"unit is not known; did you mean units.*It comes from --set"):
        run_of(folder, "model.layers.0.Dense.unit=3").try_out()
    for setting in ("epochs", "model.layers.9.x=1", "seed.x=1", "=3"):
        with pytest.raises(ArgumentError, match="--set"):
            run_of(folder, setting)


def test_graphs_have_several_inputs_and_outputs(folder: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {"a": rng.standard_normal((16, 3)), "b": rng.standard_normal((16, 2))}
    np.savez(folder / "two.npz", **arrays, left=rng.integers(0, 2, 16), right=rng.standard_normal((16, 1)))
    text = """
[data]
kind = "npz"
path = "two.npz"
x = ["a", "b"]
y = ["left", "right"]
[model]
outputs = ["left", "right"]
[[model.layers]]
Dense = {units = 4, name = "first"}
inputs = "a"
[[model.layers]]
Concatenate = {name = "both"}
inputs = ["first", "b"]
[[model.layers]]
Dense = {units = 2, name = "left"}
[[model.layers]]
Dense = {units = 1, name = "right", kernel_regularizer = {L2 = {l2 = 0.1}}}
inputs = "both"
[training]
optimizer = "sgd"
loss = {left = {SparseCategoricalCrossentropy = {from_logits = true}}, right = "mse"}
[output]
export = []
report = false
"""
    model, history, _ = run_of(folder, text=text).train("never", 0)
    assert model.output_names == ["left", "right"] and {"left_loss", "right_loss"} <= set(history.history)


def test_models_come_from_files(folder: Path) -> None:
    model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(4, name="hidden"), hf.layers.Dense(2)])
    (folder / "model.json").write_text(model.to_json(), encoding="utf-8")
    model.save_weights(str(folder / "given.safetensors"))
    text = re.sub(
        r"layers = \[.*?\n\]",
        'file = "model.json"\nweights = "given.safetensors"\nfreeze = ["hid*"]',
        FILE,
        flags=re.DOTALL,
    )
    found = run_of(folder, text=text)
    made, *_ = found.try_out()
    assert all(same_bits(a, b) for a, b in zip(made.get_weights(), model.get_weights()))
    assert len(made.trainable_variables) == 2


def test_a_trunk_of_onnx_has_layers_on_it(folder: Path) -> None:
    pytest.importorskip("onnx")
    trunk = hf.Sequential([hf.Input((3,)), hf.layers.Dense(4, activation="relu")])
    hf.onnx.save(trunk, str(folder / "trunk.onnx"))
    text = FILE.replace("[model]", '[model]\ntrunk = "trunk.onnx"')
    frozen, *_ = run_of(folder, text=text).try_out()
    assert len(frozen.trainable_variables) == 4
    free, *_ = run_of(folder, "model.trunk_trainable=true").try_out()
    assert len(free.trainable_variables) == 6


def data_of(folder: Path, text: str) -> datasets.Data:
    (folder / "data.toml").write_text(f"[data]\n{text}", encoding="utf-8")
    return datasets.Data(config.load(str(folder / "data.toml"), [], "train"))


def test_csv_files_have_names_numbers_and_classes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('size,kind,weight\n1,b,2.5\n-3,"a",nan\n', encoding="utf-8")
    table = data_of(tmp_path, 'kind = "csv"\npath = "a.csv"\nlabel = "kind"').read()
    np.testing.assert_array_equal(table.x, np.array([[1, 2.5], [-3, np.nan]], np.float32))
    assert table.y.tolist() == [1, 0] and table.classes == ["a", "b"]
    (tmp_path / "b.csv").write_text("size,kind\n1,2\n\n3,1\n", encoding="utf-8")
    table = data_of(tmp_path, 'kind = "csv"\npath = "b.csv"\nlabel = "kind"\nscale = 2.0').read()
    assert table.y.dtype == np.int64 and table.x.tolist() == [[2.0], [6.0]]
    for text, message in (
        ('path = "a.csv"\nlabel = "size"', "line 2: the column 'kind' has 'b', which is no number"),
        ('path = "a.csv"\nlabel = "kind"\ncolumns = ["sice"]', "there is no column 'sice'"),
        ('path = "empty.csv"\nlabel = "kind"', "no rows"),
    ):
        (tmp_path / "empty.csv").write_text("size,kind\n", encoding="utf-8")
        with pytest.raises(ArgumentError, match=message):
            data_of(tmp_path, f'kind = "csv"\n{text}').read()


def test_tfrecords_are_examples(tmp_path: Path) -> None:
    with hf.data.TFRecordWriter(str(tmp_path / "a.tfrecord")) as file:
        for k in range(3):
            file.write(hf.data.encode_example({"x": [float(k), 1.0], "label": k % 2}))
    text = 'kind = "tfrecord"\npath = "a.tfrecord"\nlabel = "label"\nfeatures = {x = {shape = [2]}, label = {}}'
    table = data_of(tmp_path, text).read()
    assert table.x.tolist() == [[0, 1], [1, 1], [2, 1]] and table.y.tolist() == [0, 1, 0]
    (tmp_path / "a.tfrecord").write_bytes((tmp_path / "a.tfrecord").read_bytes()[:-3])
    with pytest.raises(ArgumentError, match=r"data.path: .*a.tfrecord"):
        data_of(tmp_path, text).read()


def test_pictures_lie_in_a_folder_for_each_class(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, level in (("cat", 10), ("dog", 200)):
        (tmp_path / "in" / name).mkdir(parents=True)
        for k in range(2):
            image.new("RGB", (4, 3), (level, level, k)).save(tmp_path / "in" / name / f"{k}.png")
    table = data_of(tmp_path, 'kind = "images"\npath = "in"\nsize = [3, 4]').read()
    assert table.x.shape == (4, 3, 4, 3) and table.classes == ["cat", "dog"] and table.y.tolist() == [0, 0, 1, 1]
    assert table.x[3, 0, 0].tolist() == [200, 200, 1]
    (tmp_path / "in/cat/2.png").write_bytes(b"no picture")
    with pytest.raises(ArgumentError, match=r"2\.png is no picture"):
        data_of(tmp_path, 'kind = "images"\npath = "in"\nsize = [3, 4]').read()


def test_lines_of_values_are_known() -> None:
    text = (
        "a = 1 # x\n'b c'.d = [\n  1,\n  [2, {e = '''\n'''}],\n]\n\n[[t]]\nx = \"\\\"#\"\n[[t]]\n[t.u]\ny.z = {w = 1}\n"
        '"""" = 3\n'.replace('""""', '"q"')
    )
    found = lines_of(text)
    assert found["a",] == 1 and found["b c", "d"] == 2 and found["b c", "d", 0] == 3
    assert found["b c", "d", 1] == 4 and found["b c", "d", 1, 1, "e"] == 4
    assert found["t", 0, "x"] == 9 and found["t", 1] == 10
    assert found["t", 1, "u", "y", "z", "w"] == 12 and found["t", 1, "u", "q"] == 13


def test_what_is_written_is_read_again() -> None:
    values = {"seed": 1, "t": {"a b": [1, 2.5, True, 'x"\\\n\x7fé😀', {"c": []}], "f": float("inf")}, "u": {}}
    assert config.tomllib.loads(config.dumped(values)) == values


def test_the_schema_is_the_signatures(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["train", "--schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    dense = next(one for one in schema["$defs"]["layers"]["oneOf"][1:] if "Dense" in one["properties"])
    units = dense["properties"]["Dense"]
    assert units["properties"]["units"] == {"type": "integer"} and "units" in units["required"]
    assert "name" in units["properties"] and units["additionalProperties"] is False
    assert "class_weight" in schema["properties"]["training"]["properties"]
    lstm = signatures.parameters(signatures.kinds("layers")["LSTM"])
    assert {"units", "recurrent_dropout", "return_sequences", "name"} <= set(lstm) and "cell" not in lstm


def test_no_name_of_a_file_leads_to_code() -> None:
    for family in ("layers", "losses", "metrics", "callbacks"):
        assert not {"Lambda", "LambdaCallback", "LearningRateScheduler", "LossFunctionWrapper"} & set(
            signatures.kinds(family)
        )
        assert all(kind.__module__.startswith("hybridflow.") for kind in signatures.kinds(family).values())


def test_the_example_is_right(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "digits.npz", images=rng.integers(0, 17, (20, 64)), labels=np.arange(20) % 10)
    text = (ROOT / "examples/digits.toml").read_text(encoding="utf-8")
    (tmp_path / "digits.toml").write_text(text, encoding="utf-8")
    runs.Run(config.load(str(tmp_path / "digits.toml"), [], "train")).try_out()
