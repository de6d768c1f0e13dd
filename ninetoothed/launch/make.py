"""`make` and `jit`: a callable kernel from an arrangement and an application."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed import threads
from ninetoothed.errors import ArrangementError, Location
from ninetoothed.kernels.definition import Integers, Specializations, define
from ninetoothed.kernels.making import specializations_of
from ninetoothed.kernels.naming import kernel_name_of
from ninetoothed.launch.kernel import Kernel
from ninetoothed.parsing.source import application_of
from ninetoothed.tensors.arrange import pair


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
    specialize: str = "classes",
) -> Any:
    """A kernel from an arrangement and an application. Paper, section 3.2.

    Args:
        arrangement: called once with ``tensors``; returns the arranged ones.
        application: what one program does with its tiles: a function written in Python, or a
            ``functools.partial`` that gives its last parameters by keyword.
        tensors: symbolic tensors; other values are handed through to the arrangement.
        caller: the name of a frontend; by default it is found from the arguments of a call. With
            ``"cuda"`` the kernel is compiled ahead of time, for callers in C; see `build`.
        kernel_name: by default the application's name, or that of the arrangement's module where
            the application is called just ``application``.
        output_dir: where the generated source is written; by default a cache directory.
        num_warps: the number of warps of a program, or several to choose from.
        num_stages: the number of stages of software pipelining, or several to choose from.
        max_num_configs: how many configurations the tuner may consider.
        specialize: what there is a compiled kernel for: each of the ``"classes"`` of sizes, few for each
            power of two; or, as costs a compilation for each, the ``"sizes"`` themselves.

    Returns:
        The `Kernel`; with ``caller="cuda"`` the folder of C sources that was `Built`.

    Raises:
        ArrangementError: a meta-operation does not fit, or the outermost shapes differ.
        ApplicationError: the application uses what cannot be compiled.
    """
    with threads.without_collections():
        specializations = specializations_of(
            arrangement,
            application,
            tensors,
            kernel_name,
            num_warps,
            num_stages,
            max_num_configs,
            specialize,
        )
    return _made(specializations, caller, output_dir)


def _made(specializations: Specializations, caller: str | None, output_dir: Any) -> Any:
    """A kernel for callers in Python or in C."""
    if caller != "cuda":
        return Kernel(specializations, caller, output_dir)
    from ninetoothed.aot.build import make_ahead

    return make_ahead(specializations, output_dir)


def jit(application: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A kernel from a function whose parameters are annotated with arranged tensors.

    Takes the options of `make` by keyword: ``@jit`` or ``@jit(num_warps=4)``.
    """
    if application is None:
        return functools.partial(jit, **options)
    application = application_of(application)
    place = Location(application.__code__.co_filename, application.__code__.co_firstlineno)
    try:
        annotations = inspect.get_annotations(application, eval_str=True)
    except NameError as error:
        raise ArrangementError(
            f"the annotations of `{application.__name__}` are text, as `from __future__ import "
            f"annotations` makes them, and {error}: text knows no variables of functions around "
            "it. Leave the import out, or use `make`",
            place,
        ) from error
    parameters = inspect.signature(application).parameters
    missing = [name for name in parameters if name not in annotations]
    if missing:
        raise ArrangementError(
            f"`{application.__name__}` has no annotation for {', '.join(missing)}; @jit needs an "
            "arranged tensor as the annotation of every parameter",
            place,
        )
    arranged = [annotations[name] for name in parameters]
    for name, annotation in zip(parameters, arranged, strict=True):
        if isinstance(annotation, type):
            raise ArrangementError(
                f"`{name}` of `{application.__name__}` is annotated with the type "
                f"{annotation.__name__}; @jit needs an arranged tensor there: `Tensor(0)` for a number",
                place,
            )
    name = options.pop("kernel_name", None) or kernel_name_of(application.__name__)
    caller, output_dir = options.pop("caller", None), options.pop("output_dir", None)
    with threads.without_collections():
        specializations = define(pair(arranged, application), application, name, **options)
    return _made(specializations, caller, output_dir)
