"""`make`, `jit` and `Kernel`: from a call to its frontend, backend and plan.

A kernel is made once, without any device or framework. Its first call with tensors of a framework
generates a launch function (see `launch`); each new key of arguments is checked here, once, and
planned by the backend of the tensors' device.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ninetoothed.backends.base import Call, Device, Plan
from ninetoothed.errors import ArgumentError, ArrangementError, Location, caller_location, near
from ninetoothed.kernels.naming import all_symbols, default_name, default_symbols, named_symbols
from ninetoothed.launch.checks import check_choices, check_count, check_sequences, checked_call
from ninetoothed.parsing import parse
from ninetoothed.parsing.source import application_of
from ninetoothed.program.program import Program
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.symbols.leaf import Fresh
from ninetoothed.tensors.arrange import NO_VALUE, Arrangement, Parameter, arrange, pair
from ninetoothed.tensors.level import owner_of
from ninetoothed.tensors.tensor import Tensor

Integers = int | Sequence[int] | None


def make(
    arrangement: Callable[..., Any],
    application: Callable[..., Any],
    tensors: Sequence[Any],
    caller: str | None = None,
    kernel_name: str | None = None,
    output_dir: Any = None,
    num_warps: Integers = None,
    num_stages: Integers = None,
    max_num_configs: int | None = None,
) -> Kernel:
    """A kernel from an arrangement and an application. Paper, section 3.2.

    Args:
        arrangement: called once with ``tensors``; returns the arranged ones.
        application: what one program does with its tiles: a function written in Python, or a
            ``functools.partial`` that gives its last parameters by keyword.
        tensors: symbolic tensors; other values are handed through to the arrangement.
        caller: the name of a frontend; by default it is found from the arguments of a call.
        kernel_name: by default the application's name, or that of the arrangement's module where
            the application is called just ``application``.
        output_dir: where the generated source is written; by default a cache directory.
        num_warps: the number of warps of a program, or several to choose from.
        num_stages: the number of stages of software pipelining, or several to choose from.
        max_num_configs: how many configurations the tuner may consider.

    Raises:
        ArrangementError: a meta-operation does not fit, or the outermost shapes differ.
        ApplicationError: the application uses what cannot be compiled.
    """
    application = application_of(application)
    if isinstance(tensors, Tensor):
        raise ArrangementError(
            "`make` takes the tensors as a tuple: `make(arrangement, application, (tensor,))`",
            caller_location(),
        )
    tensors = tuple(tensors)
    names = default_symbols(arrangement)
    for symbol, name in names.items():
        if isinstance(symbol.leaf.owner, Fresh) and symbol.leaf.owner.label is None:
            symbol.leaf.owner.label = name
    return Kernel(
        arrange(arrangement, application, tensors),
        application,
        kernel_name or default_name(arrangement, application),
        names=names,
        caller=caller,
        output_dir=output_dir,
        num_warps=num_warps,
        num_stages=num_stages,
        max_num_configs=max_num_configs,
    )


def jit(application: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A kernel from a function whose parameters are annotated with arranged tensors.

    Takes the options of `make` by keyword: ``@jit`` or ``@jit(num_warps=4)``.
    """
    if application is None:
        return functools.partial(jit, **options)
    application = application_of(application)
    try:
        annotations = inspect.get_annotations(application, eval_str=True)
    except NameError as error:
        raise ArrangementError(
            f"the annotations of `{application.__name__}` are text, as `from __future__ import "
            f"annotations` makes them, and {error}: text knows no variables of functions around "
            "it. Leave the import out, or use `make`",
            Location(application.__code__.co_filename, application.__code__.co_firstlineno),
        ) from error
    parameters = inspect.signature(application).parameters
    missing = [name for name in parameters if name not in annotations]
    if missing:
        raise ArrangementError(
            f"`{application.__name__}` has no annotation for {', '.join(missing)}; @jit needs an "
            "arranged tensor as the annotation of every parameter",
            Location(application.__code__.co_filename, application.__code__.co_firstlineno),
        )
    arranged = [annotations[name] for name in parameters]
    for name, annotation in zip(parameters, arranged, strict=True):
        if isinstance(annotation, type):
            raise ArrangementError(
                f"`{name}` of `{application.__name__}` is annotated with the type "
                f"{annotation.__name__}; @jit needs an arranged tensor there: `Tensor(0)` for a number",
                Location(application.__code__.co_filename, application.__code__.co_firstlineno),
            )
    name = options.pop("kernel_name", None) or application.__name__
    return Kernel(pair(arranged, application), application, name, **options)


class Kernel:
    """A kernel, called with tensors; see `make`.

    A call takes tensors and scalars in order, then constexpr symbols. It writes in place and returns
    None, except where the arguments' framework cannot be written to: then its frontend says what
    comes back.

    Attributes:
        name: the kernel's name.
        application: the user's function.
        arrangement: parameters, grid and accesses.
        program: what one program does, as parsed.
        symbols: the constexpr symbols that a call gives, after the parameters.
        meta_symbols: the symbols that the tuner chooses.
        names: how each symbol, size and stride is called in generated code.
    """

    # A slot, so that a call reaches the launch function with no step of ours between.
    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]

    def __init__(
        self,
        arrangement: Arrangement,
        application: Callable[..., Any],
        name: str,
        names: Mapping[Symbol, str] | None = None,
        caller: str | None = None,
        output_dir: Any = None,
        num_warps: Integers = None,
        num_stages: Integers = None,
        max_num_configs: int | None = None,
    ) -> None:
        if not name.isidentifier():
            raise ArgumentError(f"kernel_name must be an identifier, not {name!r}")
        check_choices("num_warps", num_warps)
        check_choices("num_stages", num_stages)
        check_count("max_num_configs", max_num_configs)
        self.name = name
        self.application = application
        self.arrangement = arrangement
        self.output_dir = output_dir
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.max_num_configs = max_num_configs
        self.caller = caller
        if caller is not None:
            from ninetoothed.plugins import frontend_named

            frontend_named(caller)
        self.program: Program = parse(application, arrangement.parameters, name)
        check_sequences(self.program, arrangement)
        found = all_symbols(arrangement, self.program)
        self.meta_symbols = tuple(s for s in found if s.leaf.role == "symbol" and s.leaf.meta)
        inferred = {s for p in self.tensor_parameters for s in p.source.shape}
        ordered = dict.fromkeys([*(s for s in names or () if s in found), *found])
        self.symbols = tuple(
            s
            for s in ordered
            if s.leaf.role == "symbol"
            and not s.leaf.meta
            and (s.leaf.constexpr or s not in inferred)
        )
        self._check_sources(found)
        self.names = named_symbols(found, self.tensor_parameters, names or {}, self.program)
        #: What backends keep for this kernel, by what it is.
        self.memory: dict[str, Any] = {}
        self._plan_lock = threading.RLock()
        self._launchers: dict[str, Callable[..., Any]] = {}
        self._launchers_by_type: dict[type, Callable[..., Any]] = {}
        self.__call__ = self.dispatch
        functools.update_wrapper(self, application, assigned=("__module__", "__doc__"), updated=())

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        """The kernel itself, as of a function: modules that hold kernels can be copied."""
        return self

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(self.call_names)})>"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The application's parameters."""
        return self.arrangement.parameters

    @property
    def grid(self) -> tuple[Expression, ...]:
        """The outermost shape: one program runs for each element of it."""
        return self.arrangement.grid

    @property
    def tensor_parameters(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.kind == "tensor")

    @functools.cached_property
    def call_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a call gives arguments for."""
        return tuple(p for p in self.parameters if p.kind != "constant")

    @functools.cached_property
    def call_names(self) -> tuple[str, ...]:
        """The names of a call's arguments, in order."""
        return tuple(p.name for p in self.call_parameters) + tuple(
            self.names[symbol] for symbol in self.symbols
        )

    @functools.cached_property
    def defaults(self) -> dict[str, Any]:
        """The defaults of those arguments that may be left out."""
        return {
            p.name: p.value
            for p in self.call_parameters
            if p.kind == "constexpr" and p.value is not NO_VALUE
        }

    @functools.cached_property
    def optimized(self) -> Program:
        """The program after all passes."""
        from ninetoothed.passes import run

        return run(self.program)

    @functools.cached_property
    def source(self) -> str:
        """The generated Triton source, as it is with nothing known of the arguments."""
        from ninetoothed.backends.triton.printers.triton import emit

        return emit(self).text

    @functools.cached_property
    def source_path(self) -> Any:
        """A file with the generated source."""
        from ninetoothed.cache import write_source

        if self.output_dir is None:
            return write_source(self.name, self.source)
        from pathlib import Path

        path = Path(self.output_dir) / f"{self.name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source, encoding="utf-8")
        return path

    def environment(self, call: Call) -> dict[Symbol, int]:
        """The value of every size, stride and constexpr symbol in this call."""
        values: dict[Symbol, int] = {}
        for parameter in self.tensor_parameters:
            argument = call.arguments[parameter.name]
            source = parameter.source
            for symbol, value in zip(source.strides, argument.strides):
                values[as_symbol(symbol)] = value
            for size, value in zip(source.shape, argument.shape):
                if isinstance(size, Symbol) and size.op == "leaf":
                    values.setdefault(size, value)
        for symbol in self.symbols:
            values[symbol] = call.constants[self.names[symbol]]
        return values

    def verified_grid(self, environment: Mapping[Symbol, int]) -> tuple[int, ...]:
        """The grid for these values of all sizes and symbols.

        Raises:
            ArrangementError: the meta-operations do not fit these sizes, or the outermost shapes
                differ.
        """
        try:
            return self.arrangement.verify(lambda e: int(as_symbol(e).evaluate(environment)))
        except ArrangementError as error:
            # An operation points at the arrangement; without that, point at the call.
            location = error.location or caller_location()
            raise ArrangementError(f"kernel `{self.name}`: {error.message}", location) from None

    def new_plan(
        self, frontend: Any, given: Mapping[str, Any], values: tuple[Any, ...]
    ) -> tuple[Plan, Device]:
        """Checks the arguments of a new key and has its plan made.

        Args:
            given: for a tensor its (shape, strides, dtype, device, alignment) as the frontend has
                them (dtype and device None where the tensor is not touched), for a scalar its element type, for a constant its value; by name.
            values: what the plan's ``run`` will be given, stream first.
        """
        from ninetoothed.plugins import backend_for

        call = checked_call(self, frontend, given)
        with self._plan_lock:
            return backend_for(call.device.kind).plan(self, call, values), call.device

    def dispatch(self, *arguments: Any, **keywords: Any) -> Any:
        """Finds the frontend of the arguments and calls its launch function, now and from now on."""
        from ninetoothed.plugins import find_frontend, tell_of_changes

        tell_of_changes(self)
        bound = self.bind(arguments, keywords)
        frontend = self.frontend_of(bound)
        if self.caller is not None and frontend.name != self.caller:
            raise ArgumentError(
                f"kernel `{self.name}` was made with caller={self.caller!r}, but got tensors of "
                f"{frontend.name}"
            )
        launch = self.launch_function(frontend)
        with self._plan_lock:
            for type_ in {type(bound[p.name]) for p in self.tensor_parameters}:
                if find_frontend(type_) is frontend:
                    self._launchers_by_type[type_] = launch
            self.__call__ = launch if len(self._launchers) == 1 else self._launch_by_type
        return launch(**bound)

    def forget_launches(self) -> None:
        """Frontends are asked for again, and each key of arguments is planned anew.

        For when plugins came, went or are preferred now, or the tuner found something better.
        """
        # Without the lock: whoever changes plugins holds theirs, and `dispatch` asks for both.
        self._launchers = {}
        self._launchers_by_type = {}
        self.__call__ = self.dispatch

    def _launch_by_type(self, *arguments: Any, **keywords: Any) -> Any:
        """Calls the launch function of the first tensor, where several frameworks call."""
        known = self._launchers_by_type
        for values in (arguments, keywords.values()):
            for value in values:
                if value.__class__ in known:
                    return known[value.__class__](*arguments, **keywords)
        return self.dispatch(*arguments, **keywords)

    def launch_function(self, frontend: Any) -> Callable[..., Any]:
        """The launch function for tensors of a frontend, generated once."""
        from ninetoothed.launch.generate import generate

        with self._plan_lock:
            if frontend.name not in self._launchers:
                self._launchers[frontend.name] = generate(self, frontend)
            return self._launchers[frontend.name]

    def call_of(self, *arguments: Any, **keywords: Any) -> Call:
        """What a call with these arguments is to a backend; nothing is run.

        Raises:
            ArgumentError: the arguments do not fit.
        """
        from ninetoothed.launch.generate import described

        bound = self.bind(arguments, keywords)
        frontend = self.frontend_of(bound)
        given, _ = described(self, frontend, bound)
        return checked_call(self, frontend, given)

    def compile(
        self,
        *arguments: Any,
        target: Any,
        configuration: Mapping[str, int] | None = None,
        num_warps: int | None = None,
        num_stages: int | None = None,
        **keywords: Any,
    ) -> Any:
        """Compiles the kernel for a device that need not be there.

        Args:
            arguments, keywords: as in a call; the tensors may be on any device.
            target: ``("cuda", 90)``, ``("hip", "gfx942")``, …
            configuration: values of the meta symbols by name; by default each one's least.

        Returns:
            Triton's ``CompiledKernel``; its ``asm`` has the text of every stage.
        """
        from ninetoothed.backends.triton.planning.planner import compile_for_target

        call = self.call_of(*arguments, **keywords)
        return compile_for_target(self, call, target, configuration, num_warps, num_stages)

    def bind(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, with defaults.

        Raises:
            ArgumentError: there are too many or too few, or one has an unknown name.
        """
        names = self.call_names
        if len(arguments) > len(names):
            raise ArgumentError(self._takes(f"{len(arguments)} positional arguments were given"))
        free = [name for name in names if name not in keywords]
        without = [name for name in free if name not in self.defaults]
        # A constant with a default may be left out wherever it stands.
        targets = without if len(arguments) <= len(without) < len(free) else list(names)
        if len(arguments) == len(without):
            targets = without
        bound = dict(zip(targets, arguments))
        for name, value in keywords.items():
            if name not in names:
                raise ArgumentError(self._takes(f"{name!r} is not one of them.{near(name, names)}"))
            if name in bound:
                raise ArgumentError(self._takes(f"{name!r} was given twice"))
            bound[name] = value
        missing = [name for name in names if name not in bound and name not in self.defaults]
        if missing:
            raise ArgumentError(self._takes(f"missing: {', '.join(missing)}"))
        return {name: bound[name] if name in bound else self.defaults[name] for name in names}

    def untouched(self, bound: Mapping[str, Any]) -> frozenset[str]:
        """The tensor parameters that the program, with these constants, does not touch."""
        constants = {p.name: bound[p.name] for p in self.call_parameters if p.kind == "constexpr"}
        names = frozenset(p.name for p in self.tensor_parameters)
        return names - self.program.touched(constants)

    def frontend_of(self, bound: Mapping[str, Any]) -> Any:
        """The frontend of the tensors among the arguments.

        Raises:
            ArgumentError: there is none, or there are two.
        """
        from ninetoothed import plugins

        tensors = {p.name: bound[p.name] for p in self.tensor_parameters}
        for name in self.untouched(bound):
            if plugins.find_frontend(type(tensors[name])) is None and hasattr(
                tensors[name], "shape"
            ):
                del tensors[name]
        for name, value in tensors.items():
            if plugins.find_frontend(type(value)) is None:
                known = ", ".join(frontend.name for frontend in plugins.MANAGER.frontends())
                type_ = type(value)
                raise ArgumentError(
                    self._takes(
                        f"`{name}` must be a tensor, not {type_.__module__}.{type_.__qualname__}. "
                        f"There are frontends for {known or 'no framework'}; convert the argument, "
                        "or install the plugin of its framework"
                    )
                )
        frontend = plugins.frontend_of_arguments(tensors)
        if frontend is None:
            raise ArgumentError(self._takes("at least one of them must be a tensor that is used"))
        return frontend

    def _takes(self, found: str) -> str:
        listed = ", ".join(
            f"{name}={self.defaults[name]!r}" if name in self.defaults else name
            for name in self.call_names
        )
        return f"kernel `{self.name}` takes ({listed}); {found}"

    def _check_sources(self, symbols: Sequence[Symbol]) -> None:
        """Every size that is used must belong to a tensor that a call is given."""
        known = {id(p.source) for p in self.tensor_parameters}
        for symbol in symbols:
            if symbol.leaf.role not in ("size", "stride"):
                continue
            owner = owner_of(symbol)
            if owner is None or id(owner) not in known:
                raise ArrangementError(
                    f"the arrangement uses `{symbol}`, but the tensor that it belongs to is not "
                    f"among the arranged ones, so no call of `{self.name}` gives its value; return "
                    "that tensor too, and add a parameter for it",
                    Location(
                        self.application.__code__.co_filename,
                        self.application.__code__.co_firstlineno,
                    ),
                )
