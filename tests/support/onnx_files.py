"""Models of ONNX for tests: made by the package ``onnx``, and run by its own reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator


def model_of(
    nodes: Sequence[Any],
    inputs: Mapping[str, tuple[Any, Sequence[Any]]],
    outputs: Sequence[str],
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 21,
    domains: Mapping[str, int] | None = None,
    functions: Sequence[Any] = (),
) -> Any:
    """A model; inputs by name with their dtype and shape."""
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape))
        for name, (dtype, shape) in inputs.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    weights = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "graph", ports, results, weights)
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, version) for domain, version in (domains or {}).items()]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10, functions=list(functions))
    inferred = onnx.shape_inference.infer_shapes(model)  # the checker wants types of results
    del model.graph.output[:]
    model.graph.output.extend(inferred.graph.output)
    for result in model.graph.output:
        if not result.type.tensor_type.elem_type:
            result.type.tensor_type.elem_type = 1
        result.type.tensor_type.shape.SetInParent()
    return model


def saved(model: Any, folder: Path, name: str = "model.onnx") -> str:
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return str(path)


def reference(model: Any, **inputs: np.ndarray) -> list[np.ndarray]:
    """What the package's own evaluator, in NumPy, makes of it."""
    return [np.asarray(value) for value in ReferenceEvaluator(model).run(None, inputs)]
