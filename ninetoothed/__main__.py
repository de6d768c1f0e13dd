"""The command line: ``python -m ninetoothed plugins``, ``doctor``, ``inspect FILE:KERNEL``,
``show FILE:KERNEL``, ``build MODULE:PREMAKE``, ``warm-up FILE`` and ``tuning``.

It ends with status 0, with 1 where something is broken or an error was told, and with 2 where it
was called wrongly.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ninetoothed.errors import NineToothedError


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; gives the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except NineToothedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever reads has seen enough, as `head` has; nor is anything written as the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def table(rows: Iterable[Sequence[str]], header: Sequence[str]) -> str:
    """A table of text; no column is wider than what is in it."""
    lines = [list(header), *([_printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines
    )


def _printable(text: str) -> str:
    """Text with what could steer a terminal written out: it may come from another's file."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _parser() -> argparse.ArgumentParser:
    from ninetoothed import __version__

    parser = argparse.ArgumentParser("python -m ninetoothed", description=__doc__)
    parser.add_argument("--version", action="version", version=f"ninetoothed {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, run, text in (
        ("plugins", _plugins, "the frontends and backends, where they come from and their state"),
        ("doctor", _doctor, "what this machine can run, and what to install"),
        ("inspect", _inspect, "a kernel: arranged shapes, program, source, launch function"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        command.add_argument("--json", action="store_true", help="print JSON, for programs")
        if name == "inspect":
            command.add_argument(
                "kernel", metavar="FILE:KERNEL", help="as in examples/mm.py:kernel"
            )
            command.add_argument(
                "--frontend", default="torch", help="whose launch function is shown (torch)"
            )
    _add_show(commands)
    _add_build(commands)
    text = "compile for the calls that another process recorded ($NINETOOTHED_RECORD)"
    command = commands.add_parser("warm-up", help=text, description=text)
    command.set_defaults(run=_warm_up)
    command.add_argument("file", metavar="FILE")
    _add_tuning(commands)
    return parser


def _add_show(commands: Any) -> None:
    text = "a page for the browser: which elements each program of a kernel touches"
    command = commands.add_parser("show", help=text, description=text)
    command.set_defaults(run=_show)
    command.add_argument("kernel", metavar="FILE:KERNEL", help="as in examples/mm.py:kernel")
    command.add_argument(
        "--sizes",
        default="",
        help='as in "input=64x64 other=64x64 output=64x64 BLOCK_SIZE_M=16"; '
        "small ones are chosen for what is left out",
    )
    command.add_argument("--out", metavar="FILE.html", help="by default KERNEL's name with .html")


def _add_build(commands: Any) -> None:
    text = "a kernel compiled ahead of time: C sources that run without Python"
    command = commands.add_parser("build", help=text, description=text)
    command.set_defaults(run=_build)
    command.add_argument(
        "premake",
        metavar="MODULE:PREMAKE",
        help="a function that gives (arrangement, application, tensors); MODULE may have a list of "
        "its configurations, called CONFIGS",
    )
    command.add_argument("--targets", help="as in sm_80,sm_90,gfx942")
    command.add_argument("--out", metavar="DIR", required=True, help="where the sources are put")
    command.add_argument("--name", help="of the C functions; by default the application's")
    command.add_argument(
        "--tuned", metavar="FILE", help="results of a machine with a device (tuning export)"
    )
    command.add_argument(
        "--device",
        help='what the estimate chooses for, as in "NVIDIA H200"; by default the target\'s usual',
    )
    command.add_argument(
        "--torch-library", metavar="NAME", help="an operator of PyTorch in C++ too, in this library"
    )
    command.add_argument(
        "--portable", action="store_true", help="binaries as numbers in the C text, not beside it"
    )
    command.add_argument(
        "--libraries", help="made of the sources by $CC or cc, as in static,shared; by default none"
    )


def _add_tuning(commands: Any) -> None:
    """``tuning`` has commands of its own."""
    text = "what the tuner has measured: list it, carry it to a machine of the same kind"
    actions = commands.add_parser("tuning", help=text, description=text).add_subparsers(
        title="commands", required=True, metavar="COMMAND"
    )
    for name, run, text in (
        ("list", _list_tuning, "each kernel, what it was measured on and what was chosen"),
        ("export", _export_tuning, "write all of it into a file"),
        ("import", _import_tuning, "take in a file; what was measured here stays"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.set_defaults(run=run)
        if name == "list":
            action.add_argument("--json", action="store_true", help="print JSON, for programs")
        else:
            action.add_argument("file", metavar="FILE")
        if name == "export":
            action.add_argument("--device", help='only of this device, as in "NVIDIA H200"')


def _plugins(options: argparse.Namespace) -> int:
    from ninetoothed import plugins
    from ninetoothed.plugins.hookspecs import CONTRACT_VERSION

    found = _listing(plugins.MANAGER)
    broken = [listed for listed in found if listed.why]
    if options.json:
        _print_json({"contract": CONTRACT_VERSION, "plugins": [_as_json(each) for each in found]})
        return 1 if broken else 0
    rows = [
        (
            listed.name,
            listed.version or "-",
            listed.origin,
            "broken" if listed.why else "works",
            ", ".join(listed.frontends) or "-",
            ", ".join(listed.backends) or "-",
        )
        for listed in found
    ]
    print(table(rows, ("plugin", "version", "origin", "state", "frontends", "backends")))
    for listed in broken:
        print(f"\n{_printable(listed.name)} is broken: {_printable(listed.why)}")
    return 1 if broken else 0


def _listing(manager: Any) -> Any:
    """What the manager lists; what it warns of is in the list too."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return manager.listing()


def _as_json(listed: Any) -> dict[str, Any]:
    return {**listed._asdict(), "state": "broken" if listed.why else "works"}


def _doctor(options: argparse.Namespace) -> int:
    from ninetoothed import plugins
    from ninetoothed.doctor import examine

    examined = examine(_listing(plugins.MANAGER))
    is_ill = any(finding.state == "broken" for finding in examined.findings)
    if options.json:
        _print_json(
            {
                "findings": [finding._asdict() for finding in examined.findings],
                "runs_on": examined.runs_on,
            }
        )
        return 1 if is_ill else 0
    print(table([finding[:3] for finding in examined.findings], ("what", "state", "found")))
    advice = [finding for finding in examined.findings if finding.advice]
    if advice:
        print("\nWhat to do:")
        for finding in advice:
            print(f"  {finding.what}: {finding.advice}")
    print("\nKernels run here on:")
    for where in examined.runs_on or ["nothing"]:
        print(f"  {where}")
    return 1 if is_ill else 0


def _inspect(options: argparse.Namespace) -> int:
    from ninetoothed.inspection import inspect_kernel, load_kernel

    inspected = inspect_kernel(load_kernel(options.kernel), options.frontend)
    if options.json:
        _print_json(inspected._asdict())
        return 0
    print(f"kernel {inspected.name}({', '.join(inspected.arguments)})")
    print(f"grid {inspected.grid}\n")
    print(table(_levels(inspected.parameters), ("parameter", "kind", "level", "shape")))
    for title, text in (
        ("program", inspected.program),
        ("source for Triton", inspected.source),
        (f"launch function for {options.frontend}", inspected.launch),
    ):
        print(f"\n== {title}\n\n{text.strip()}")
    return 0


def _show(options: argparse.Namespace) -> int:
    from ninetoothed.inspection import load_kernel
    from ninetoothed.visualization import visualize_kernel

    sizes = _parsed_sizes(options.sizes)
    page = visualize_kernel(load_kernel(options.kernel).definition, sizes)
    out = options.out or f"{page.title}.html"
    try:
        page.save(out)
    except OSError as error:
        raise NineToothedError(f"{out} cannot be written: {error.strerror}") from error
    print(f"{out} written; open it in a browser")
    return 0


def _parsed_sizes(text: str) -> dict[str, Any]:
    """``x=4x6 BLOCK_SIZE=2`` as a shape or a number for each name."""
    sizes: dict[str, Any] = {}
    for entry in text.split():
        name, _, value = entry.partition("=")
        parts = value.split("x")
        if not name or not all(part.isdecimal() for part in parts):
            raise NineToothedError(
                f"--sizes has {entry!r}; say NAME=SIZE, as in input=64x64 or BLOCK_SIZE_M=16"
            )
        if name in sizes:
            raise NineToothedError(f"--sizes gives {name!r} twice")
        sizes[name] = int(parts[0]) if len(parts) == 1 else tuple(map(int, parts))
    return sizes


def _warm_up(options: argparse.Namespace) -> int:
    from ninetoothed.launch.warm_up import warm_up_from

    print(f"{warm_up_from(options.file)} calls are ready")
    return 0


def _build(options: argparse.Namespace) -> int:
    import time

    from ninetoothed.aot.build import build
    from ninetoothed.aot.loading import load_premake

    premake, configs = load_premake(options.premake)
    start = time.monotonic()
    built = build(
        premake,
        configs,
        kernel_name=options.name,
        output_dir=options.out,
        targets=options.targets.split(",") if options.targets else None,
        is_portable=options.portable,
        tuned=options.tuned,
        device=options.device,
        torch_library=options.torch_library,
        libraries=options.libraries.split(",") if options.libraries else (),
        progress=_print_progress,
    )
    print(file=sys.stderr)
    rows = [
        (unit.name, binaries.target, variant.name, str(len(image.data)))
        for unit in built.units
        for binaries in unit.binaries
        for variant, image in zip(unit.editions[binaries.edition].variants, binaries.images)
    ]
    print(table(rows, ("kernel", "target", "variant", "bytes")))
    total = f"{sum(int(row[-1]) for row in rows):,}".replace(",", " ")
    seconds = time.monotonic() - start
    print(f"\n{len(rows)} binaries, {total} bytes, {seconds:.1f} s, in {built.folder}")
    return 0


def _print_progress(done: int, count: int) -> None:
    print(f"\r{done} of {count} compiled", end="", file=sys.stderr, flush=True)


def _list_tuning(options: argparse.Namespace) -> int:
    from ninetoothed.tuning import results

    entries = sorted(results.entries().values(), key=lambda entry: str(entry.subject))
    rows = []
    for entry in entries:
        best = entry.best()
        rows.append(
            {
                **dataclasses.asdict(entry.subject),
                "effort": entry.finished,
                "measured": len(entry.times),
                "milliseconds": None if best is None else entry.times.get(best),
                "chosen": None if best is None else str(best),
            }
        )
    if options.json:
        _print_json(rows)
        return 0
    header = ("kernel", "device", "compiler", "arguments", "effort", "measured", "ms", "chosen")
    shown = [["-" if value is None else str(value) for value in row.values()] for row in rows]
    for line in shown:
        line[6] = line[6][:7]
    print(table(shown, header))
    return 0


def _export_tuning(options: argparse.Namespace) -> int:
    from ninetoothed.tuning.results import export_results

    count = export_results(options.file, options.device)
    print(f"{count} {'entry' if count == 1 else 'entries'} written to {options.file}")
    return 0


def _import_tuning(options: argparse.Namespace) -> int:
    from ninetoothed.tuning.results import import_results

    count = import_results(options.file)
    print(f"{count} {'entry' if count == 1 else 'entries'} taken in from {options.file}")
    return 0


def _levels(parameters: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """A row for each level of each parameter, the source first."""
    for parameter in parameters:
        yield parameter["name"], parameter["kind"], "source", parameter["source"]
        levels = parameter["levels"]
        for place, level in enumerate(levels):
            inner = "tile" if place == len(levels) - 1 else f"level {place}"
            yield "", "", "programs" if place == 0 else inner, level


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


if __name__ == "__main__":
    sys.exit(main())
