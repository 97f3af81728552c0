"""Adaptors for MLServer and KServe: with stand-ins for the packages, whose interfaces are written here."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.serving import kserve, mlserver

pytestmark = pytest.mark.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models")

    @hf.function(input_signature=[hf.TensorSpec(("rows", 3), hf.float32, "x")])
    def double(x: Any) -> Any:
        return {"twice": 2 * x, "total": hf.sum(x, axis=1)}

    hf.saved.save(double, path / "model.hf")
    return path


# ---- the interfaces, as far as the adaptors use them


@dataclass
class Tensor:
    name: str
    shape: list[int]
    datatype: str
    data: Any = None
    parameters: Any = None

    def as_numpy(self) -> np.ndarray:
        return np.array(self.data, {"FP32": np.float32, "INT64": np.int64}[self.datatype]).reshape(self.shape)


@dataclass
class Request:
    inputs: list[Tensor]
    id: str | None = None
    outputs: list[Tensor] | None = None
    request_outputs: list[Tensor] | None = None


def response(**parts: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(**parts)


class ServerError(Exception):
    def __init__(self, message: str, status_code: int = 400) -> None:
        super().__init__(message)
        self.status_code = status_code


@dataclass
class Parameters:
    uri: str
    version: str | None = None
    extra: dict[str, Any] | None = None


@dataclass
class ModelSettings:
    name: str
    parameters: Parameters
    implementation: Any = None


class MLModel:
    def __init__(self, settings: ModelSettings) -> None:
        self._settings, self.name, self.version = settings, settings.name, settings.parameters.version


class NumpyCodec:
    decode_input = staticmethod(Tensor.as_numpy)

    @staticmethod
    def encode_output(name: str, array: np.ndarray) -> Tensor:
        return Tensor(name, list(array.shape), "FP32", array.ravel().tolist())


async def get_model_uri(settings: ModelSettings, wellknown_filenames: list[str]) -> str:
    root = Path(settings.parameters.uri)
    return str(next(root / name for name in wellknown_filenames if (root / name).exists()))


class Served:
    def __init__(self, name: str) -> None:
        self.name, self.ready = name, False


class InvalidInput(ValueError):
    pass


class InferenceError(RuntimeError):
    pass


def module(name: str, **names: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    made.__dict__.update(names)
    return made


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand-ins for the packages."""
    kinds = module("mlserver.types", InferenceResponse=response, MetadataTensor=Tensor)
    stand_ins = [
        module("mlserver", MLModel=MLModel, types=kinds),
        module("mlserver.codecs", NumpyCodec=NumpyCodec),
        module("mlserver.errors", MLServerError=ServerError),
        module("mlserver.utils", get_model_uri=get_model_uri),
        module("kserve", Model=Served, InferResponse=response, InferOutput=Tensor),
        module("kserve.errors", InvalidInput=InvalidInput, InferenceError=InferenceError),
    ]
    for one in stand_ins:
        monkeypatch.setitem(sys.modules, one.__name__, one)
    for made in (mlserver._runtime, kserve._model):
        made.cache_clear()
    yield
    for made in (mlserver._runtime, kserve._model):
        made.cache_clear()


# ---- the adaptors


ROWS = Tensor("x", [2, 3], "FP32", [1, 2, 3, 4, 5, 6])


def test_a_model_in_mlserver(folder: Path, packages: None) -> None:
    async def served() -> None:
        runtime = mlserver.Runtime(ModelSettings("digits", Parameters(str(folder), "v3", {"max_batch": 8})))
        assert await runtime.load()
        assert [(one.name, one.datatype, one.shape) for one in runtime.inputs] == [("x", "FP32", [-1, 3])]
        assert [one.name for one in runtime.outputs] == ["total", "twice"]
        answer = await runtime.predict(Request([ROWS], "7"))
        assert (answer.id, answer.model_name, answer.model_version) == ("7", "digits", "v3")
        assert [one.data for one in answer.outputs] == [[6, 15], [2, 4, 6, 8, 10, 12]]
        answer = await runtime.predict(Request([ROWS], outputs=[Tensor("total", [], "FP32")]))
        assert [one.name for one in answer.outputs] == ["total"]
        many = [Request([Tensor("x", [1, 3], "FP32", [k, k, k])]) for k in range(20)]
        answers = await asyncio.gather(*map(runtime.predict, many))
        assert [one.outputs[0].data for one in answers] == [[3 * k] for k in range(20)]
        for bad, text in (
            ([Tensor("x", [1, 3], "INT64", [1, 2, 3])], "the model takes FP32"),
            ([Tensor("x", [1, 4], "FP32", [1, 2, 3, 4])], r"the shape \[1, 4\]"),
            ([Tensor("x", [1, 3], "FP32", [1, 2])], "does not fit"),
            ([Tensor("y", [1, 3], "FP32", [1, 2, 3])], "no input 'y'"),
            ([ROWS, ROWS], "comes twice"),
            ([], "x is missing"),
        ):
            with pytest.raises(ServerError, match=text) as caught:
                await runtime.predict(Request(bad))
            assert caught.value.status_code == 400
        assert await runtime.unload()
        with pytest.raises(ServerError) as caught:
            await runtime.predict(Request([ROWS]))
        assert caught.value.status_code == 503
        with pytest.raises(hf.errors.ArgumentError, match="no setting 'max_bath'"):
            await mlserver.Runtime(ModelSettings("d", Parameters(str(folder), extra={"max_bath": 1}))).load()

    asyncio.run(served())


def test_a_model_in_kserve(folder: Path, packages: None) -> None:
    async def served() -> None:
        model = kserve.Model("digits", folder, max_batch=8)
        assert not model.ready
        assert model.load()
        assert model.ready
        assert await model.get_input_types() == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
        assert [one["name"] for one in await model.get_output_types()] == ["total", "twice"]
        answer = await model.predict(Request([ROWS], "7"))
        assert (answer.response_id, answer.model_name, answer.requested_outputs) == ("7", "digits", None)
        assert [one.data.tolist() for one in answer.infer_outputs] == [[6, 15], [[2, 4, 6], [8, 10, 12]]]
        answer = await model.predict({"instances": [[1, 2, 3]]})
        assert answer == {"predictions": {"total": [6], "twice": [[2, 4, 6]]}}
        for bad in ({"instances": [[1, 2]]}, {"instances": [["a"]]}, {"instances": 3}, {}, Request([])):
            with pytest.raises(InvalidInput):
                await model.predict(bad)
        model.stop()
        assert not model.ready
        with pytest.raises(InferenceError):
            await model.predict(Request([ROWS]))

    asyncio.run(served())


@pytest.mark.parametrize(("adaptor", "name"), [(mlserver, "Runtime"), (kserve, "Model")])
def test_what_is_not_installed_is_named(adaptor: Any, name: str) -> None:
    package = adaptor.__name__.rpartition(".")[2]
    if importlib.util.find_spec(package) is None:
        with pytest.raises(ImportError, match=f"pip install 'hybridflow\\[{package}\\]'"):
            getattr(adaptor, name)
    with pytest.raises(AttributeError):
        _ = adaptor.Other
