"""The search of the hand-written kernels' configurations, on kernels and times of the tests' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
triton = pytest.importorskip("triton", reason="needs Triton")

from benchmarks.common import search  # noqa: E402
from benchmarks.common.fresh import figures  # noqa: E402


class Kernel:
    """Stands for a `triton.jit` function; a launch takes as long as its block is large."""

    arg_names = ("x_ptr", "output_ptr", "size", "BLOCK_SIZE")

    def __init__(self) -> None:
        self.launched: list[tuple[int, Any]] = []
        self.__name__, self.__module__ = "copy_kernel", "benchmarks.some"

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(x: Any, output: Any, size: int, BLOCK_SIZE: int, **options: Any) -> None:
            if BLOCK_SIZE > 256:
                raise search.OutOfResources(BLOCK_SIZE, 256, "shared memory")
            output.fill_(BLOCK_SIZE)
            self.launched.append((BLOCK_SIZE, output))

        return launch


class Times:
    """Stands for the timer: the time of a launch is what it wrote."""

    def forget_kept(self) -> None:
        pass

    def milliseconds(self, turns: Sequence[Callable[[], object]], repetitions: int) -> float:
        for turn in turns:
            turn()
        return float(KERNELS[-1].launched[-1][0])


KERNELS: list[Kernel] = []


@pytest.fixture(autouse=True)
def _without_a_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(search, "_timer", Times)
    monkeypatch.setattr(search, "CHOICES", {})
    KERNELS.append(Kernel())
    yield
    KERNELS.pop()


def tuned(*sizes: int) -> search.Tuned:
    configs = [triton.Config({"BLOCK_SIZE": size}, num_warps=2) for size in sizes]
    return search.autotune(configs, key=["size"])(KERNELS[-1])


def test_the_quickest_configuration_is_launched() -> None:
    x, output = torch.zeros(4), torch.zeros(4)
    tuned(128, 64, 512, 32)[(1,)](x, output, 4)
    (name, choice), *others = search.CHOICES.items()
    assert not others
    assert name == "some.copy_kernel[size=4, torch.float32]"
    assert choice.config == {"BLOCK_SIZE": 32, "num_warps": 2, "num_stages": 3}
    assert (choice.tried, choice.given) == (3, 4)  # One cannot be launched.
    assert output.tolist() == [32.0] * 4


def test_a_search_writes_to_copies_of_the_arguments() -> None:
    x, output = torch.zeros(4), torch.zeros(4)
    tuned(64, 32)[(1,)](x, output, 4)
    written = [tensor.data_ptr() for _, tensor in KERNELS[-1].launched]
    assert written.count(output.data_ptr()) == 1


def test_copies_have_the_strides_that_are_given_beside_them() -> None:
    whole = torch.arange(24.0).view(2, 3, 4)
    views = (whole[:, -1], whole.mT, whole[:1].expand(5, 3, 4), whole[:0])
    for view, copy in zip(views, search._copies(views), strict=True):
        assert copy.stride() == view.stride()
        assert torch.equal(copy, view)
        assert not copy.numel() or copy.data_ptr() != view.data_ptr()


def test_a_key_is_searched_once_and_each_element_type_for_itself() -> None:
    kernel = tuned(64, 32)
    for dtype in (torch.float32, torch.float32, torch.float16):
        kernel[(1,)](torch.zeros(4, dtype=dtype), torch.zeros(4, dtype=dtype), 4)
    assert [name.partition("torch.")[2] for name in search.CHOICES] == ["float32]", "float16]"]


def test_what_an_earlier_run_chose_is_not_searched_again() -> None:
    config = {"BLOCK_SIZE": 64, "num_warps": 2, "num_stages": 3}
    search.recall({"some.copy_kernel[size=4, torch.float32]": {"config": config, "tried": 2}})
    tuned(64, 32)[(1,)](torch.zeros(4), torch.zeros(4), 4)
    assert [size for size, _ in KERNELS[-1].launched] == [64]


def test_it_is_an_error_if_no_configuration_can_be_launched() -> None:
    with pytest.raises(RuntimeError, match="no configuration") as raised:
        tuned(512, 1024)[(1,)](torch.zeros(4), torch.zeros(4), 4)
    assert isinstance(raised.value.__cause__, search.OutOfResources)


def test_what_does_not_fit_is_passed_over_where_another_size_had_compiled_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is compiled already is not collected but launched."""

    class Compilers:
        def compile(self, jobs: Sequence[Any]) -> list[str]:
            assert not jobs
            return []

    monkeypatch.setattr(search, "_compilers", [Compilers()])
    tuned(512, 64)[(1,)](torch.zeros(4), torch.zeros(4), 4)
    (choice,) = search.CHOICES.values()
    assert (choice.config["BLOCK_SIZE"], choice.tried) == (64, 1)


def test_what_is_overwritten_is_searched_for_itself() -> None:
    kernel, x = tuned(64, 32), torch.zeros(4)
    kernel[(1,)](x, torch.zeros(4), 4)
    kernel[(1,)](x, x, 4)
    assert [name.endswith("in place]") for name in search.CHOICES] == [False, True]


def test_a_tensor_that_is_given_twice_is_copied_once() -> None:
    x = torch.ones(3)
    first, second, number = search._copies((x, x, 7))
    assert first is second and first is not x and torch.equal(first, x) and number == 7


def test_the_quickest_way_is_taken_and_those_that_cannot_are_passed_over() -> None:
    def slow(x: Any) -> Any:
        KERNELS[-1].launched.append((9, x))
        return x + 1

    def quick(x: Any) -> Any:
        KERNELS[-1].launched.append((3, x))
        return x + 1

    def unable(x: Any) -> Any:
        raise NotImplementedError

    function = search.fastest_of("add one", slow, unable, quick)
    assert function(torch.zeros(1)).item() == 1
    (choice,) = search.CHOICES.values()
    assert (choice.config, choice.tried, choice.given) == ("quick", 2, 3)


def test_kernels_are_compiled_in_other_processes() -> None:
    """With a stand-in for the device: what is collected is enough to compile, elsewhere, to the
    very entry of the cache that a launch looks for."""
    found = figures(
        """
import json, os, pathlib, tempfile
folder = tempfile.TemporaryDirectory()
os.environ["TRITON_CACHE_DIR"] = folder.name
import torch, triton
from triton.backends.compiler import GPUTarget

class Driver:
    def get_current_target(self): return GPUTarget("cuda", 90, 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device): return 0

triton.runtime.driver.set_active(Driver())
from benchmarks.common import search
from benchmarks.peers.best.products import described_kernel, with_descriptors
from benchmarks.peers.idiomatic.elements import add_kernel
search.start_compilers(1)
halves = lambda *shape: torch.empty(shape, dtype=torch.float16)
config = search._as_dict(described_kernel.configs[0])
described_kernel.configs = described_kernel.configs[:1]
with search.collected() as jobs:
    add_kernel.kernel[(1,)](halves(64), halves(64), halves(64), 64, BLOCK_SIZE=32)
    search.CHOICES["best.products.described_kernel[batch=1, m=256, n=256, k=128, ADDS=False, "
                   "torch.float16]"] = search.Choice(config)
    with_descriptors(halves(1, 256, 128), halves(1, 128, 256))
failures = search._compilers[-1].compile(jobs)
search.stop_compilers()
made = lambda: sorted(path.name for path in pathlib.Path(folder.name).rglob("*.cubin"))
before = made()
try:
    add_kernel.kernel[(1,)](halves(64), halves(64), halves(64), 64, BLOCK_SIZE=32)
except AttributeError:  # The stand-in cannot launch.
    pass
print(json.dumps([failures, before, made() == before]))
"""
    )
    assert found == [[], ["add_kernel.cubin", "described_kernel.cubin"], True]
