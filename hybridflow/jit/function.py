"""hf.function: a Python function that is traced and compiled once per signature of its arguments."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from hybridflow import config, spans
from hybridflow.core import interop, layer_context, pytree, transaction
from hybridflow.core.call_binding import Binder, name_of, unwrapped
from hybridflow.core.context import current, now, return_to
from hybridflow.eager import nan_checks
from hybridflow.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeferredQuestionError,
    StringsWantedError,
    TraceEnd,
    TraceError,
    entered,
    of_user,
)
from hybridflow.jit import inspection
from hybridflow.jit.bound_method import BoundFunction, WeakMethod
from hybridflow.jit.cache_key import Key, LeafKey, leaf_key, spec_key
from hybridflow.jit.concrete_function import ConcreteFunction
from hybridflow.jit.donation import argument_paths
from hybridflow.jit.input_signature import InputSignature
from hybridflow.jit.instance_functions import Held, InstanceTable
from hybridflow.jit.native_entry import Refusal, native_call_for
from hybridflow.jit.python_wrappers import ConvertedResults, PythonWrapper, converted
from hybridflow.jit.retrace_log import Retrace
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.jit.trace_cache import CallForm, TraceCache, Variant
from hybridflow.jit.tracer import CallRequest, Options, Tracer
from hybridflow.runtime import tiers, uninterruptible
from hybridflow.runtime.calls import entry
from hybridflow.runtime.calls.entry import Dispatcher
from hybridflow.tracing.data_dependent_sizes import SizeKnownError, SizesWantedError

if TYPE_CHECKING:
    from hybridflow.jit import profiling, tuning
    from hybridflow.runtime.calls.native_call import NativeCall

_NO_ENTRY = "see the command `hybridflow doctor`"


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


def _by_route(method: Callable[..., T]) -> Callable[..., T]:
    """A method about calls with such arguments: that of the function by way of which they go."""

    @functools.wraps(method)
    def ask(self: Function[..., Any], *args: object, **kwargs: object) -> T:
        if self._route is None or current.trace is not None:
            try:
                return method(self, *args, **kwargs)
            except StringsWantedError as wanted:
                if current.trace is not None:
                    raise
                self._take_route(wanted)
        while True:
            arguments, named = self._route.arguments(args, kwargs)
            try:
                result: T = getattr(self._route.run, method.__name__)(*arguments, **named)
            except SizeKnownError as error:
                self._route.correct(error)  # sizes of the last call, which was another one
            else:
                return result

    return ask


class Function(Dispatcher, Generic[P, R]):
    """A callable that runs ``python`` compiled.

    Tensors and NumPy arrays are told apart by shape and dtype, Python scalars by type and value, nested lists, tuples
    and dicts by structure, variables and other objects by identity; each combination is traced and compiled once, and
    the ``cache_size`` least recently used ones are kept.  Extents and numbers that vary become open, see
    ``dynamic_shapes``. Inside another trace the body is inlined.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_binder",
        "_bindings",
        "_cache",
        "_instances",
        "_options",
        "_python",
        "_route",
        "_signature",
        "_tracer",
    )

    _bindings: Sequence[tuple[Callable[..., Any], Variant]] | None  # for calls under tapes; None: not made yet

    def __init__(self, python: Callable[..., Any], options: Options) -> None:
        self._python, self._options = python, options
        self._binder = Binder(python, options.name)
        self._signature = InputSignature(options.input_signature, self._binder) if options.input_signature else None
        self._cache = TraceCache(options.cache_size)
        self._tracer = Tracer(python, self._binder, options, self._cache)
        self._take_native_calls()
        self._instances = InstanceTable()
        self._route: Any = None  # by which calls go: see ``dynamic_output_sizes`` and ``string_calls``
        functools.update_wrapper(self, python, updated=())

    # Calling

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    def _call_slow(self, *args: object, **kwargs: object) -> Any:
        """A call that the native entry does not take: any arguments, any context."""
        if spans.recorder is None and not self._options.wait:
            return self._call_in_python(args, kwargs)
        with contextlib.ExitStack() as around:
            if spans.recorder is not None:
                around.enter_context(spans.span(self._options.name, "call"))
            if self._options.wait:
                around.enter_context(tiers.full())
            return self._call_in_python(args, kwargs)

    def _call_in_python(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        state = now()
        try:
            if state.trace is not None or config.functions_run_eagerly():
                return self._run_inline(args, kwargs)
            if state.narrow is not None:
                return self._run_inline(args, kwargs)  # a trace is for weights as they are
            if self._route is not None:
                return self._route(*self._as_declared(args, kwargs))
            if state.tapes and state.device is None:
                answered = self._answer_by_binding(args, kwargs)
                if answered is not None:
                    return answered[0]
            own_args, own_kwargs = self._import_foreign_arrays(args, kwargs)
            if own_args is not args or own_kwargs is not kwargs:
                return self(*own_args, **own_kwargs)
            request = self._request(args, kwargs)
            variant = self._tracer.lookup(request)
            if variant is not None:
                result = variant.concrete.call_leaves(request.leaves)
            elif self._tracer.may_trace(request):
                try:
                    variant, result = self._tracer.trace_and_call(request, lambda: self._run_inline(args, kwargs))
                finally:
                    self._take_native_calls()  # without those of a signature that was dropped for it
            else:
                return self._run_inline(args, kwargs)
        except (SizesWantedError, StringsWantedError) as wanted:
            if current.trace is not None:
                raise  # of the function that is traced
            self._take_route(wanted)
            return self._call_slow(*args, **kwargs)
        except DeferredQuestionError as error:
            return_to(state)
            if current.trace is not None or not self._pin_for_derivative(args, kwargs):
                raise of_user(error)  # noqa: B904  # the very error
            return self._call_slow(*args, **kwargs)
        except BaseException as error:
            return_to(state)
            raise of_user(error)  # noqa: B904  # the very error
        if variant is None:
            return result
        variant.python_calls += 1
        form = len(args), tuple(kwargs)
        if variant.guards is not None and variant.is_missed(form):
            self._add_native_call(variant, form, args, kwargs)
        return result

    def _pin_for_derivative(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Give calls with the extents of this one a trace of their own, as its derivative asks for them; whether they
        had none before."""
        if self._route is not None:
            return False
        pinned = self._tracer.pin_for_derivative(self._request(*self._import_foreign_arrays(args, kwargs)))
        self._take_native_calls()
        return pinned

    def _take_route(self, wanted: TraceEnd) -> None:
        """Let calls go by way of another function from now on: one that is given sizes which programs find, or codes
        in the place of texts."""
        options = self._options._replace(input_signature=None, donated=())
        if isinstance(wanted, StringsWantedError):
            string_calls = _string_calls()
            self._route = string_calls.StringCalls(Function(string_calls.OfCodes(self._python), options))
        else:
            from hybridflow.jit import dynamic_output_sizes

            sized = dynamic_output_sizes.Sized(self._python)
            run: Function[..., Any] = Function(sized, options)
            run._tracer.retraces.not_the_users = sized.parameter
            self._route = dynamic_output_sizes.SizedCalls(sized, run)

    def with_results(self, convert: Callable[[Any], Any]) -> Function[P, Any]:
        """A function with converted results.

        Args:
            convert: a function of the results of this one.

        Returns:
            A new function.
        """
        return Function(ConvertedResults(self._python, convert), self._options)

    @_by_route
    def expect(self, *args: object, **kwargs: object) -> None:
        """Say that calls with such arguments come beside others.

        Extents and numbers in which they differ are open from the first trace on, as they would be from the second.
        Nothing is traced or run.

        Args:
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            **kwargs: keyword arguments as in a call.
        """
        self._tracer.expect(self._request(*self._import_foreign_arrays(args, kwargs)))

    def _import_foreign_arrays(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with arrays in the place of those of other libraries; the very ones where there are none."""
        name = self._options.name
        return interop.adopted(args, name), interop.adopted(kwargs, name)

    def _answer_by_binding(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any] | None:
        """The result of a call under tapes, with a trace that native code finds; None where it finds none."""
        if self._bindings is None:
            if not entry.is_due():
                return None
            self._bindings = self._cache.bindings()
        for bind, variant in self._bindings:
            inputs = bind(*args, **kwargs)
            if inputs is not NotImplemented:
                concrete = variant.concrete
                arguments = [x for x in inputs if x is not None]
                if concrete.is_open and len(set(map(id, arguments))) < len(arguments):
                    return None  # see ``AliasRule``
                self._cache.note_use(variant)
                variant.python_calls += 1
                return (concrete.call_tensors(arguments),)
        return None

    def _run_inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the Python function itself; what it assigns is taken back if it raises, unless that goes into a trace."""
        args, kwargs = self._as_declared(args, kwargs)
        token = layer_context.enter_function()
        try:
            if current.trace is not None:
                root = current.trace.root
                checks = root.keeps_unread_checks  # which the function around decides
                try:
                    return converted(self._python, self._options.name)(*args, **kwargs)
                finally:
                    root.keeps_unread_checks = checks
            return transaction.run(lambda: self._python(*args, **kwargs))
        finally:
            layer_context.leave_function(token)

    def _as_declared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as what the input signature says they are."""
        if self._signature is None:
            return args, kwargs
        positional, kwargs = self._binder.split(self._signature.convert(self._binder.bind(args, kwargs)))
        return tuple(positional), kwargs

    def _add_native_call(self, variant: Variant, form: CallForm, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let native code answer calls like this one from now on, if it can; if it cannot, say why when it is so
        again."""
        native = self._native_call(variant, args, kwargs)
        if isinstance(native, Refusal):
            if variant.is_refused_again(form, native) and not native.is_wanted:
                _report().warn_refused(self._options.name, native)
            return
        variant.native_calls[form] = native
        self._take_native_calls()
        entry.when_enabled(_use_slots)
        problem = entry.problem() if variant.python_calls > 1 and entry.is_due() else None
        if variant.is_refused_again(form, Refusal(problem, _NO_ENTRY) if problem else None):
            _report().warn_refused("hybridflow", Refusal(problem or "", _NO_ENTRY))

    def _native_call(self, variant: Variant, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NativeCall | Refusal:
        """What answers such calls natively, or why nothing does."""
        if variant.guards is None:
            return Refusal("it is traced anew at each call")
        if variant.concrete.donation is not None:
            return Refusal("it takes over the memory of arguments", is_wanted=True)
        if nan_checks.is_on:
            return Refusal("hf.debugging.enable_check_numerics is on", is_wanted=True)
        return native_call_for(variant.concrete, variant.guards.program, self._binder_for(args, kwargs), args, kwargs)

    def _take_native_calls(self) -> None:
        """Let native code try what the cache holds now."""
        self._dispatch, self._bindings = self._cache.native_calls(), None

    def _request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallRequest:
        """A call as the cache of traces sees it."""
        if not self._binder.is_current(self._python):  # somebody gave it other defaults
            self._binder = self._tracer.binder = Binder(self._python, self._options.name)
        values = self._binder_for(args, kwargs).bind(args, kwargs)
        if self._signature is not None:
            return CallRequest(*self._signature.leaves_and_key(values))
        leaves, structure = pytree.flatten(values)
        return CallRequest(leaves, Key(structure, self._keys(leaves, structure)))

    def _binder_for(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Binder:
        return self._binder if self._signature is not None else self._binder.for_call(args, kwargs)

    def _keys(self, leaves: Sequence[Any], structure: pytree.Structure) -> tuple[LeafKey, ...]:
        name = self._options.name
        try:
            return tuple([leaf_key(leaf, "", name) for leaf in leaves])
        except (ArgumentTypeError, TypeError):
            # Again, with the paths that only an error message needs.
            paths = self._binder.of(structure).paths(structure)
            return tuple([leaf_key(leaf, path, name) for path, leaf in zip(paths, leaves)])

    @entered
    def get_concrete_function(self, *args: object, **kwargs: object) -> ConcreteFunction:
        """The concrete function for these arguments, made if need be.

        It is called with the tensors; what is not a tensor it knows.

        Args:
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            **kwargs: keyword arguments as in a call.

        Returns:
            The concrete function.

        >>> scaled = hf.function(lambda x, n: n * x).get_concrete_function(hf.TensorSpec([None], name="value"), 3)
        >>> scaled(hf.constant([1.0, 2.0])).tolist(), scaled(value=hf.constant([1.0])).tolist()
        ([3.0, 6.0], [3.0])
        """
        args, kwargs = self._import_foreign_arrays(args, kwargs)
        try:
            return self._concrete_function(args, kwargs)
        except StringsWantedError as wanted:
            if not isinstance(self._route, _string_calls().StringCalls):
                self._take_route(wanted)
            specs = self._signature.nested() if self._signature is not None and not args and not kwargs else args
            result: ConcreteFunction = self._route.concrete(tuple(specs), kwargs)
            return result

    def _concrete_function(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ConcreteFunction:
        if self._signature is not None and not args and not kwargs:
            request = CallRequest(*self._signature.own_key())
        elif self._signature is not None:
            request = self._request(args, kwargs)
        else:
            leaves, structure = pytree.flatten(self._binder_for(args, kwargs).bind(args, kwargs))
            paths = self._binder.of(structure).paths(structure)
            keys = tuple(
                spec_key(leaf) if isinstance(leaf, TensorSpec) else leaf_key(leaf, path, self._options.name)
                for path, leaf in zip(paths, leaves)
            )
            request = CallRequest(leaves, Key(structure, keys))
        concrete = self._specialise(request.leaves, request.key)
        concrete.specialise = self._specialise
        concrete.known.name_tensors(request.leaves if self._signature is None else self._signature.specs)
        return concrete

    @entered
    def compile(self, *args: object, **kwargs: object) -> ConcreteFunction:
        """Compile for these arguments ahead of calls, on all cores, to the fastest code; nothing is run.

        No call waits for that code otherwise: a first call that is short starts with code that is compiled quickly, and
        the fastest is compiled while others run. After ``compile`` the first call has it.

        Args:
            *args: what calls will be given; a TensorSpec may stand for each tensor.
            **kwargs: the same by name.

        Returns:
            The concrete function, as from ``get_concrete_function``.

        Raises:
            TraceError: inside of another trace, or where the function cannot be traced.
            ArgumentTypeError: for arguments that it does not take.

        Example:
            >>> double = hf.function(lambda x: 2 * x)
            >>> concrete = double.compile(hf.TensorSpec([3]))
            >>> double(hf.ones(3)).tolist(), len(double.signatures())
            ([2.0, 2.0, 2.0], 1)
        """
        if current.trace is not None:
            raise TraceError("compile", "it compiles ahead of calls, and this is part of a trace. Call it outside.")
        with tiers.full():
            concrete = self.get_concrete_function(*args, **kwargs)
            concrete.staged.finish()
        return concrete

    def _answering(self, request: CallRequest) -> ConcreteFunction:
        """What such a call runs."""
        variant = self._tracer.lookup(request)
        return variant.concrete if variant else self._specialise(request.leaves, request.key)

    def _specialise(self, leaves: Sequence[Any], key: Key) -> ConcreteFunction:
        """What answers calls with these leaves; for a concrete function: where an open extent is 0 or 1, where dicts
        are in another order, and where one tensor is in two places."""
        concrete = self._tracer.concrete(CallRequest(leaves, key))
        self._take_native_calls()
        return concrete

    # Methods of classes

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(self: Function[Concatenate[S, Q], R], instance: S, owner: type | None = None) -> Function[Q, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """The function of one instance, with a cache of its own that lives as long as the instance."""
        if instance is None:
            return self
        function = self._instances.get(instance)
        if function is None:
            try:
                function = self._instances.add(instance, self._of_instance)
            except TypeError:
                raise ArgumentTypeError(
                    self._options.name,
                    f"instances of {type(instance).__name__} cannot be weakly referenced, so a method of theirs cannot "
                    "be an hf.function. Add '__weakref__' to the class's __slots__.",
                ) from None
        return BoundFunction(function, instance)

    def _of_instance(self, reference: weakref.ref[Any]) -> Function:
        return Function(WeakMethod(self._python, reference), self._options)

    def unwrapped(self) -> tuple[Callable[..., Any], Any]:
        """The user's function, and a weak reference to the instance of a method.

        Returns:
            A pair; None in the place of an instance that there is none of.
        """
        return unwrapped(self._python)

    # Copies, as of Python's own functions

    def __copy__(self) -> Function:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        """Itself, but for a method of an object that is copied along: that becomes a function of the copy."""
        python = copy.deepcopy(self._python, memo)
        return self if python is self._python else Function(python, self._options)

    def __reduce__(self) -> Any:
        """Pickled by name, so it must be importable; else by what it was made of, where the pickler sends Python's
        functions by value, as cloudpickle's does."""
        name = getattr(self, "__qualname__", self._options.name)
        pickler = sys._getframe(1).f_locals.get("self")
        by_value = hasattr(pickler, "reducer_override") and not isinstance(self._python, WeakMethod)
        if not by_value or self._is_importable(name):
            return name
        # Made before what it is made of, which may refer to it.
        return object.__new__, (Function,), (self._python, self._options), None, None, _restore

    def _is_importable(self, name: str) -> bool:
        """Whether another process finds the function by its name."""
        module = getattr(self, "__module__", "__main__")
        value: object = None if module == "__main__" else sys.modules.get(module)
        for part in name.split("."):
            value = getattr(value, part, None)
        return value is self

    # Looking inside

    @entered
    @_by_route
    def explain(self, *args: object, **kwargs: object) -> inspection.Explanation:
        """What these arguments run: the signature, its program, kernels, memory, and why it was traced again.

        Args:
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            **kwargs: keyword arguments as in a call.

        Returns:
            An explanation, which prints as text.

        >>> double = hf.function(lambda x: 2 * x)
        >>> "f32[3]" in str(double.explain(hf.ones(3)))
        True
        """
        concrete = self._concrete_function(*self._import_foreign_arrays(args, kwargs))
        variant = self._cache.variant_of(concrete)
        if variant is None:
            return inspection.explain(concrete, self.retraces())
        return inspection.explain(concrete, self.retraces(), variant.guards, self._refusal(variant, args, kwargs))

    def _refusal(self, variant: Variant, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Refusal | None:
        """Why calls with such arguments go by way of Python; None where native code answers them."""
        adopted, named = self._import_foreign_arrays(args, kwargs)
        is_declared = self._signature is not None and not args and not kwargs  # see ``get_concrete_function``
        if is_declared or any(isinstance(leaf, TensorSpec) for leaf in pytree.flatten((adopted, named))[0]):
            return variant.refusal
        result = self._native_call(variant, adopted, named)
        if isinstance(result, Refusal):
            return result
        problem = entry.problem()
        return None if problem is None else Refusal(problem, _NO_ENTRY)

    @entered
    def ir(self, *args: object, stage: str = "traced", **kwargs: object) -> inspection.Text:
        """The program of these arguments as text.

        Args:
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            stage: "traced", "optimized", "llvm" or "asm".
            **kwargs: keyword arguments as in a call.

        Returns:
            A text, which prints as lines.

        Raises:
            ArgumentError: for another stage.

        >>> "multiply" in hf.function(lambda x: 2 * x).ir(hf.ones(3))
        True
        """
        return inspection.ir(self._program(*args, **kwargs), stage)

    def experimental_get_compiler_ir(self, *args: object, **kwargs: object) -> Callable[..., inspection.Text]:
        """The text of the program as TensorFlow's programs ask for it; here it is ``f.ir``.

        Args:
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            **kwargs: keyword arguments as in a call.

        Returns:
            A function of the stage: "hlo" is the graph as traced, "optimized_hlo" as fusion sees it.

        >>> double = hf.function(lambda x: 2 * x)
        >>> double.experimental_get_compiler_ir(hf.ones((2,)))("hlo") == double.ir(hf.ones((2,)))
        True
        """
        stages = {"hlo": "traced", "optimized_hlo": "optimized"}

        def text(stage: str = "hlo") -> inspection.Text:
            return self.ir(*args, stage=stages.get(stage, stage), **kwargs)

        return text

    @entered
    def kernels(self, *args: object, **kwargs: object) -> inspection.Table:
        """The kernels of the signature of these arguments; without arguments, of all signatures.

        Args:
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            **kwargs: keyword arguments as in a call.

        Returns:
            A table, which prints as text.

        >>> len(hf.function(lambda x: hf.sum(hf.exp(x))).kernels(hf.ones(1000)))
        1
        """
        return inspection.kernels(self._chosen(args, kwargs))

    @entered
    def memory_plan(self, *args: object, **kwargs: object) -> inspection.Table:
        """The buffers of the signature of these arguments; without arguments, of all signatures.

        Args:
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            **kwargs: keyword arguments as in a call.

        Returns:
            A table, which prints as text.
        """
        return inspection.memory_plan(self._chosen(args, kwargs))

    @entered
    @_by_route
    def profile(self, *args: object, runs: int | None = None, **kwargs: object) -> profiling.Profile:
        """The time that each kernel takes in a call with these arguments: see ``Profile``.

        It runs on the CPU.  Variables keep the values that they have.

        Args:
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            runs: the number of calls; by default as many as a quarter of a second has room for.
            **kwargs: keyword arguments as in a call.

        Returns:
            A profile, which prints as text.

        >>> @hf.function
        ... def f(x):
        ...     return hf.sum(hf.exp(x))
        ...
        >>> profile = f.profile(hf.ones(1000), runs=10)
        >>> [kernel["ops"] for kernel in profile.kernels]
        [('exp', 'sum')]
        """
        from hybridflow.jit import profiling

        request = self._measured_request("profile", args, kwargs)
        concrete = self._answering(request)
        variant = self._cache.variant_of(concrete)
        refusal = None if variant is None else self._refusal(variant, args, kwargs)
        return profiling.profile(concrete, request.leaves, runs, refusal)

    @entered
    @_by_route
    def tune(self, *args: object, runs: int | None = None, **kwargs: object) -> tuning.Tuning:
        """Auto-tuning: time the schedules of each kernel of a call with these arguments, and keep the best ones.

        All schedules give the same bits.  The best ones are kept in a file of the disk cache, one for each CPU model.
        Every program that is compiled from then on has them where its kernels are the same.  The function is compiled
        again at its next call.

        Args:
            *args: what a call takes; tensors lie on the CPU. Variables keep the values that they have.
            runs: how often each schedule is run; None for two seconds in all.
            **kwargs: what a call takes by name.

        Returns:
            A ``Tuning``: for each kernel with several schedules the best one, what it takes, and what the usual one
            took.

        Raises:
            ArgumentError: ``runs`` is less than 1.
            ArgumentTypeError: an argument is a ``TensorSpec``.
            DeviceError: the call would not run on the CPU.
            TraceError: it is called while a function is traced.

        Example:
            >>> f = hf.function(lambda x, y: x @ y)
            >>> x = hf.ones((30, 40))
            >>> tuning = f.tune(x, x.T, runs=2)
            >>> [kernel["kernel"] for kernel in tuning.kernels]
            ['matmul']
        """
        from hybridflow.jit import tuning

        request = self._measured_request("tune", args, kwargs)
        tuning_result = tuning.tune(self._answering(request), request.leaves, runs)
        self.cache_clear()
        return tuning_result

    def _measured_request(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments of a call that is run to be measured."""
        if current.trace is not None:
            raise TraceError(name, "it runs the function, which has no values here. Call it outside.")
        request = self._request(*self._import_foreign_arrays(args, kwargs))
        if any(isinstance(leaf, TensorSpec) for leaf in request.leaves):
            raise ArgumentTypeError(name, "it runs the function. Pass tensors, not a TensorSpec.")
        return request

    @entered
    def diff(
        self, other: Function[..., Any], *args: object, stage: str = "optimized", **kwargs: object
    ) -> inspection.Text:
        """What the program of these arguments has that ``other``'s has not, and the other way round, as a unified
        diff.

        It is empty where both compute the same in the same order.  Values are called by how many lines above they are
        made.  Stages: "traced" and "optimized".

        Args:
            other: another function of ``hf.function``.
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            stage: "traced" or "optimized".
            **kwargs: keyword arguments as in a call.

        Returns:
            A text, which is empty where both compute the same in the same order.

        Raises:
            ArgumentError: for another stage.
            ArgumentTypeError: where ``other`` is no such function.

        >>> f, g = hf.function(lambda x: hf.exp(x)), hf.function(lambda x: hf.log(x))
        >>> [line for line in f.diff(g, hf.ones(2)).splitlines() if "exp" in line]
        ['-  f32[2] = exp(%0)']
        """
        if stage not in ("traced", "optimized"):
            raise ArgumentError("diff", f"stage is {stage!r}; it is 'traced' or 'optimized'.")
        if not isinstance(other, Function):
            raise ArgumentTypeError("diff", f"{other!r:.60} is no function of hf.function.")
        programs = [one._program(*args, **kwargs) for one in (self, other)]
        return inspection.diff(programs[0], programs[1], stage)

    @entered
    def report(self, path: str | os.PathLike[str], *args: object, runs: int | None = None, **kwargs: object) -> None:
        """Write a page about a call with these arguments into an HTML file.

        It shows the times of kernels, those alike in one row, and of lines of the source; memory, and why it was traced
        again.

        The page holds all that it shows: it runs no scripts, and asks nothing of the network.  The function is run as
        ``profile`` runs it.

        Args:
            path: the path of the file.
            *args: arguments as in a call, in which a TensorSpec may stand for each tensor.
            runs: the number of calls; by default as many as a quarter of a second has room for.
            **kwargs: keyword arguments as in a call.

        Raises:
            OSError: where the file cannot be written.

        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "f.html")
        >>> hf.function(lambda x: hf.sum(hf.exp(x))).report(path, hf.ones(1000), runs=3)
        >>> os.path.getsize(path) > 1000
        True
        """
        from hybridflow.jit import report  # which few programs need

        profile, explanation = self.profile(*args, runs=runs, **kwargs), self.explain(*args, **kwargs)
        report.write(path, report.of_function(self._answered_by(*args, **kwargs), explanation, profile))

    @_by_route
    def _answered_by(self, *args: object, **kwargs: object) -> ConcreteFunction:
        """What a call with such arguments runs."""
        return self._answering(self._request(*self._import_foreign_arrays(args, kwargs)))

    def signatures(self) -> inspection.Table:
        """One row per signature in the cache.

        Returns:
            A table, which prints as text.
        """
        if self._route is not None:
            return self._route.run.signatures()
        return inspection.signatures([(v.concrete, v.hits, v.refusal) for v in self._cache.variants()])

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The signatures in the cache as text, as TensorFlow's programs ask for it: ``str(f.signatures())``.

        Args:
            verbose: ignored.

        Returns:
            A text.
        """
        return str(self.signatures())

    def retraces(self) -> list[Retrace]:
        """Why it was traced again, oldest first.

        Returns:
            A list of records, each of which prints as a sentence.

        >>> double = hf.function(lambda x: 2 * x)
        >>> _ = double(hf.ones(3)), double(hf.constant([1, 2]))
        >>> len(double.retraces())
        1
        """
        if self._route is not None:
            return self._route.run.retraces()
        return list(self._tracer.retraces.records)

    def concrete_functions(self) -> list[ConcreteFunction]:
        """The concrete functions in the cache, oldest first.

        Returns:
            A list of concrete functions.
        """
        if self._route is not None:
            return self._route.run.concrete_functions()
        return [variant.concrete for variant in self._cache.variants()]

    def _valid_concrete_functions(self) -> list[ConcreteFunction]:
        """Those of ``concrete_functions`` that answer calls now: what they read from outside is as it was."""
        return [variant.concrete for variant in self._cache.valid_variants()]

    def cache_clear(self) -> None:
        """Forget all signatures; the next call traces again."""
        self._cache.clear()
        self._route = None
        self._take_native_calls()
        self._tracer.clear()

    def _chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[ConcreteFunction]:
        return [self._program(*args, **kwargs)] if args or kwargs else self.concrete_functions()

    @_by_route
    def _program(self, *args: object, **kwargs: object) -> ConcreteFunction:
        """What calls with such arguments run; where they find sizes, with those of the last call."""
        return self._concrete_function(*self._import_foreign_arrays(args, kwargs))

    @property
    def holds_objects(self) -> bool:
        """Whether what was traced keeps objects of the user's: see ``instance_functions``."""
        return self._tracer.holds_objects

    @property
    def python_function(self) -> Callable[..., Any]:
        """The function as it was before the decorator."""
        python = self._python
        while isinstance(python, PythonWrapper):
            python = python._python
        return python

    @property
    def input_signature(self) -> tuple[Any, ...] | None:
        return self._options.input_signature

    def __repr__(self) -> str:
        variants = self._cache.variants()
        parts = [_count(len(variants), "trace"), _count(sum(variant.hits for variant in variants), "hit")]
        parts += [f"called by way of Python, since {v.refusal.reason}" for v in variants if v.refusal is not None][:1]
        last = self._tracer.retraces.describe_last(self._cache.count_calls())
        if self._route is not None:
            return f"<function {self._options.name}, whose calls {self._route.means}: {self._route.run!r}>"
        return f"<function {self._options.name}: {', '.join(parts + [last] * bool(last))}>"


@uninterruptible.loaded
def _string_calls() -> ModuleType:
    from hybridflow.jit import string_calls  # which few programs need

    return string_calls


@uninterruptible.loaded
def _report() -> Any:
    from hybridflow.jit import guard_report  # where there is something to say

    return guard_report


def _restore(function: Function[..., Any], made_of: tuple[Any, ...]) -> None:
    function.__init__(*made_of)  # type: ignore[misc]


@uninterruptible.once
def _use_slots() -> bool:
    """Let native code call functions and take them from instances, where it can."""
    return _method_slots().install(Function, BoundFunction, InstanceTable, Held)


@uninterruptible.loaded
def _method_slots() -> ModuleType:
    from hybridflow.runtime.calls import method_slots

    return method_slots


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


@overload
def function(
    python: Callable[P, R],
    *,
    input_signature: Iterable[Any] | None = None,
    fastmath: bool = False,
    cache_size: int = 64,
    name: str | None = None,
    strict: bool = False,
    reduce_retracing: bool = True,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    wait: bool = False,
) -> Function[P, R]: ...
@overload
def function(
    python: None = None,
    *,
    input_signature: Iterable[Any] | None = None,
    fastmath: bool = False,
    cache_size: int = 64,
    name: str | None = None,
    strict: bool = False,
    reduce_retracing: bool = True,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    wait: bool = False,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
@entered
def function(
    python: Callable[..., Any] | None = None,
    *,
    input_signature: Iterable[Any] | None = None,
    fastmath: bool = False,
    cache_size: int = 64,
    name: str | None = None,
    strict: bool = False,
    reduce_retracing: bool = True,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    wait: bool = False,
) -> Any:
    """Compile a Python function: ``@hf.function``, or ``@hf.function(input_signature=[...])``.

    The function is traced at its first call, and again for arguments with new dtypes, ranks or Python values. When a
    dimension or a Python number takes a second value it becomes symbolic, and one trace then serves all values. The
    values 0, 1 and negative ints keep their own traces. So do numbers that the code needs as such, as in ``range(n)``.

    What the function reads from outside (globals, closures, attributes, items) is guarded: a changed value causes a new
    trace. Some reads cannot be guarded, such as a call of ``time.time``. Some effects must happen at each call, such as
    appending to a list outside. Then a warning says so once, and the function is traced at each call.

    A call that raises leaves every variable as it was. Works on functions, methods, lambdas and any other callable.

    A short first call runs code that is compiled quickly. Another thread compiles faster code with the same bits, which
    replaces it.

    A donated argument gives up its memory, as in JAX: a result of the same shape and dtype may reuse it. Using the
    tensor afterwards raises a DonatedError (a RuntimeError) that names the call. Shared memory is never overwritten:
    NumPy and DLPack arrays, views, variables, the same tensor passed twice. If a donation has no effect, a warning
    says so once. Nothing is donated by calls that raise, run eagerly, or run inside another function or under a tape.

    Args:
        python: the function; None where the decorator is called with options alone.
        input_signature: a TensorSpec, or a nest of them, for each parameter. Then one trace serves all calls;
            dimensions given as None are symbolic. Sizes 0 and 1 get their own traces.
        fastmath: whether the compiled program may differ from eager execution in the last bits.
        cache_size: how many signatures are kept.
        name: the name in messages.
        strict: whether a read that cannot be guarded raises a TraceError. It also traces twice, and raises one if the
            traces differ.
        reduce_retracing: whether dimensions and numbers that vary become symbolic. If not, each value gets its own
            trace.
        donate_argnums: the positions of the arguments that are donated.
        donate_argnames: the names of the arguments that are donated.
        wait: whether first calls wait for the faster code, as after :meth:`Function.compile`.

    Returns:
        A callable with the same arguments, and with ``explain``, ``ir``, ``kernels``, ``profile``, ``retraces`` and
        more. A decorator if ``python`` is None.

    >>> @hf.function
    ... def f(x):
    ...     return hf.sum(x * x)
    ...
    >>> f(hf.asarray([1.0, 2.0]))
    <Tensor f32[] cpu> 5.0
    """
    if python is None:
        return functools.partial(
            function,
            input_signature=input_signature,
            fastmath=fastmath,
            cache_size=cache_size,
            name=name,
            strict=strict,
            reduce_retracing=reduce_retracing,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            wait=wait,
        )
    if isinstance(python, (classmethod, staticmethod)):
        name = type(python).__name__
        raise ArgumentTypeError("function", f"write @{name} above @hf.function, so that it is applied last.")
    if not callable(python):
        raise ArgumentTypeError(
            "function", f"{python!r} is not callable. Decorate a function, or pass options by keyword."
        )
    if inspect.isgeneratorfunction(python) or inspect.iscoroutinefunction(python) or inspect.isasyncgenfunction(python):
        raise ArgumentTypeError(
            "function",
            f"{name_of(python)} is a generator or a coroutine: its body runs after the call. Return a list or a tuple.",
        )
    if cache_size < 1:
        raise ArgumentError("function", f"cache_size must be at least 1, got {cache_size}.")
    code = getattr(python, "__code__", None)
    if code is not None and code.co_filename.startswith("<"):  # typed, or given to exec: the text may soon be gone
        from hybridflow.autograph.source import lookup

        lookup.remember(python)  # type: ignore[arg-type]
    if isinstance(input_signature, TensorSpec):
        raise ArgumentTypeError("function", f"input_signature is {input_signature}; give a list of one per parameter.")
    signature = None if input_signature is None else tuple(input_signature)
    name = name or name_of(python)
    donated = argument_paths(python, name, donate_argnums, donate_argnames)
    return Function(python, Options(signature, fastmath, cache_size, name, strict, reduce_retracing, donated, wait))
