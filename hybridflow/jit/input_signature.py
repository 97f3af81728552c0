"""What an ``input_signature`` says: to what arguments are converted, and against what they are checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hybridflow.core import pytree
from hybridflow.core.call_binding import Binder
from hybridflow.core.promotion import weak_kind
from hybridflow.core.string_tensor import is_string
from hybridflow.core.tensor import Tensor
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError, DTypeError, SignatureError, StringsWantedError
from hybridflow.jit.cache_key import Key, TensorKey, check_names, leaf_key
from hybridflow.jit.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from hybridflow.core.type_aliases import ArrayLike


_TENSOR_PLACEHOLDER = object()  # the leaf that stands for a TensorSpec while tracing


class InputSignature:
    """The ``input_signature``: what arguments are converted to and checked against."""

    __slots__ = ("_binder", "_is_named", "_keys", "_structures", "specs")

    def __init__(self, specs: Sequence[Any], binder: Binder) -> None:
        spec_count, specs = len(specs), binder.gathered(specs)
        if len(specs) > len(binder.parameters):
            raise ArgumentError(
                binder.name, f"input_signature has {spec_count} entries for {len(binder.parameters)} parameters."
            )
        self._binder = binder
        flat = [pytree.flatten(spec) for spec in specs]
        for name, (leaves, structure) in zip(binder.parameters, flat):
            for path, leaf in zip(pytree.paths(structure, name), leaves):
                if not isinstance(leaf, TensorSpec):
                    raise ArgumentTypeError(binder.name, f"input_signature: {path} is {leaf!r}; give an hf.TensorSpec.")
        self._structures = [structure for _, structure in flat]
        self.specs = [leaf for leaves, _ in flat for leaf in leaves]
        self._keys = tuple(TensorKey(spec.shape, spec.dtype) for spec in self.specs)
        self._is_named = any(key.is_named for key in self._keys)

    def own_key(self) -> tuple[list[Any], Key]:
        """The key when every parameter is in the signature or has a default."""
        stand_ins = [pytree.unflatten(s, [_TENSOR_PLACEHOLDER] * s.leaves) for s in self._structures]
        args, kwargs = self._binder.split(tuple(stand_ins))
        values = self._binder.bind(tuple(args), kwargs)
        return self._key(pytree.flatten(values)[0], values)

    def nested(self) -> list[Any]:
        """The specs, nested as they were given."""
        specs = iter(self.specs)
        return [pytree.unflatten(s, [next(specs) for _ in range(s.leaves)]) for s in self._structures]

    def leaves_and_key(self, values: tuple[Any, ...]) -> tuple[list[Any], Key]:
        values = self.convert(values)
        return self._key(pytree.flatten(values)[0], values)

    def _key(self, leaves: list[Any], values: tuple[Any, ...]) -> tuple[list[Any], Key]:
        if any(is_string(spec.dtype) for spec in self.specs):
            raise StringsWantedError
        structure = pytree.flatten(values)[1]
        paths = self._binder.paths(structure)
        spec_count = len(self._keys)
        rest = tuple(leaf_key(v, p, self._binder.name) for p, v in zip(paths[spec_count:], leaves[spec_count:]))
        if self._is_named:
            check_names(self._binder.name, paths, self._keys, leaves)
        keys = [k.for_shape(x.shape) if isinstance(x, Tensor) else k for k, x in zip(self._keys, leaves)]
        return leaves, Key(structure, (*keys, *rest))

    def convert(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with tensors where the signature has specs.  Raises an error that names what does not fit."""
        out: list[Any] = []
        specs = iter(self.specs)
        for name, structure, value in zip(self._binder.parameters, self._structures, values):
            try:
                parts = pytree.flatten_up_to(structure, value, name)
            except ValueError as error:
                raise ArgumentTypeError(self._binder.name, f"{error} by the input_signature.") from None
            leaves = [self._tensor(p, v, next(specs)) for p, v in parts]
            out.append(pytree.unflatten(pytree.ordered_like(structure, value), leaves))
        return (*out, *values[len(out) :])

    def _tensor(self, path: str, value: ArrayLike, spec: TensorSpec) -> Tensor:
        is_weak = weak_kind(value) is not None or isinstance(value, (list, tuple))
        is_weak = is_weak or is_string(spec.dtype)
        tensor = as_tensor(value, self._binder.name, spec.dtype if is_weak else None)
        if tensor.dtype != spec.dtype:
            raise DTypeError(
                self._binder.name, f"{path} is {tensor.type}; the input_signature says {spec}. Convert it with "
                f"hf.astype({path}, hf.{spec.dtype})."
            )  # fmt: skip
        if not spec.accepts_shape(tensor.shape):
            raise SignatureError(
                self._binder.name, f"{path} is {tensor.type}; the input_signature says {spec}. Reshape or pad it, or "
                "have the input_signature say None for extents that vary."
            )  # fmt: skip
        return tensor
