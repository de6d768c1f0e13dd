"""The kit: everything that is asked of a frontend, as one class for pytest to collect."""

from __future__ import annotations

from ninetoothed.testing.expectations import Skipped
from ninetoothed.testing.launching import LaunchChecks
from ninetoothed.testing.reading import ReadingChecks
from ninetoothed.testing.streams import StreamChecks


class FrontendConformance(ReadingChecks, LaunchChecks, StreamChecks):
    """Checks a frontend on tensors of its framework. Subclass it as ``TestSomething`` in a test.

    A subclass says the frontend's name and the device, and makes tensors::

        class TestToy(FrontendConformance):
            frontend_name = "toy"

            def from_numpy(self, array):
                return toy.array(array)

            def to_numpy(self, tensor):
                return tensor.numpy()

            def transposed(self, tensor):
                return tensor.swapaxes(-1, -2)

            def sliced(self, tensor, slices):
                return tensor[slices]

    See `Expectations` for everything that may be said. Each check that fails says what the frontend
    does wrong. A check that the framework has nothing for (no views, no streams) is skipped.
    """


def failures(kit: type[FrontendConformance]) -> dict[str, str]:
    """The checks of a kit that fail, each with its message, without running pytest's collection."""
    found = {}
    for name in dir(kit):
        if not name.startswith("test_"):
            continue
        try:
            getattr(kit(), name)()
        except Skipped:
            continue
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    return found
