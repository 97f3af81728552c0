"""Models: layers that can be trained, evaluated and asked by one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from hybridflow.checkpoint.checkpoint import load_variables, located, save_variables
from hybridflow.core import pytree, serialization
from hybridflow.errors import ArgumentError
from hybridflow.jit.function import function
from hybridflow.layers import naming
from hybridflow.layers.functional_graph import build_for, symbols_of
from hybridflow.layers.layer import Layer, shape_of
from hybridflow.models.serialization import to_text
from hybridflow.models.summary import table
from hybridflow.models.trainer import CompileSettings, Trainer, TrainingRun, children


class Model(Trainer, Layer):
    """A layer with ``compile``, ``fit``, ``evaluate`` and ``predict``, with Keras's names, arguments and defaults.

    Subclass it as a layer, or make one of inputs and outputs, ``hf.Model(inputs, outputs)`` (see ``hf.Input``).  What
    a training step does is ``train_step``, which subclasses may define themselves; it is compiled into one program, as
    is ``test_step``.

    Args:
        *args: positional arguments, which are passed on.
        **kwargs: keyword arguments, which are passed on.

    >>> class Line(hf.Model):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.dense = hf.layers.Dense(1, kernel_initializer="zeros")
    ...     def call(self, inputs):
    ...         return self.dense(inputs)
    >>> model = Line()
    >>> model.compile(optimizer=hf.optimizers.SGD(0.1), loss="mse", metrics=["mae"])
    >>> x = np.arange(8.0).reshape(8, 1) / 8
    >>> history = model.fit(x, 2 * x + 1, batch_size=4, epochs=200, verbose=0)
    >>> history.history["loss"][-1] < 1e-3
    True
    >>> model.predict(np.array([[2.0]]), verbose=0).shape
    (1, 1)
    """

    _is_model = True
    _of_graph: ClassVar[type[Model]]  # the class of models of inputs and outputs, which sets it
    _save: ClassVar[Any]  # the function behind ``save``, whose module sets it
    _save_as_keras: ClassVar[Any]  # the one behind ``save_weights`` for Keras's files
    # The layer's name of a weight's name in PyTorch's published files, None for one that the model has no place for.
    _torch_names: Callable[[str], str | None] | None = None
    _seen_shape: object = None  # of the inputs that it was built for
    _seen_dtype: str | None = None  # its name, which a compiled function may repeat
    _with_graph: ClassVar[type[Model]]  # of a subclass: itself as such a class, made when one is

    def __new__(cls, *args: object, **kwargs: object) -> Any:
        if cls is Model and (args or "inputs" in kwargs):
            return object.__new__(Model._of_graph)
        return object.__new__(cls)

    def __init__(self, *args: object, **options: Any) -> None:
        if args[:1] == (self,):  # ``super().__init__(self)``, as some programs have it
            args = args[1:]
        if args or "inputs" in options:  # of a subclass that says what graph it is of
            self.__class__ = _of_graph_too(type(self))
            Model._of_graph.__init__(self, *args, **options)
            return
        super().__init__(**options)
        self._compiled: CompileSettings | None = None
        self._run = TrainingRun()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_run": TrainingRun()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self._compiled is not None:
            self._compiled.make_steps(self)

    def _build(self, inputs: Sequence[Any]) -> None:
        self._run.is_building = True
        try:
            naming.settle(self.layers)
            self._seen_shape = shape_of(inputs[0]) if inputs else None
            self._seen_dtype = str(inputs[0].dtype) if inputs and hasattr(inputs[0], "dtype") else None
            super()._build(inputs)
        finally:
            self._run.is_building = False

    def build(self, input_shape: object) -> None:
        """Make the variables of all layers.

        Args:
            input_shape: a tuple with None for unknown extents, or a list or dict of such for several inputs.

        >>> model = hf.Sequential([hf.layers.Dense(2)])
        >>> model.build((None, 3))
        >>> model.count_params()
        8
        """
        if not self._run.is_building:
            build_for(self, symbols_of(input_shape, self.compute_dtype))

    @property
    def input_shape(self) -> Any:
        """The shape of the input, with None for extents that are not known, nested as the inputs are.  Raises
        ArgumentError where the model has no graph.

        >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
        >>> model.input_shape, model.output_shape
        ((None, 3), (None, 2))
        """
        return _shapes(self.input)

    @property
    def output_shape(self) -> Any:
        """The shape of the output, as ``input_shape``."""
        return _shapes(self.output)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None) -> Any:
        """A model with such a configuration, which may be that of a graph of layers.

        Args:
            config: what ``get_config`` returned.
            custom_objects: classes by the names that the configuration has for them, or None.

        Returns:
            A new model, without the weights.

        >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
        >>> hf.Sequential.from_config(model.get_config()).count_params()
        8
        """
        with serialization.custom_objects(custom_objects or {}):
            if cls is Model and "calls" in config:
                return cls._of_graph._from_config(config)
            return cls._from_config(config)

    @classmethod
    def _from_config(cls, config: Mapping[str, Any]) -> Any:
        return super().from_config(config)

    def reset_states(self) -> None:
        """Make the states of stateful recurrent layers 0."""
        for layer in self.submodules:
            reset = getattr(layer, "reset_state", None)
            if reset is not None and getattr(layer, "stateful", False):
                reset()

    def _build_for_data(self) -> None:
        """Within ``fit``: make the variables that the first batch would make, those of metrics too."""
        source = self._run.source
        batch = None if source is None else source.first()
        if batch is not None:
            build_for(self, batch.x)
            self._make_metrics(batch)

    # Files

    def save_weights(self, filepath: str | os.PathLike[str]) -> None:
        """Write ``weights`` into a file, which replaces one that is there.

        It is in the safetensors format, unless its name ends in ``.weights.h5``: then Keras 3 reads it.  The latter is
        written by h5py, the extra ``keras-files``.

        Args:
            filepath: the path of the file. Where it ends in ``.weights.h5`` Keras 3 reads the file, else it is in the
                safetensors format.

        Raises:
            OSError: where it cannot be written.
        """
        if str(filepath).endswith(_OF_KERAS):
            self._save_as_keras(self, filepath)
        else:
            save_variables(filepath, self._named_weights())

    def load_weights(
        self,
        filepath: str | os.PathLike[str],
        skip_mismatch: bool = False,
        *,
        source: str | None = None,
        rename: Mapping[str, str] | Callable[[str], str] | None = None,
    ) -> Any:
        """Assign ``weights`` from a file: one that ``save_weights`` wrote, or one of Keras, PyTorch or TensorFlow.

        Weights of other programs are matched by rules for each class of layers, never by shapes alone: a linear layer's
        square weight fits both ways round.

        Args:
            filepath: the file, see ``hf.weights.read`` for its kinds.
            skip_mismatch: whether what the file lacks, has besides, or has in another shape is left alone.
            source: whose layout the file has: "keras", "torch" or "tf". Of a safetensors file it must be said; without
                it that is one of ``save_weights``.
            rename: for "torch" and "tf": a dict from beginnings of names in the file to those of layers here, or a
                function from a name to a name. Names for which it returns None are left out.

        Returns:
            None for a file of ``save_weights`` in the safetensors format; else a report: ``restored``, ``missing``,
            ``unused``, ``turned``.

        Raises:
            CheckpointError: where names or shapes differ; then nothing is assigned.
            ArgumentError: for a model that is not built.

        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "linear.npz")
        >>> np.savez(path, **{"0.weight": np.ones((2, 3), np.float32), "0.bias": np.zeros(2, np.float32)})
        >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
        >>> model.load_weights(path, source="torch").turned
        {'layers.0.kernel': 'transposed (1, 0)'}
        """
        if source is None and rename is None and _is_ours(filepath):
            load_variables(filepath, self._named_weights(), skip_mismatch, self.name)
            return None
        from hybridflow.weights import loading  # which few programs need

        return loading.load_weights(self, filepath, source, rename, skip_mismatch)

    def save(self, filepath: object, overwrite: bool = True) -> None:
        """Write all of the model into one file: see ``hf.models.save_model``.

        Args:
            filepath: the path of the file.
            overwrite: whether a file that is there is replaced.

        Raises:
            FileExistsError: where the file is there, and ``overwrite`` is False.
            OSError: where it cannot be written.
        """
        self._save(self, filepath, overwrite)

    def export(
        self, filepath: object, format: str = "tf_saved_model", verbose: object = None, input_signature: Any = None
    ) -> None:
        """Write the model as a function for ``hf.saved.load``, which runs without its source.

        The function is ``serve``, and the signature "serving_default".

        Args:
            filepath: the folder.
            format: "tf_saved_model", as hybridflow's own format is called here.
            verbose: ignored.
            input_signature: TensorSpecs of the arguments, for a model that does not know its input.

        Raises:
            ArgumentError: where nothing says what the inputs are, and for another format.

        >>> import os, tempfile
        >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
        >>> path = os.path.join(tempfile.mkdtemp(), "model")
        >>> model.export(path)
        >>> hf.saved.load(path).serve(hf.ones((5, 3))).shape
        (5, 2)
        """
        from hybridflow.saved import saving  # which few programs need

        if format != "tf_saved_model":
            raise ArgumentError("export", f"format is {format!r}; hybridflow writes its own, called 'tf_saved_model'.")
        if input_signature is None:
            concrete = saving.of_model(self)
        else:
            call = function(lambda *inputs: self(*inputs, training=False), name=self.name)
            concrete = call.get_concrete_function(*input_signature)
        saving.save(self, saving.in_folder(filepath), {"serve": concrete, saving.DEFAULT: concrete})

    def to_json(self, **options: object) -> str:
        """The configuration as JSON, for ``hf.models.model_from_json``.

        Args:
            **options: those of ``json.dumps``.

        Returns:
            A text.
        """
        return to_text(self, self.name, **options)

    # Looks

    def summary(
        self,
        line_length: int | None = None,
        *,
        print_fn: Callable[..., object] | None = None,
        expand_nested: bool = False,
        show_trainable: bool = False,
    ) -> None:
        """Print a table of the layers, their output shapes and numbers of parameters.

        Args:
            line_length: the width of the table, or None.
            print_fn: a function that is called with the text, in the place of ``print``.
            expand_nested: whether the layers of models within it have lines too.
            show_trainable: whether a column says which layers are trained.
        """
        (print_fn or print)(table(self, line_length, expand_nested, show_trainable))

    @property
    def layers(self) -> list[Any]:
        """The layers that are attributes of the model, or in lists and dicts there, at any depth."""
        result = [child for child in children(self) if isinstance(child, Layer)]
        naming.settle(result)
        return result

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """The layer of a name or at a place.

        Args:
            name: the name of the layer.
            index: its place among the layers, in the stead of the name.

        Returns:
            The layer.

        Raises:
            ArgumentError: where there is none.
        """
        layers = self.layers
        if index is not None:
            if not -len(layers) <= index < len(layers):
                raise ArgumentError(self.name, f"there is no layer {index}; there are {len(layers)}.")
            return layers[index]
        for layer in layers:
            if layer.name == name:
                return layer
        names = ", ".join(layer.name for layer in layers)
        raise ArgumentError(self.name, f"no layer is called {name!r}; there are {names or 'none'}.")


_OF_KERAS = ".weights.h5"


def _of_graph_too(kind: type[Model]) -> type[Model]:
    """A subclass of models as one of inputs and outputs."""
    result: type[Model] | None = vars(kind).get("_with_graph")
    if result is None:
        named = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
        reduced = {"__reduce__": lambda self: (_empty_of_graph, (kind,), self.__getstate__())}
        result = kind._with_graph = type(kind.__name__, (kind, Model._of_graph), named | reduced)
    return result


def _empty_of_graph(kind: type[Model]) -> Model:
    """What copies and pickles fill with their state."""
    result: Model = object.__new__(_of_graph_too(kind))
    return result


def _shapes(symbols: object) -> Any:
    """The shapes of nested symbols."""
    leaves, structure = pytree.flatten(symbols)
    return pytree.unflatten(structure, [symbol.shape for symbol in leaves])


def _is_ours(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one that ``save_weights`` writes, or is not there."""
    name = located(path)
    if not os.path.isfile(name):
        return not os.path.isdir(name) and not os.path.exists(f"{name}.index")
    with open(name, "rb") as file:
        head = file.read(9)
    return head[8:] == b"{" or len(head) < 9
