"""What is recorded of a case, and the files that hold it.

`texts/` has each distinct text once, under the name of the first case that it is emitted for, with
the parameters of the emitted function, what Gluon needs and a digest of the user's lines.
`records/` has a line for each case: which text it has, and what the call makes of its parameters.
`records/offers.jsonl` has what is offered to the search for some calls.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any

from tests.corpus.cases import Case, Subject, all_cases, subjects
from tests.corpus.package import (
    NineToothedError,
    Specialized,
    estimators,
    location_of,
    offered,
    ranked,
    symbol_text,
)

FOLDER = Path(__file__).parent

#: What a text begins with in its file, followed by the name of a case.
HEAD = "#### "

#: The line between what belongs to a text and the text.
_MIDDLE = "##\n"

#: How many of the most promising configurations are recorded.
_MOST_PROMISING = 3

#: The kernels and calls whose configurations are too many to be ranked here.
_NOT_RANKED = ("mm", "addmm", "bmm", "conv2d", "sdpa True (4, 48, 1024, 64)")
_NOT_RANKED += ("sdpa True (32, 8, 77, 777, 80)", "sdpa of float32")


@dataclass(frozen=True)
class Recorded:
    """What a case gives: a line, and with it a text unless it is an error."""

    line: dict[str, Any]
    section: str | None


def recorded(case: Case) -> Recorded:
    """Emits a case."""
    line: dict[str, Any] = {"name": case.name}
    try:
        specialized = case.specialized()
    except NineToothedError as error:
        return Recorded({**line, "error": _error_text(error)}, None)
    line["text"] = ""
    line["arguments"] = {name: _argument(specialized, name) for name in specialized.signature}
    described = {name: asdict(known) for name, known in specialized.described.items()}
    optional = {
        "described": {name: _shown(known) for name, known in described.items()},
        "workspace": specialized.workspace,
        "persistent": specialized.is_persistent,
        "registers": specialized.most_registers,
    }
    line["programs"] = specialized.num_programs
    line |= {name: value for name, value in optional.items() if value}
    line["seconds"] = _seconds(case)
    return Recorded(line, _section(case, specialized))


def _argument(specialized: Specialized, name: str) -> str:
    """A parameter's type, its value where that is known, and what it is told to be a multiple of."""
    parts = [specialized.signature[name]]
    for known in (specialized.constants, specialized.integers):
        parts += [f"= {known[name]!r}"] if name in known else []
    parts += [f"% {specialized.divisors[name]}"] if name in specialized.divisors else []
    return " ".join(parts)


def _seconds(case: Case) -> str:
    """The estimate, to six digits."""
    seconds = estimators(case.kernel, case.call, case.device).seconds(case.config)
    return f"{seconds:.6g}"


def _error_text(error: NineToothedError) -> str:
    """An error's kind and message, without the place of whoever asked."""
    return f"{type(error).__name__}: {error}".partition('\n  File "')[0]


def _section(case: Case, specialized: Specialized) -> str:
    """The text, and what belongs to it."""
    emitted = specialized.emitted
    lines = [f"## lines {_digest(_lines(emitted.lines))}"]
    if emitted.externs:
        lines.append(f"## externs {' '.join(sorted(emitted.externs))}")
    if emitted.needs is not None:
        lines += [f"## needs {name} {_shown(v)}" for name, v in vars(emitted.needs).items()]
    for parameter in emitted.parameters:
        parts = [parameter.name, parameter.kind, parameter.parameter or "-"]
        if parameter.symbol is not None:
            parts.append(symbol_text(case.kernel, parameter.symbol))
        lines.append(f"## {' '.join(parts)}{' constexpr' if parameter.is_constexpr else ''}")
    return "\n".join(lines) + "\n" + _MIDDLE + emitted.text


def _lines(lines: dict[int, Any]) -> str:
    """Where each emitted line comes from."""
    return "\n".join(f"{number} {location_of(lines[number])}" for number in sorted(lines))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _shown(value: Any) -> str:
    """A value as text; what has no order is sorted, and classes are not named."""
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(_shown, value))) + "}"
    if isinstance(value, (tuple, list)):
        return "(" + ", ".join(map(_shown, value)) + ")"
    if is_dataclass(value) and not isinstance(value, type):
        return _shown(asdict(value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(entry)}" for name, entry in value.items())
    return str(value)


def text_of(section: str) -> str:
    """The emitted text alone."""
    return section.partition(_MIDDLE)[2]


# The files.


@dataclass(frozen=True)
class Corpus:
    """All that is stored.

    Attributes:
        sections: the text of each case that has one, with what belongs to it, by the case's name.
        lines: each case's record.
        files: the files' contents, by their paths.
    """

    sections: dict[str, str]
    lines: dict[str, dict[str, Any]]
    files: dict[str, str]


def generated() -> Corpus:
    """The corpus of the package as it is."""
    sections: dict[str, str] = {}
    lines: dict[str, dict[str, Any]] = {}
    texts: dict[str, dict[str, str]] = {}
    records: dict[str, list[str]] = {}
    for case in all_cases():
        found = recorded(case)
        of_group = texts.setdefault(case.group, {})
        if found.section is not None:
            found.line["text"] = of_group.setdefault(found.section, case.name)
            sections[case.name] = found.section
        lines[case.name] = found.line
        records.setdefault(case.group, []).append(_as_json(found.line))
    offers = list(_offers(subjects()))
    lines |= {offer["name"]: offer for offer in offers}
    records["offers"] = list(map(_as_json, offers))
    files = {f"texts/{group}.txt": _joined(of_group) for group, of_group in texts.items()}
    files |= {f"records/{group}.jsonl": "".join(entries) for group, entries in records.items()}
    return Corpus(sections, lines, files)


def _offers(asked: Iterable[Subject]) -> Iterator[dict[str, Any]]:
    """What is offered for some calls: sets of options, and the configurations that are ranked first."""
    for subject in asked:
        for device in ("H200", "MI300X"):
            found = offered(subject.kernel, subject.call, subject.values, device)
            yield {"name": f"options of {subject.name} on {device}", "offered": found}
        if subject.group not in _NOT_RANKED and subject.name not in _NOT_RANKED:
            order = ranked(subject.kernel, subject.call, "H200")
            first = order[:_MOST_PROMISING]
            yield {"name": f"ranks of {subject.name}", "configurations": len(order), "first": first}


def _joined(texts: dict[str, str]) -> str:
    return "\n".join(f"{HEAD}{name}\n{section}" for section, name in texts.items())


def _as_json(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False) + "\n"


def stored() -> Corpus:
    """The corpus as the files have it."""
    paths = sorted([*FOLDER.glob("texts/*.txt"), *FOLDER.glob("records/*.jsonl")])
    files = {p.relative_to(FOLDER).as_posix(): p.read_text(encoding="utf-8") for p in paths}
    by_first: dict[str, str] = {}
    for path, content in files.items():
        if path.startswith("texts/"):
            for part in f"\n{content}".split(f"\n{HEAD}")[1:]:
                name, _, section = part.partition("\n")
                by_first[name] = section.removesuffix("\n") + "\n"
    entries = [
        json.loads(line)
        for path, content in files.items()
        if path.startswith("records/")
        for line in content.splitlines()
    ]
    sections = {e["name"]: by_first.get(e["text"], "") for e in entries if "text" in e}
    return Corpus(sections, {entry["name"]: entry for entry in entries}, files)


def write(corpus: Corpus) -> None:
    """Writes the files, and removes those that are no more."""
    for folder in ("texts", "records"):
        (FOLDER / folder).mkdir(exist_ok=True)
    for path in stored().files.keys() - corpus.files.keys():
        (FOLDER / path).unlink()
    for path, content in corpus.files.items():
        (FOLDER / path).write_text(content, encoding="utf-8", newline="\n")
