"""Which dtype layers compute in, and which one their weights are held in: ``hf.mixed_precision.Policy``."""

from __future__ import annotations

from typing import Any

from hybridflow.compiler.ir import dtypes
from hybridflow.core.promotion import to_dtype
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, DTypeError, entered
from hybridflow.quantize.scheme import Scheme

_MIXED = "mixed_"


class Policy:
    """Dtype policy: the dtype that a layer computes in, and the one that its weights are held in.

    Layers take a policy, or its name, as ``dtype``.

    Args:
        name: ``"mixed_float16"`` or ``"mixed_bfloat16"``, for weights of float32 that are converted when they are used.
            Or a dtype's name, for both.  With a scheme of ``hf.quantize`` and "_from_" before it, as in
            ``"int8_from_float32"``, layers are built with quantized weights, to be loaded.

    Raises:
        ArgumentError: for another name.

    >>> policy = hf.mixed_precision.Policy("mixed_float16")
    >>> policy.compute_dtype, policy.variable_dtype
    (dtype('float16'), dtype('float32'))
    """

    def __init__(self, name: Any) -> None:
        self._scheme: Scheme | None = None
        if isinstance(name, str) and "_from_" in name:
            scheme, _, name = name.partition("_from_")
            self._scheme = Scheme.parse(scheme)
        mixed = isinstance(name, str) and name.startswith(_MIXED)
        self._compute: object
        try:
            self._compute = to_dtype(name[len(_MIXED) :] if mixed else name, "Policy")
        except DTypeError:
            self._compute = None
        if self._compute is None or (mixed and not dtypes.is_narrow_float(self._compute)):
            raise ArgumentError(
                "Policy",
                f"{name!r} is no policy; give 'mixed_float16', 'mixed_bfloat16', or a dtype such as 'float32'.",
            )
        self._variable = dtypes.float32 if mixed else self._compute
        self._floats = f"{_MIXED}{self._compute.name}" if mixed else self._compute.name
        self._name = self._floats if self._scheme is None else f"{self._scheme.name}_from_{self._floats}"

    def quantized(self, scheme: Scheme) -> Policy:
        """The policy of a layer that has this one, and whose weights are quantized.

        Args:
            scheme: how its weights are quantized.

        Returns:
            A policy of the same floats.
        """
        return Policy(f"{scheme.name}_from_{self._floats}")

    @property
    def scheme(self) -> Scheme | None:
        """How weights are quantized, or None."""
        return self._scheme

    @property
    def name(self) -> str:
        """What the policy is made of again: ``"mixed_float16"``."""
        return self._name

    @property
    def compute_dtype(self) -> Any:
        """The dtype of inputs and results, and of weights where they are used."""
        return self._compute

    @property
    def variable_dtype(self) -> Any:
        """The dtype that weights are held in."""
        return self._variable

    @property
    def is_mixed(self) -> bool:
        """Whether weights are held in another dtype than that of computations."""
        return self._compute != self._variable

    def get_config(self) -> dict[str, Any]:
        """The arguments that make another one like this.

        Returns:
            A dict with the name.
        """
        return {"name": self._name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Policy:
        """An instance with the arguments that ``get_config`` returned.

        Args:
            config: what ``get_config`` returned.

        Returns:
            A new policy.
        """
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and other._name == self._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"<Policy {self._name!r}>"


_global = Policy("float32")


@entered
def set_global_policy(policy: object) -> None:
    """Set the dtype policy of layers that are made from now on without a ``dtype``.

    Args:
        policy: an ``hf.mixed_precision.Policy``, or its name.

    Returns:
        None.

    Raises:
        ArgumentError: for another name.

    >>> hf.mixed_precision.set_global_policy("mixed_bfloat16")
    >>> hf.layers.Dense(2)(hf.ones((1, 3))).dtype
    dtype(bfloat16)
    >>> hf.mixed_precision.set_global_policy("float32")
    """
    global _global
    _global = as_policy(policy)


def global_policy() -> Policy:
    """The dtype policy of layers that are made without a ``dtype``.

    Returns:
        A policy: float32 unless ``hf.mixed_precision.set_global_policy`` says otherwise.

    >>> hf.mixed_precision.global_policy()
    <Policy 'float32'>
    """
    return _global


def as_policy(policy: object) -> Policy:
    """A policy, or the one that a name, a dtype, or the description of one means."""
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, dict):
        return Policy.from_config(policy.get("config", policy))
    return Policy(policy)


def policy_of(dtype: DTypeLike | Policy | None) -> Policy:
    """The policy of a layer that was given this ``dtype``."""
    return _global if dtype is None else as_policy(dtype)
