"""The base of all layers."""

from __future__ import annotations

import functools
import inspect
import itertools
import reprlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypedDict

import numpy as np

from hybridflow import constraints, initializers, regularizers
from hybridflow.array.elementwise import astype, maximum
from hybridflow.array.reductions import sum as total
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import known
from hybridflow.core import layer_context, pytree
from hybridflow.core.allocation_limit import take_room
from hybridflow.core.context import dialect, enter_narrow
from hybridflow.core.promotion import to_dtype
from hybridflow.core.serialization import Configured, described_of, description, snake_case
from hybridflow.core.shape import Shape
from hybridflow.core.string_tensor import as_strings
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import DTypeLike, Identifier
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, OperandError, ShapeError
from hybridflow.layers.activation_functions import name_of_activation
from hybridflow.layers.dtype_policy import Policy, as_policy, policy_of
from hybridflow.layers.input_spec import check_inputs
from hybridflow.layers.keras_tensor import Call, Symbol, first_symbol
from hybridflow.module import Module
from hybridflow.module_parts import trained_first, traverse
from hybridflow.quantize import quantizing
from hybridflow.tracing.replica_axes import outside_replicas


def _noting_arguments(init: Callable[..., None]) -> Callable[..., None]:
    """The ``__init__`` of a class, which notes what an object of that class, or of one without its own, is made of."""

    @functools.wraps(init)
    def call(self: Layer, *args: object, **kwargs: object) -> None:
        if getattr(type(self).__init__, "__wrapped__", None) is init:
            self._noted(args, kwargs)
        init(self, *args, **kwargs)

    return call


def _noting(build: Callable[..., Any]) -> Callable[..., Any]:
    """``build`` of a class, after which a layer is built whoever called it: the user, too."""

    @functools.wraps(build)
    def noted(self: Layer, *args: object, **kwargs: object) -> None:
        token = layer_context.enter_making(self._label)
        try:
            build(self, *args, **kwargs)
        finally:
            layer_context.leave_making(token)
        if type(self).build is noted:  # and not that of a class above, called by the layer's own
            self._note_built()

    return noted


class SharedOptions(TypedDict, total=False):
    """What all layers take by name, and pass on, but for the regularizer of results, which some take themselves."""

    trainable: bool
    name: str | None
    dtype: DTypeLike | Policy | None
    input_shape: Sequence[int | None] | None
    input_dim: int | None
    batch_input_shape: Sequence[int | None] | None


class LayerOptions(SharedOptions, total=False):
    """What all layers take by name, and pass on."""

    activity_regularizer: Identifier


class Layer(Module, Configured):
    """A module with a ``call``, whose weights are made when the shape of its input is known, at the first call.

    Subclasses define ``call(inputs)``, and ``build(input_shape)`` if they have weights, by ``add_weight``.  A parameter
    ``training`` of ``call`` need not be given: a layer inside another one trains as that does, and where none was told
    it is the parameter's default: most layers do not train then, those that change pictures by chance do.

    A mask says of which steps of an input is something: a bool tensor, True there.  ``Embedding`` and ``Masking`` make
    them.  A layer whose ``call`` has a parameter ``mask`` is given that of its first input, where a layer around both
    is being called; elsewhere say ``lstm(x, mask=embedding.compute_mask(numbers))``.  Results have the masks that
    ``compute_mask`` returns: those of the input, if ``supports_masking``.

    Layers are made of the arguments that ``get_config`` names; ``from_config`` makes another one like this, with
    weights of its own.  ``name`` is the class's name in lower case unless given, with a number behind it where a model
    has several such layers.  ``dtype`` is that of weights and results, or a policy for both (see
    ``hf.mixed_precision``): with "mixed_float16" weights are held in float32, and inputs and weights are converted to
    float16 for ``call``.
    ``activity_regularizer`` (see ``hf.regularizers``) penalizes results, ``add_loss`` anything else.
    ``input_shape`` is the shape of a sample, ``batch_input_shape`` that of a batch, ``input_dim`` an extent for one
    axis.  Any of them lets the first layer of a ``Sequential`` be built before there is data.

    Args:
        trainable: whether its weights are trained.
        name: the name in summaries, logs and files; by default made from the class's name.
        dtype: the dtype of weights and results, or a policy of ``hf.mixed_precision``; the global policy unless
            given.
        input_shape: the shape of one sample, so that it is built at once.
        input_dim: the size of the last axis of the input, so that it is built at once.
        batch_input_shape: the same, including the batch axis.
        activity_regularizer: a regularizer of the result.

    >>> class Scale(hf.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight(input_shape[-1:], initializer="ones")
    ...     def call(self, inputs):
    ...         return inputs * self.factor
    >>> scale = Scale()
    >>> scale([1.0, 2.0])
    <Tensor f32[2] cpu> [1. 2.]
    >>> scale.variables
    [<Variable 'factor' f32[2] cpu> [1. 1.]]
    """

    supports_masking = False
    _quantizes_inputs = False  # whether products with its quantized weights may be those of numbers
    _input_name = "inputs"  # the parameter of ``call`` for what the layer is built for
    _takes_training = False
    _trains_untold: Any = None  # what ``training`` is where nobody says it
    _takes_mask = False
    _one_tensor = False  # what is called with anything else than a tensor first, refuses it
    _sample_shape: tuple[int | None, ...] | None = None
    _sample_count: int | None = None  # in a batch
    activity_regularizer: Any = None
    input_spec: Any = None  # what the first argument must be: an ``InputSpec``, or a list of them
    _when_built: Callable[[], None] | None = None  # told once the variables are made
    _is_model = False
    _settled_name: str | None = None  # among the layers of a model, see ``naming``
    _without_variables = frozenset(("_calls", "_given_arguments", "_label", "_mark"))  # attributes that hold none

    def __init_subclass__(cls, one_tensor: bool | None = None, **options: object) -> None:
        """``one_tensor``: whether ``call`` takes one tensor first, and no list or dict of them.  It goes with ``call``:
        a subclass that defines another one says it anew."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls) and not cls.__module__.startswith("hybridflow."):
            cls.__init__ = _noting_arguments(cls.__init__)  # type: ignore[method-assign]
        if "build" in vars(cls):
            cls.build = _noting(cls.build)  # type: ignore[method-assign]
        if one_tensor is not None or "call" in vars(cls):
            cls._one_tensor = bool(one_tensor)
        parameters = inspect.signature(cls.call).parameters
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
        cls._input_name = next(itertools.islice(parameters, 1, 2), "inputs")
        cls._takes_training, cls._takes_mask = takes_all or "training" in parameters, "mask" in parameters
        default = parameters["training"].default if "training" in parameters else None
        cls._trains_untold = None if default is inspect.Parameter.empty else default

    def __init__(
        self,
        *,
        trainable: bool = True,
        name: str | None = None,
        dtype: DTypeLike | Policy | None = None,
        input_shape: Sequence[int | None] | None = None,
        input_dim: int | None = None,
        batch_input_shape: Sequence[int | None] | None = None,
        activity_regularizer: Identifier = None,
    ) -> None:
        self._trainable = bool(trainable)  # there are no layers in it yet
        self._mark = layer_context.Mark()
        if activity_regularizer is not None:
            self.activity_regularizer = regularizers.get(activity_regularizer)
        if batch_input_shape is not None:
            self._sample_count, *input_shape = batch_input_shape
        if input_shape is not None or input_dim is not None:
            self._sample_shape = (input_dim,) if input_shape is None else tuple(input_shape)
        self._label = layer_context.Label()
        self._name = name
        self._note_name()
        self._follow(policy_of(dtype))
        self.built = type(self).build is Layer.build  # there is nothing to do

    def _kind_name(self) -> str:
        """What a layer is called that was given no name."""
        return snake_case(type(self).__name__)

    @property
    def name(self) -> str:
        """What messages and tables call the layer, and ``get_layer`` of a model finds it by."""
        return self._name or self._settled_name or self._kind_name()

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = name
        self._note_name()

    def _settle_name(self, name: str) -> None:
        """Say what a model calls the layer if it was given no name."""
        self._settled_name = name
        self._note_name()

    def _note_name(self) -> None:
        self._label.name = self._name or self._settled_name or self._kind_name()

    def _follow(self, policy: Policy) -> None:
        self._policy = policy
        self._dtype = policy.compute_dtype
        self._narrow = policy.compute_dtype if policy.is_mixed else None  # what weights are converted to

    @property
    def dtype(self) -> Any:
        """The dtype of weights, and of results unless the policy is a mixed one."""
        return self._policy.variable_dtype

    @property
    def variable_dtype(self) -> Any:
        """The dtype of weights."""
        return self._policy.variable_dtype

    @property
    def compute_dtype(self) -> Any:
        """The dtype that floats among inputs, and weights, are converted to for ``call``."""
        return self._dtype

    @property
    def dtype_policy(self) -> Policy:
        """What ``dtype`` was given as, see ``hf.mixed_precision.Policy``.  Set it before there are weights."""
        return self._policy

    @dtype_policy.setter
    def dtype_policy(self, policy: object) -> None:
        self._follow(as_policy(policy))

    def _quantized_axes(self) -> dict[str, tuple[int, ...]]:
        """The weights that can be quantized, with the axes that have scales of their own: those not summed over."""
        return {}

    def build(self, input_shape: Any) -> None:
        """For subclasses: make the weights for inputs of that shape.

        Args:
            input_shape: a tuple of ints, with None for unknown extents, or a list of such for several inputs.
        """

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """For subclasses: what the layer makes of its inputs.

        Args:
            *args: the inputs.
            **kwargs: ``training``, ``mask`` and other arguments of the call.

        Returns:
            A tensor, or several in a nest.

        Raises:
            NotImplementedError: where a subclass has to define it.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define call(self, inputs)")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of ``call``.  Arrays, numbers and lists of these become tensors, floats of the layer's dtype."""
        if not args and self._input_name in kwargs:
            args = (kwargs.pop(self._input_name),)
        symbol = first_symbol((*args, kwargs) if kwargs else args)
        if symbol is not None:
            return symbol.connect(self, args, kwargs)
        inputs = [self._converted(value) for value in args]
        self._check_first(inputs)
        if self.input_spec is not None and inputs:
            check_inputs(self.input_spec, inputs[0], self.name)
        training = kwargs.get("training")
        if training is None and self._takes_training:
            training = layer_context.training_now()
            if training is None:
                training = self._trains_untold
            kwargs["training"] = training
        elif not self._takes_training and "training" in kwargs:
            del kwargs["training"]  # it is for layers within this one
        if not self.built:
            self._build(inputs)
        token = layer_context.enter(training, self._label)
        before = enter_narrow(self._narrow)
        try:
            mask = kwargs.get("mask")
            if mask is None and args:
                mask = layer_context.mask_of(args[0])
                if mask is not None and self._takes_mask:
                    kwargs["mask"] = mask
            result = self.call(*inputs, **kwargs)
            if args:
                layer_context.keep_mask(result, self.compute_mask(inputs[0], mask))
            if self.activity_regularizer is not None:
                self._regularize(result)
            return result
        finally:
            self._tell(inputs)
            enter_narrow(before)
            layer_context.leave(token, self._mark)

    def _tell(self, inputs: Sequence[Any]) -> None:
        """Where the call ends by an error of an operation, or of a layer within this one: note on it that it was here.

        Not in an ``except``: that would catch errors of which a compiled function does not know yet if it has them.
        """
        error = sys.exception()
        if not isinstance(error, OperandError) or error.stage == self.name or error.__traceback__ is None:
            return
        frame = error.__traceback__.tb_frame  # of the call that the error is leaving, or handled in
        if frame.f_code.co_name == "__call__" and frame.f_locals.get("self") is self:
            described = ", ".join(map(_what_is, inputs))
            error.add_note(f"in the layer {self.name!r}, {type(self).__name__}, which was called with {described}")

    def add_loss(self, loss: object) -> None:
        """Add to the loss, in ``call``: ``losses`` has it until the layer, or the one around it, is called again.

        Args:
            loss: a tensor, whose sum counts, or a list of such.

        Raises:
            ArgumentTypeError: for a function or a symbolic tensor.

        >>> class Small(hf.layers.Layer):
        ...     def call(self, inputs):
        ...         self.add_loss(0.1 * hf.mean(inputs**2))
        ...         return inputs
        >>> small = Small()
        >>> _ = small([1.0, 3.0])
        >>> small.losses
        [<Tensor f32[] cpu> 0.5]
        """
        for one in loss if isinstance(loss, (list, tuple)) else [loss]:
            if isinstance(one, Symbol) or callable(one):
                raise ArgumentTypeError(
                    self.name, f"add_loss was given {one!r}; give a tensor, in the call of a layer or model."
                )
            value = as_tensor(one, self.name)
            layer_context.add_loss(self._mark, value if value.ndim == 0 else total(value))

    def _regularize(self, result: object) -> None:
        """Add what the regularizer of results makes of them, for each sample."""
        for one in pytree.flatten(result)[0]:
            if isinstance(one, Tensor):
                penalty = self.activity_regularizer(astype(one, dtypes.compute_dtype(one.dtype)))
                samples = one.shape[0] if one.ndim else 1
                layer_context.add_loss(self._mark, penalty / maximum(as_tensor(samples, self.name, penalty.dtype), 1))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of the result.

        Args:
            inputs: the inputs.
            mask: their mask, a list of masks for a list of inputs, or None.

        Returns:
            A bool tensor, or None.
        """
        return mask if self.supports_masking else None

    def compute_output_shape(self, input_shape: object) -> Any:
        """The shape of the result, by shapes alone: nothing is calculated, and the layer is not built.

        Args:
            input_shape: a tuple with None for unknown extents, or lists and dicts of such.

        Returns:
            A tuple, or lists and dicts of such.

        >>> hf.layers.Conv2D(8, 3, strides=2).compute_output_shape((None, 29, 29, 1))
        (None, 14, 14, 8)
        """
        return Symbol.shape_for(self, input_shape)

    def _converted(self, value: object) -> Any:
        if isinstance(value, (Tensor, Variable)):
            return self._cast(value)
        if dialect.is_tensorflow and self._one_tensor and type(value) is list and value and _are_arrays(value):
            value = np.stack(value)  # in the place of one tensor they are an array with one more axis
        if isinstance(value, np.ndarray) and value.dtype.kind in "USO":
            return as_strings(value, self.name)
        if isinstance(value, (list, tuple)) and any(_is_array(part) for part in value):
            parts = [self._converted(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if value is None or isinstance(value, (str, dict)) or not _is_numeric(value):
            return value
        return self._cast(as_tensor(value, self.name))

    def _check_first(self, inputs: Sequence[Any]) -> None:
        if self._one_tensor and inputs:
            self._check_tensor(inputs[0], "the layer takes one tensor")

    def _check_tensor(self, value: object, wanted: str) -> None:
        """Raise ArgumentTypeError, which says what is ``wanted``, unless a value is a tensor, or will be one."""
        if not isinstance(value, (Tensor, Variable, Symbol)):
            raise ArgumentTypeError(self.name, f"the input is {_what_is(value)}; {wanted}.")

    def _cast(self, value: Any) -> Tensor:
        if not dtypes.is_float(value.dtype) or value.dtype == self._dtype:
            return value
        cast = astype(value, self._dtype)
        layer_context.keep_mask(cast, layer_context.mask_of(value))
        return cast

    def _build(self, inputs: Sequence[Any]) -> None:
        shape = shape_of(inputs[0]) if inputs else ()
        with layer_context.building():
            self.build(shape)
        if not self.built:
            self._note_built()

    @property
    def _has_deferred_build(self) -> bool:  # type: ignore[override]  # of a class, or of one object
        return not self.built

    def _note_built(self) -> None:
        self.built = True
        if self._policy.scheme is not None:
            quantizing.build_quantized(self, self._policy.scheme)
        if self._when_built is not None:
            self._when_built()

    def add_weight(
        self,
        shape: Sequence[int] = (),
        initializer: object = "glorot_uniform",
        dtype: DTypeLike | None = None,
        trainable: bool = True,
        name: str | None = None,
        regularizer: object = None,
        constraint: object = None,
        autocast: bool = True,
    ) -> Variable:
        """A new variable.  Assigned to an attribute it is one of the layer's ``weights``.

        Args:
            shape: its extents.
            initializer: anything that ``hf.initializers.get`` takes, which makes its first value.
            dtype: its dtype, by default that of the layer's weights.
            trainable: whether it is trained.
            name: a name for messages; by default the attribute's.
            regularizer: a function of the value, whose result is one of ``losses``, or its name.
            constraint: what optimizers apply to the value after each update, or its name.
            autocast: whether layers with mixed precision see it in their compute dtype.

        Returns:
            The variable.

        Raises:
            ArgumentError: for a shape with unknown extents.
        """
        if None in known(shape):
            raise ArgumentError(
                self.name, f"a weight of the shape {tuple(shape)} cannot be made: call the layer with a known extent."
            )
        chosen = self._policy.variable_dtype if dtype is None else to_dtype(dtype, self.name)
        take_room(self.name, shape)
        with outside_replicas():
            start = initializers.get(initializer)(tuple(shape), chosen)
            variable = Variable(start, trainable=trainable, name=name)
        around = layer_context.labels_now()
        variable._makers = around if around[-1:] == (self._label,) else (*around, self._label)
        return variable._rule(regularizers.get(regularizer), constraints.get(constraint), autocast)

    def _settle(self, weight: str, initializer: object, regularizer: object = None, constraint: object = None) -> None:
        """Keep a subclass's arguments for a weight, as ``kernel_initializer`` and so on."""
        setattr(self, f"{weight}_initializer", initializers.get(initializer))
        setattr(self, f"{weight}_regularizer", regularizers.get(regularizer))
        setattr(self, f"{weight}_constraint", constraints.get(constraint))

    def _weight(self, weight: str, shape: Sequence[int], **options: object) -> Variable:
        """A weight by the arguments that ``_settle`` keeps."""
        defaults = {kind: getattr(self, f"{weight}_{kind}") for kind in _OF_WEIGHTS}
        return self.add_weight(shape, **defaults | options)

    def _settled(self, *weights: str) -> dict[str, Any]:
        """What ``_settle`` keeps, for ``get_config``."""
        names = [f"{weight}_{kind}" for weight in weights for kind in _OF_WEIGHTS]
        return {name: describe(getattr(self, name)) for name in names}

    @property
    def losses(self) -> list[Tensor]:
        """What is to be added to the loss: what this layer and those in it added in their last call, and what
        regularizers make of their weights."""
        marks, regularized = [], []
        for _, one, free in traverse(self, Module):  # once: traces record each step of it
            if isinstance(one, Layer):
                marks.append(one._mark)
            elif isinstance(one, Variable) and free and one.trainable and one.regularizer is not None:
                regularized.append(one)
        added: list[Tensor] = layer_context.losses_of(marks)
        return added + [v.regularizer(v) for v in regularized]

    def __setattr__(self, name: str, value: object) -> None:
        if type(value) is Variable and value.name is None:
            value.name = name
        object.__setattr__(self, name, value)

    @property
    def trainable(self) -> bool:
        """Whether its variables count as trainable.  What is set is set for the layers in it too."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        for part in self.submodules:
            if isinstance(part, Layer):
                part._trainable = self._trainable

    @property
    def weights(self) -> list[Variable]:
        """The variables of the layer and those in it, but for the states of random generators and of stateful layers:
        what Keras calls weights."""
        return list(self._named_weights().values())

    def _named_weights(self) -> dict[str, Variable]:
        passing = {id(v) for module in (self, *self.submodules) for v in module._passing()}
        return {path: v for path, v in self.named_variables().items() if id(v) not in passing}

    @property
    def trainable_weights(self) -> list[Variable]:
        """``trainable_variables``, as Keras calls them."""
        return self.trainable_variables

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """The ``weights`` that are no trainable ones."""
        trained = {id(v) for v in self.trainable_variables}
        return [v for v in self.weights if id(v) not in trained]

    def get_weights(self) -> list[Any]:
        """The values of ``weights``, as NumPy arrays of their own.

        Returns:
            A list of arrays.

        >>> layer = hf.layers.Dense(2)
        >>> layer.build((None, 3))
        >>> [w.shape for w in layer.get_weights()]
        [(3, 2), (2,)]
        """
        return [variable.numpy().copy() for variable in self.weights]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assign values to ``weights``, in the order of ``get_weights``.

        Args:
            weights: an array for each.

        Raises:
            ArgumentError: for another number of them.
            ShapeError: where a shape differs; none is assigned then.
        """
        variables = self.weights
        if len(weights) != len(variables):
            raise ArgumentError(
                self.name, f"there are {len(weights)} weights for {len(variables)} variables; call the layer first?"
            )
        values = [as_tensor(value, self.name, variable.dtype) for value, variable in zip(weights, variables)]
        for value, variable in zip(values, variables):
            if value.shape != variable.shape:
                raise ShapeError(self.name, f"the weight {value.type} for {variable._title()} must have its shape.")
        for value, variable in zip(values, variables):
            variable.assign(value)

    def quantize(self, mode: str = "int8") -> quantizing.Report:
        """Quantize the weights of the layer and of those in it, in place: Keras's name for ``hf.quantize``.

        Args:
            mode: "int8" or "int4", the dtype of weights; inputs of dense layers are quantized to int8 at each call.
                Or the name of a scheme without inputs, such as "int4_weights_128".

        Returns:
            An ``hf.quantize.Report``.

        Raises:
            ArgumentError: for another mode, or a layer without weights to quantize.

        Example:
            >>> layer = hf.layers.Dense(2, kernel_initializer="ones")
            >>> _ = layer(hf.ones((1, 3)))
            >>> report = layer.quantize("int8")
            >>> layer.dtype_policy
            <Policy 'int8_from_float32'>
        """
        return quantizing.by_name(self, mode)

    @property
    def input(self) -> Any:
        """The symbols that the layer was first called with, where it is connected to a graph.  Raises ArgumentError
        where it is not."""
        args, _ = self._connection().arguments
        return args[0] if len(args) == 1 else args

    @property
    def output(self) -> Any:
        """The symbols of the layer's first results, where it is connected to a graph.  Raises ArgumentError where it is
        not."""
        return self._connection().result()

    def _connection(self) -> Call:
        calls = self.__dict__.get("_calls")
        if not calls:
            raise ArgumentError(self.name, "the layer has not been called with hf.Input, or what was made of it.")
        return calls[0]

    def count_params(self) -> int:
        """The number of elements of all ``weights``.

        Returns:
            An int.
        """
        return sum(int(variable.size) for variable in self.weights)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another layer like this.

        Those of a class of your own are what it was given, if these are numbers, texts, bools, None, or lists and
        dicts of such.  Where others are given, the class adds them to what its base class returns.

        Returns:
            A dict from names to values.
        """
        config = {"name": self._name, "trainable": self.trainable, "dtype": self._policy.name}
        if self.activity_regularizer is not None:
            config["activity_regularizer"] = describe(self.activity_regularizer)
        return self._with_given(config | self._own_arguments(Layer), Layer)

    def _plain_argument(self, name: str, value: Any) -> Any:
        if name.endswith("activation"):
            return name_of_activation(value)
        return [describe(part) for part in value] if isinstance(value, list) else describe(value)

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        # As Keras does: its own variables, those that are trained first, before those of layers in it; all in the order
        # in which they were made, kernels before biases.
        yield from trained_first(vars(self), self._without_variables)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}{'' if self.built else ', not built'}>"


_OF_WEIGHTS = "initializer", "regularizer", "constraint"


def _is_array(value: object) -> bool:
    return isinstance(value, (Tensor, Variable)) or (hasattr(value, "__array__") and getattr(value, "ndim", 0) > 0)


def _are_arrays(values: list[Any]) -> bool:
    return all(isinstance(value, np.ndarray) for value in values)


def _is_numeric(value: object) -> bool:
    if isinstance(value, (bool, int, float)) or hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return True
    return isinstance(value, (list, tuple)) and len(value) > 0 and _is_numeric(value[0])


def _what_is(value: object) -> str:
    """What a layer was given, for messages."""
    if isinstance(value, dict):
        return f"a dict with the keys {', '.join(map(repr, value))}" if value else "an empty dict"
    if isinstance(value, (list, tuple)):
        parts = ", ".join(str(getattr(part, "type", type(part).__name__)) for part in value)
        return f"a {type(value).__name__} of {len(value)}: {parts}" if value else f"an empty {type(value).__name__}"
    if isinstance(value, (Tensor, Variable)):
        return str(value.type)
    return "None" if value is None else f"{type(value).__name__}, {reprlib.repr(value)}"


def shape_of(value: object) -> Any:
    """The shape of a tensor or symbol, None for extents that are not known; of nested ones, nested shapes."""
    if isinstance(value, (Tensor, Variable)):
        return known(value.shape)
    if isinstance(value, Symbol):
        return value.shape
    if isinstance(value, dict):
        return {key: shape_of(part) for key, part in value.items()}
    return [shape_of(part) for part in value] if isinstance(value, (list, tuple)) else None


def describe(value: object) -> Any:
    """A layer, an initializer... as its class's name and its configuration; what has none stays itself."""
    return description(value) if isinstance(value, Configured) else value


def check_rate(layer: Layer, name: str, rate: float) -> None:
    """Raise ArgumentError where the fraction that an argument says to drop is none."""
    if not 0 <= rate < 1:
        raise ArgumentError(layer.name, f"{name} is {rate!r}; it must be at least 0 and less than 1.")


def as_layer(layer: object) -> Any:
    """The layer that ``describe`` described, made of a class that there is; anything else is itself.

    Raises ArgumentError for an unknown name.
    """
    return described_of(Layer, layer, "layers") if isinstance(layer, dict) else layer


def check_last_extent(layer: Layer, value: Any, wanted: int, name: str = "input") -> None:
    """Raise ShapeError, which names the layer, where another last extent comes than the one it was built for."""
    if value.shape[-1] != wanted:
        raise ShapeError(layer.name, f"the {name} is {value.type}; the layer was built for a last extent of {wanted}.")


def last_extent(layer: Layer, shape: Shape | tuple[int | None, ...]) -> int:
    """The last extent of an input's shape.  Raises ShapeError, which names the layer, where there is none, or it is
    not known."""
    if not isinstance(shape, tuple) or not shape or shape[-1] is None:
        raise ShapeError(layer.name, f"the input has the shape {shape}; its last extent must be known.")
    extent: int = shape[-1]
    return extent
