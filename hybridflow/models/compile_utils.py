"""The losses and metrics that a model was compiled with, for outputs of any structure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hybridflow import losses, metrics
from hybridflow.array.elementwise import multiply
from hybridflow.core import pytree
from hybridflow.core.context import current, suspended
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError


class CompiledLoss:
    """The sum of the losses of all outputs, each with its weight.

    ``loss`` is one for all outputs, or a list or dict with one for each, None where an output has none.
    """

    def __init__(self, loss: object, weights: object = None) -> None:
        self.given, self.weights = loss, weights
        leaves, structure = pytree.flatten(loss)
        self._losses = pytree.unflatten(structure, [None if leaf is None else as_loss(leaf) for leaf in leaves])

    def __call__(
        self, y: object, y_pred: object, sample_weight: object, names: Sequence[str] | None
    ) -> tuple[dict[str | None, Tensor], list[Tensor]]:
        """The loss of each output that has one, by its name, None where there is but one output; and those losses
        times their weights, whose sum counts."""
        losses_by_name: dict[str | None, Tensor] = {}
        counted: list[Tensor] = []
        outputs = by_name(y_pred, names)
        for name, output in outputs.items():
            loss = part_of(self._losses, name, outputs, "loss", whole=True)
            if loss is None:
                continue
            label = part_of(y, name, outputs, "y")
            weights = part_of(sample_weight, name, outputs, "sample_weight", whole=True)
            if label is None:
                raise ArgumentError("fit", f"there is a loss but no labels{_of(name)}; give y.")
            value = loss(label, output) if weights is None else loss(label, output, sample_weight=weights)
            factor = part_of(self.weights, name, outputs, "loss_weights", whole=True)
            losses_by_name[name] = value
            counted.append(value if factor is None else multiply(value, factor))
        return losses_by_name, counted


class CompiledMetrics:
    """The metrics of all outputs.

    ``given`` is a list for each of them, or a list or dict with a list for each; ``weighted`` ones heed the weights of
    the samples.
    """

    def __init__(self, plain: object, weighted: object, loss: object) -> None:
        self._given, self._weighted, self._loss = plain, weighted, loss
        self._objects: dict[str | None, list[tuple[str, Any, bool]]] = {}
        self._made: list[tuple[str, Any]] = []

    @property
    def metrics(self) -> list[Any]:
        """All that were made; they are made when the first labels and predictions are there."""
        return [metric for _, metric in self._made]

    def update(self, y: object, y_pred: object, sample_weight: object, names: Sequence[str] | None) -> None:
        """Take a batch into account."""
        if not self.given:
            return
        outputs = by_name(y_pred, names)
        for name, output in outputs.items():
            label = part_of(y, name, outputs, "y")
            if label is None:
                continue
            if name not in self._objects:
                self._objects[name] = self._make(name, outputs, label, output)
            weights = part_of(sample_weight, name, outputs, "sample_weight", whole=True)
            for _, metric, heeds in self._objects[name]:
                if heeds and weights is not None:
                    metric.update_state(label, output, sample_weight=weights)
                else:
                    metric.update_state(label, output)

    def _make(self, name: str | None, outputs: Mapping[Any, Any], y: object, p: object) -> list[tuple[str, Any, bool]]:
        if current.trace is not None:
            current.trace.before_variable_creation()  # so the step is traced again, and finds what is made here
        loss = part_of(self._loss, name, outputs, "loss", whole=True)
        result = []
        for chosen_metrics, heeds in ((self._given, False), (self._weighted, True)):
            chosen = part_of(chosen_metrics, name, outputs, "metrics") if _is_nested(chosen_metrics) else chosen_metrics
            for one in chosen if isinstance(chosen, (list, tuple)) else [chosen]:
                if one is None:
                    continue
                with suspended():  # it outlives the step that is being traced
                    metric = as_metric(one, loss, y, p)
                label = metric.name if name is None else f"{name}_{metric.name}"
                if any(label == other for other, _ in self._made):
                    label = f"weighted_{label}" if heeds else f"{label}_{len(self._made)}"
                result.append((label, metric, heeds))
                self._made.append((label, metric))
        return result

    def arguments(self) -> dict[str, Any]:
        """What ``compile`` was given of metrics."""
        return {"metrics": self._given, "weighted_metrics": self._weighted}

    @property
    def given(self) -> bool:
        """Whether there are any, made or not."""
        return self._given is not None or self._weighted is not None

    @property
    def labels(self) -> list[str]:
        """The names of ``results``, of metrics that give one number."""
        return [label for label, _ in self._made]

    def results(self) -> dict[str, Any]:
        """The results by name."""
        values: dict[str, Any] = {}
        for label, metric in self._made:
            result = metric.result()
            values.update(result if isinstance(result, dict) else {label: result})
        return values


class AllMetrics(metrics.Metric):
    """The metrics of ``compile`` as one, for steps that go through ``model.metrics``: it takes what the model's outputs
    and their labels are, and its result is a dict.  They may not have been made yet."""

    def __init__(self, _compiled: CompiledMetrics, _names: Sequence[str] | None) -> None:
        super().__init__(name="compile_metrics")
        self._compiled, self._names = _compiled, _names

    @property
    def metrics(self) -> list[Any]:
        """Those that were made."""
        return self._compiled.metrics

    @property
    def variables(self) -> list[Any]:
        """The state of all."""
        return [variable for metric in self.metrics for variable in metric.variables]

    def update_state(self, y_true: object, y_pred: object, sample_weight: object = None) -> None:
        self._compiled.update(y_true, y_pred, sample_weight, self._names)

    def result(self) -> dict[str, Any]:
        return self._compiled.results()

    def reset_state(self) -> None:
        for metric in self.metrics:
            metric.reset_state()


def by_name(value: object, names: Sequence[str] | None) -> dict[Any, Any]:
    """Outputs by their names: keys of a dict, places in a list, None for one alone."""
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, (list, tuple)):
        if names is None or len(names) != len(value):
            names = [f"output_{i}" for i in range(len(value))]
        return dict(zip(names, value))
    return {None: value}


_DATA = "y", "sample_weight"  # which may hold more than there are outputs for


def part_of(value: object, name: object, outputs: Mapping[Any, Any], what: str, whole: bool = False) -> Any:
    """What belongs to an output: of a dict by its name, of a list by its place; ``whole`` things belong to each."""
    if name is None and isinstance(value, (list, tuple, dict)) and len(value) == 1:
        return next(iter(value.values() if isinstance(value, dict) else value))
    if value is None or name is None:
        return value
    if isinstance(value, Mapping):
        unknown = [] if what in _DATA else [key for key in value if key not in outputs]
        if unknown:
            raise ArgumentError(
                "fit", f"{what} has a part {unknown[0]!r}; the outputs are {', '.join(map(str, outputs))}."
            )
        return value.get(name)
    if isinstance(value, (list, tuple)):
        if len(value) != len(outputs):
            raise ArgumentError("fit", f"{what} has {len(value)} parts for {len(outputs)} outputs.")
        return value[list(outputs).index(name)]
    if whole or len(outputs) == 1:
        return value
    raise ArgumentError("fit", f"{what} is one for {len(outputs)} outputs; give a list or dict with one for each.")


def as_loss(loss: object) -> Any:
    """A loss that is called with labels, predictions and weights; of a function, the mean of what it returns."""
    function = losses.get(loss)
    return function if isinstance(function, losses.Loss) else losses.LossFunctionWrapper(function)


def as_metric(description: object, loss: object, y: object, p: object) -> metrics.Metric:
    """A metric.  "accuracy" and "crossentropy" are those of the kind of labels and predictions."""
    if isinstance(description, str) and description.lower() in ("accuracy", "acc"):
        return _KINDS_OF_ACCURACY[_kind(y, p)](description)
    if isinstance(description, str) and description.lower() in ("crossentropy", "ce"):
        options = {"from_logits": bool(getattr(losses.get(loss), "from_logits", False))} if loss is not None else {}
        return _KINDS_OF_ENTROPY[_kind(y, p)](description, **options)
    if isinstance(description, type) and issubclass(description, metrics.Metric):
        return description()
    metric = metrics.get(description)
    if isinstance(description, str):
        metric.name = description
    return metric if isinstance(metric, metrics.Metric) else metrics.MeanMetricWrapper(metric)


_KINDS_OF_ACCURACY: dict[str, Any] = {
    "binary": metrics.BinaryAccuracy,
    "one-hot": metrics.CategoricalAccuracy,
    "numbers": metrics.SparseCategoricalAccuracy,
}
_KINDS_OF_ENTROPY: dict[str, Any] = {
    "binary": metrics.BinaryCrossentropy,
    "one-hot": metrics.CategoricalCrossentropy,
    "numbers": metrics.SparseCategoricalCrossentropy,
}


def _kind(y: Any, p: Any) -> str:
    """What labels are: of two classes, one-hot, or numbers of classes."""
    labels, predictions = tuple(y.shape), tuple(p.shape)
    if not predictions or predictions[-1] == 1:
        return "binary"
    if len(labels) < len(predictions) or (labels[-1] == 1 and predictions[-1] != 1):
        return "numbers"
    return "one-hot"


def _is_nested(value: object) -> bool:
    """Whether metrics are given for each output of its own."""
    return isinstance(value, Mapping) or (
        isinstance(value, (list, tuple)) and any(isinstance(one, (list, tuple)) for one in value)
    )


def _of(name: object) -> str:
    return "" if name is None else f" of {name!r}"
