"""The callable kernel: from a call to its frontend, backend and plan.

A kernel is made once, without any device or framework. Its first call with tensors of a framework
generates a launch function (see `generate`); each new key of arguments is checked here, once, and
planned by the backend of the tensors' device.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ninetoothed import plugins, threads
from ninetoothed.backends.base import Backend, Plan
from ninetoothed.cache import write_source
from ninetoothed.errors import ArgumentError, ArrangementError, located_where_too_deep, near
from ninetoothed.kernels.call import Call, Device
from ninetoothed.kernels.call_types import fitting
from ninetoothed.kernels.definition import Definition, Specializations
from ninetoothed.launch.absent_tensors import without_none
from ninetoothed.launch.arguments import described
from ninetoothed.launch.checks import checked_call, constants_of
from ninetoothed.launch.generate import generate
from ninetoothed.launch.recorded_calls import RECORDER
from ninetoothed.program.program import Program
from ninetoothed.symbols.expr import Symbol
from ninetoothed.tensors.arrange import Arrangement

if TYPE_CHECKING:
    from ninetoothed.visualization import Page


class Kernel(functools.partial[Any]):
    """A kernel, called with tensors; see `make`.

    It is a partial of nothing: a call reaches the launch function, `func`, with no step of ours between,
    and from Python 3.12 on with the arguments as they lie, where an object with a ``__call__`` would
    make a tuple and a dictionary of them first.

    A call takes tensors and scalars in order, then constexpr symbols. It writes in place and returns
    None, except where the arguments' framework cannot be written to: then its frontend says what
    comes back.

    Attributes:
        declaration: all that is known whatever the constants are.
        specializations: the definitions by the constants' values.
    """

    #: No program may call it: it launches programs itself. Parsing asks for this.
    launches_programs = True

    def __new__(cls, *arguments: Any, **keywords: Any) -> Kernel:
        return super().__new__(cls, cls.dispatch)

    def __init__(
        self, specializations: Specializations, caller: str | None = None, output_dir: Any = None
    ) -> None:
        if caller is not None:
            plugins.frontend_named(caller)
        self.specializations = specializations
        self.declaration = specializations.declaration
        self.caller = caller
        self.output_dir = output_dir
        self._plan_lock = threads.reentrant_lock()
        self._launchers: dict[Any, Callable[..., Any]] = {}
        self._launchers_by_type: dict[type, Callable[..., Any]] = {}
        self._call_by(self.dispatch)
        functools.update_wrapper(
            self, self.declaration.application, assigned=("__module__", "__doc__"), updated=()
        )
        self.__name__ = self.name

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.declaration.name

    @property
    def definition(self) -> Definition:
        """All that is known without a call; see `Specializations.shown`."""
        return self.specializations.shown

    @property
    def arrangement(self) -> Arrangement:
        """Parameters, grid and accesses."""
        return self.declaration.arrangement

    @property
    def program(self) -> Program:
        """What one program does, as parsed, with the constants' defaults if there are such."""
        return self.definition.program

    @property
    def names(self) -> Mapping[Symbol, str]:
        """How each symbol, size and stride is called in generated code."""
        return self.declaration.names

    def __get__(self, instance: object, owner: type | None = None) -> Kernel:
        """The kernel itself, also where it is an attribute of a class."""
        return self

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        """The kernel itself, as of a function: modules that hold kernels can be copied."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """By the name that a module has for it, as a function: where it is loaded, the module makes it.

        Raises:
            ArgumentError: no module has a name for it.
        """
        return by_name(self, self.__module__, f"kernel `{self.name}`")

    def __repr__(self) -> str:
        return f"<kernel {self.name}({', '.join(self.declaration.call_names)})>"

    @threads.cached_property
    @located_where_too_deep("An expression of the kernel", ArrangementError)
    def source(self) -> str:
        """The generated Triton source, as it is with nothing known of the arguments but defaults."""
        return plugins.backend_named("triton").source(self.definition)

    @threads.cached_property
    def source_path(self) -> Any:
        """A file with the generated source."""
        if self.output_dir is None:
            return write_source(self.name, self.source)
        path = Path(self.output_dir) / f"{self.name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.source, encoding="utf-8")
        return path

    def definition_of(self, bound: Mapping[str, Any], frontend: Any = None) -> Definition:
        """The kernel with the constants among these arguments.

        Raises:
            ArgumentError: a constant is not hashable, or a tensor.
            ApplicationError: with them, the application uses what cannot be compiled.
        """
        return self.specializations.of(constants_of(self.declaration, frontend, bound))

    @located_where_too_deep("An expression of the kernel", ArrangementError)
    def new_plan(
        self,
        definition: Definition,
        frontend: Any,
        given: Mapping[str, Any],
        values: tuple[Any, ...],
    ) -> tuple[Plan, Device]:
        """Checks the arguments of a new key and has its plan made.

        Args:
            definition: see `definition_of`.
            given: for a tensor its (shape, strides, dtype, device, alignment) as the frontend has
                them (dtype and device None where the tensor is not touched), for a scalar
                its element type and whether it is one of `Call.scales`, for a constant its value; by name.
            values: what the plan's ``run`` will be given, stream first.
        """
        call = checked_call(definition, frontend, given)
        RECORDER.note(self, definition, call)
        with self._plan_lock:
            plan = plugins.backend_for(call.device.kind).plan
            run = fitting(definition, call, lambda given: plan(given, call, values))
            return run, call.device

    def dispatch(self, /, *arguments: Any, **keywords: Any) -> Any:
        """Finds the frontend of the arguments and calls its launch function, now and from now on."""
        plugins.tell_of_changes(self)
        bound = self.bind(arguments, keywords)
        frontend = self.frontend_of(bound)
        if self.caller is not None and frontend.name != self.caller:
            raise ArgumentError(
                f"kernel `{self.name}` was made with caller={self.caller!r}, but got tensors of "
                f"{frontend.name}"
            )
        launch = self.launch_function(frontend)
        with self._plan_lock:
            for type_ in {type(bound[p.name]) for p in self.declaration.tensor_parameters}:
                if plugins.find_frontend(type_) is frontend:
                    self._launchers_by_type[type_] = launch
            self._call_by(launch if len(self._launchers) == 1 else self._launch_by_type)
        return launch(**bound)

    # PyTorch's compiler traces what a partial calls, unless it is told not to.
    dispatch._torchdynamo_disable = True  # type: ignore[attr-defined]

    def forget_launches(self) -> None:
        """Frontends are asked for again, and each key of arguments is planned anew.

        For when plugins came, went or are preferred now, or the tuner found something better.
        """
        # Without the lock: whoever changes plugins holds theirs, and `dispatch` asks for both.
        self._launchers = {}
        self._launchers_by_type = {}
        self._call_by(self.dispatch)

    def _call_by(self, function: Callable[..., Any]) -> None:
        """From now on a call is a call of this function."""
        self.__setstate__((function, (), {}, self.__dict__))  # type: ignore[attr-defined]

    def _launch_by_type(self, /, *arguments: Any, **keywords: Any) -> Any:
        """Calls the launch function of the first tensor, where several frameworks call."""
        known = self._launchers_by_type
        for values in (arguments, keywords.values()):
            for value in values:
                if value.__class__ in known:
                    return known[value.__class__](*arguments, **keywords)
        return self.dispatch(*arguments, **keywords)

    _launch_by_type._torchdynamo_disable = True  # type: ignore[attr-defined]

    def launch_function(self, frontend: Any) -> Callable[..., Any]:
        """The launch function for tensors of a frontend, generated once."""
        with self._plan_lock:
            # By itself, not by its name: plugins may have been exchanged since another one's was made.
            if frontend not in self._launchers:
                self._launchers[frontend] = generate(self, frontend)
            return self._launchers[frontend]

    def call_of(self, /, *arguments: Any, **keywords: Any) -> Call:
        """What a call with these arguments is to a backend; nothing is run.

        Raises:
            ArgumentError: the arguments do not fit.
        """
        bound = self.bind(arguments, keywords)
        frontend = self.frontend_of(bound)
        definition = self.definition_of(bound, frontend)
        given, _ = described(definition, frontend, without_none(definition, frontend, bound))
        return checked_call(definition, frontend, given)

    def visualize(self, /, *arguments: Any, **keywords: Any) -> Page:
        """A page that shows which elements each program of a call touches; nothing is run.

        Args:
            arguments, keywords: as in a call, on any device or none: of a tensor only the shape is
                read, and a tuple of sizes may stand for it. Meta symbols may be given by name; small
                values are chosen for the others.

        Raises:
            ArgumentError: the arguments do not fit.
            ArrangementError: their sizes do not fit the arrangement.
        """
        from ninetoothed.launch.arguments import sizes_of
        from ninetoothed.visualization import visualize_kernel

        tuned = {self.names[symbol]: symbol for symbol in self.declaration.meta_symbols}
        chosen = {tuned[name]: keywords.pop(name) for name in list(keywords) if name in tuned}
        bound = self.bind(arguments, keywords)
        definition = self.definition_of(bound)
        return visualize_kernel(definition, {**sizes_of(definition, bound), **chosen})

    def __getitem__(self, grid: object) -> Any:
        """There is no grid to give."""
        raise ArgumentError(
            f"kernel `{self.declaration.name}` is called as it is, with its tensors: how many programs "
            "there are follows from the arrangement."
        )

    @located_where_too_deep("An expression of the kernel", ArrangementError)
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
            num_warps, num_stages: by default what `make` was given, the first of several.

        Returns:
            Triton's ``CompiledKernel``; its ``asm`` has the text of every stage.
        """
        call = self.call_of(*arguments, **keywords)
        compiler, choices = _compiler_for(target), (configuration, num_warps, num_stages)
        definition = self.specializations.of(call.constants)
        return fitting(
            definition, call, lambda given: compiler.compile(given, call, target, *choices)
        )

    @located_where_too_deep("An expression of the kernel", ArrangementError)
    def backward(
        self,
        wrt: Sequence[str] | None = None,
        constants: Mapping[str, Any] | None = None,
        kernel_name: str | None = None,
    ) -> Kernel:
        """The kernel that computes the gradients of inputs from those of the outputs.

        It is a kernel like any other. Its parameters are, in this order: the inputs whose values or
        sizes it needs, as they are called here; ``<output>_gradient`` for each output; an output itself
        where its strides or offsets are needed; ``<input>_gradient``, stored to, for each of ``wrt``.

        Args:
            wrt: the inputs; by default every tensor that is only read and may hold floats.
            constants: values of constexpr parameters, where they decide what the kernel does.
            kernel_name: by default this kernel's with ``_backward``.

        Raises:
            ArgumentError: there is no such input, or no output depends on it.
            ApplicationError: a part of the application has no derivative.
        """
        from ninetoothed.derivatives.derive import derive, differentiable

        definition = self.specializations.fixed(constants or {})
        found = derive(definition, wrt or differentiable(definition), kernel_name)
        return Kernel(found.specializations, self.caller, self.output_dir)

    def bind(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, with defaults.

        Raises:
            ArgumentError: there are too many or too few, or one has an unknown name.
        """
        names = self.declaration.call_names
        if len(arguments) > len(names):
            raise ArgumentError(self._takes(f"{len(arguments)} positional arguments were given"))
        free = [name for name in names if name not in keywords]
        without = [name for name in free if name not in self.declaration.defaults]
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
        missing = [
            name for name in names if name not in bound and name not in self.declaration.defaults
        ]
        if missing:
            raise ArgumentError(self._takes(f"missing: {', '.join(missing)}"))
        return {
            name: bound[name] if name in bound else self.declaration.defaults[name]
            for name in names
        }

    def frontend_of(self, bound: Mapping[str, Any]) -> Any:
        """The frontend of the tensors among the arguments.

        Raises:
            ArgumentError: there is none, or there are two.
        """
        tensors = {p.name: bound[p.name] for p in self.declaration.tensor_parameters}
        strange = [name for name in tensors if plugins.find_frontend(type(tensors[name])) is None]
        owned = {name: value for name, value in tensors.items() if name not in strange}
        frontend = plugins.frontend_of_arguments(owned)
        untouched = self.definition_of(bound, frontend).untouched if strange else ()
        for name in strange:
            value = tensors[name]
            if name in untouched and (value is None or hasattr(value, "shape")):
                continue
            known = ", ".join(frontend.name for frontend in plugins.MANAGER.frontends())
            type_ = type(value)
            raise ArgumentError(
                self._takes(
                    f"`{name}` must be a tensor, not {type_.__module__}.{type_.__qualname__}. "
                    f"There are frontends for {known or 'no framework'}; convert the argument, "
                    "or install the plugin of its framework"
                )
            )
        if frontend is None:
            raise ArgumentError(self._takes("at least one of them must be a tensor that is used"))
        return frontend

    def _takes(self, found: str) -> str:
        listed = ", ".join(
            f"{name}={self.declaration.defaults[name]!r}"
            if name in self.declaration.defaults
            else name
            for name in self.declaration.call_names
        )
        return f"kernel `{self.name}` takes ({listed}); {found}"


def by_name(item: Any, home: str, what: str) -> tuple[Any, ...]:
    """What `__reduce__` gives of something that is found again by the name that a module has for it.

    Args:
        home: the module that is asked first.

    Raises:
        ArgumentError: no module has a name for it.
    """
    for module in (sys.modules.get(home), *list(sys.modules.values())):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is item:
                return _named, (module.__name__, name)  # type: ignore[union-attr]
    raise ArgumentError(
        f"{what} cannot be pickled: it is made of functions and symbolic tensors, and is "
        "found again by the name that a module has for it, as a function is. Assign it to a variable "
        "of a module, and make it when that is imported."
    )


def _named(module: str, name: str) -> Any:
    """The kernel that a module has under a name."""
    return getattr(importlib.import_module(module), name)


def _compiler_for(target: Any) -> Backend:
    """The backend that serves the target's kind of device; Triton's says what a target is."""
    kind = next(iter(target), None) if isinstance(target, Sequence) else None
    served = {kind for backend in plugins.MANAGER.backends() for kind in backend.device_kinds}
    return plugins.backend_for(kind) if kind in served else plugins.backend_named("triton")
