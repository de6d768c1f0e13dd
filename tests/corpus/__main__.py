"""python -m tests.corpus [--write]: compare what the package emits with the stored corpus.

Prints how they differ and ends with 1 if they do. With ``--write`` the files are written anew: after a
change that is meant to change what is emitted; read the difference then.

Nothing is compiled or run: Triton, PyTorch and PaddlePaddle are refused to whoever imports them.
"""

from __future__ import annotations

import argparse
import gc
import importlib.abc
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

#: What nothing here needs.
REFUSED = ("triton", "torch", "paddle")


class Refusing(importlib.abc.MetaPathFinder):
    """Refuses modules, and remembers that they were asked for."""

    def __init__(self) -> None:
        self.asked_for: list[str] = []

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
        if fullname.partition(".")[0] in REFUSED:
            self.asked_for.append(fullname)
            raise ImportError(f"{fullname} is not needed to emit a text")


def main() -> int:
    """Generates, and compares or writes."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="write the files anew")
    is_writing = arguments.parse_args().write
    refusing = Refusing()
    sys.meta_path.insert(0, refusing)
    # What a person has fixed is no part of the corpus.
    for name in [name for name in os.environ if name.startswith("NINETOOTHED_")]:
        del os.environ[name]
    # All that is made here is kept until the end.
    gc.disable()
    start = time.perf_counter()
    from tests.corpus.differences import differences
    from tests.corpus.record import generated, stored, text_of, write

    new = generated()
    seconds = time.perf_counter() - start
    report = differences(stored(), new)
    texts = {text_of(section) for section in new.sections.values()}
    size = sum(len(content.encode()) for content in new.files.values())
    report.append(
        f"{len(new.lines)} records, {len(new.sections)} cases with {len(texts)} texts, "
        f"{size / 1e6:.2f} MB, {seconds:.1f} s"
    )
    print("\n".join(report))
    if refusing.asked_for:
        print(f"imported although nothing needs it: {', '.join(refusing.asked_for)}")
        return 1
    if is_writing:
        write(new)
        return 0
    return int(len(report) > 1)


if __name__ == "__main__":
    sys.exit(main())
