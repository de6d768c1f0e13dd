"""What a call, and what is built, may not be: each with its code, and a message that names the argument."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.aot.build import build  # noqa: E402
from ninetoothed.errors import ArgumentError  # noqa: E402
from tests.aot import calls  # noqa: E402
from tests.aot.kernels import PREMAKES  # noqa: E402
from tests.aot.making import (  # noqa: E402
    HERE,
    Loaded,
    built,
    built_of,
    driver,
    environment,
    labelled,
    library,
    needs_cc,
    run,
)
from tests.aot.reference import View  # noqa: E402

pytestmark = needs_cc


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refusals")


@pytest.fixture(scope="module")
def mm(folder: Path) -> Loaded:
    return Loaded(library(built("mm", folder / "mm")), driver(folder / "driver"))


def view(*shape: int, **changes: Any) -> View:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return View(shape, tuple(reversed(strides)), **changes)


def call(mm: Loaded, **changes: Any) -> int:
    """A product of (64, 32) and (32, 48), with something else for some arguments."""
    given = {"input": view(64, 32), "other": view(32, 48), "output": view(64, 48), **changes}
    passed = [value and ctypes.byref(value.dlpack()) for value in given.values()]
    return mm.library.mm_launch(None, *passed)


#: What is wrong, the code, and what the message has.
WRONG: list[tuple[str, Callable[[], dict[str, Any]], int, str]] = [
    ("a null tensor", lambda: {"other": None}, -4, "`other` is null"),
    (
        "a null address",
        lambda: {"other": view(32, 48, address=0)},
        -4,
        "`other` has elements and no",
    ),
    ("a rank", lambda: {"output": view(64, 48, 1)}, -5, "`output` has 3 dimensions; .* with 2"),
    (
        "a type",
        lambda: {"input": view(64, 32, dtype="float32")},
        -6,
        r"`input` .* float16, \(2, 16, 1\)",
    ),
    (
        "a negative size",
        lambda: {"input": View((-1, 32), (32, 1))},
        -7,
        "`input` has size -1 in dim",
    ),
    ("a huge size", lambda: {"input": View((2**61, 32), (32, 1))}, -7, "`input` has size 23"),
    ("a huge stride", lambda: {"input": View((64, 32), (2**61, 1))}, -7, "`input` has stride 23"),
    (
        "the host's memory",
        lambda: {"input": view(64, 32, device=(1, 0))},
        -8,
        "device of DLPack's type 1",
    ),
    (
        "another device",
        lambda: {"other": view(32, 48, device=(2, 1))},
        -8,
        "`input` and `other` are on",
    ),
    (
        "an address",
        lambda: {"input": view(64, 32, address=0x1001)},
        -13,
        "0x1001, .* size of float16",
    ),
    (
        "the arrangement",
        lambda: {"output": view(4096, 48)},
        -10,
        "outermost shapes must be the same",
    ),
]


@pytest.mark.parametrize(
    ("changes", "code", "text"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_a_wrong_argument_has_its_code_and_is_named(
    mm: Loaded, changes: Callable[[], dict[str, Any]], code: int, text: str
) -> None:
    before = mm.last().launches
    assert call(mm) == 0, mm.message()
    assert call(mm, **changes()) == code
    assert mm.last().launches == before + 1
    assert call(mm, **changes()) == code, "what was refused is refused again"
    assert re.search(text, mm.message()), mm.message()
    assert re.search("kernel `mm`", mm.message())
    # The words for a code are its own.
    assert mm.library.nt_error_string(code) != mm.library.nt_error_string(0)


def test_a_view_between_two_elements_vectors_runs(mm: Loaded) -> None:
    """It is aligned to its elements and to nothing more: the variant for it is another one."""
    assert call(mm) == 0
    assert mm.last().label() == "<sm_90 mm described>"
    assert call(mm, input=view(64, 32, address=0x1002)) == 0
    assert mm.last().label() == "<sm_90 mm contiguous>"


def test_all_tensors_on_a_device_that_is_not_current(mm: Loaded) -> None:
    arguments = {
        n: view(*s, device=(2, 1))
        for n, s in {"input": (64, 32), "other": (32, 48), "output": (64, 48)}.items()
    }
    assert call(mm) == 0
    assert call(mm, **arguments) == -8
    assert "make its device current" in mm.message()


def test_a_declared_size_is_exact(folder: Path) -> None:
    made = built("softmax", folder / "softmax")
    c = Loaded(library(made), driver(folder / "driver"))
    launch = c.library.softmax_launch
    assert launch(None, *(ctypes.byref(view(5, 781).dlpack()) for _ in range(2))) == 0
    assert launch(None, *(ctypes.byref(view(5, 780).dlpack()) for _ in range(2))) == -7
    assert "`input` has size 780 in dimension 1; it was declared with 781 to 781" in c.message()


def test_a_constant_that_was_compiled_in_is_compared(folder: Path) -> None:
    made = built("sdpa", folder / "sdpa")
    c = Loaded(library(made), driver(folder / "driver"))
    tensors = [view(1, 2, 64, 64).published() for _ in range(4)]
    scale = calls.by_address(ctypes.c_double(0.125))

    def launch(is_causal: Any) -> int:
        return c.library.launch_sdpa(None, *tensors[:3], scale, is_causal, tensors[3])

    assert launch(calls.by_address(ctypes.c_int64(1))) == 0, c.message()
    # Whoever gives none means the one there is.
    assert launch(type(scale)(None, None, None)) == 0
    assert launch(calls.by_address(ctypes.c_int64(0))) == -9
    assert "`is_causal` was compiled in as True" in c.message()


def test_a_number_that_is_no_scale_where_padding_is_left_out_for_one(folder: Path) -> None:
    """Minus infinity in padding times 0 is no number, times a negative one it is the greatest."""
    made = built("sdpa", folder / "scaled")
    c = Loaded(library(made), driver(folder / "driver"))
    tensors = [ctypes.byref(view(1, 2, 64, 64).dlpack()) for _ in range(4)]

    def launch(scale: float) -> int:
        return c.library.sdpa_launch(None, *tensors[:3], ctypes.c_double(scale), tensors[3])

    for scale in (0.125, 2.0**-10, 2.0**10):
        assert launch(scale) == 0, c.message()
    for scale in (0.0, -0.125, 2.0**-11, 2.0**11, float("nan"), float("inf")):
        assert launch(scale) == -16
        assert re.search("`scale` is .* must lie from 0.0009765625 to 1024.0", c.message())


def test_a_number_of_which_padding_knows_nothing_may_be_any(folder: Path) -> None:
    made = built("rms_norm", folder / "any")
    c = Loaded(library(made), driver(folder / "driver"))
    tensors = [ctypes.byref(view(5, 781).dlpack()) for _ in range(2)]
    for eps in (0.0, -1.0, float("nan")):
        assert c.library.rms_norm_launch(None, tensors[0], ctypes.c_double(eps), tensors[1]) == 0


def test_more_programs_than_a_device_takes(folder: Path) -> None:
    made = built("silu", folder / "silu")
    c = Loaded(library(made), driver(folder / "driver"))
    long = [ctypes.byref(View((2**50,), (1,)).dlpack()) for _ in range(2)]
    assert c.library.silu_launch(None, *long) == -11
    assert f"{2**40} programs" in c.message()


def test_configuration_arguments_that_nothing_was_built_for(folder: Path) -> None:
    from ninetoothed import float16, float32

    configs = [
        ((dtype, size), {}, {"num_warps": 4})
        for dtype in (float16, float32)
        for size in (512, 1024)
    ]
    made = built("silu", folder / "several", configs)
    c = Loaded(library(made), driver(folder / "driver"))
    text = (made.folder / "ninetoothed_runtime.h").read_text()
    names = text[text.index("NINETOOTHED_BOOL") : text.index("} NineToothedDataType")].split(",")
    numbers = {name.strip(): place for place, name in enumerate(names) if name.strip()}
    half, single = numbers["NINETOOTHED_FLOAT16"], numbers["NINETOOTHED_FLOAT32"]

    def launch(dtype: int, size: int) -> int:
        tensors = [view(5000).published() for _ in range(2)]
        return c.library.launch_silu(None, *tensors, dtype, size)

    for dtype in (half, single):
        for size in (512, 1024):
            assert launch(dtype, size) == 0
            assert c.last().grid == -(-5000 // size)
    assert launch(half, 256) == -12
    assert f"was not built for dtype={half}, BLOCK_SIZE=256" in c.message()


def test_a_number_that_its_type_does_not_hold(folder: Path) -> None:
    import ninetoothed
    from ninetoothed import Tensor

    def arrangement(input: Tensor, shift: Tensor, output: Tensor) -> Any:
        return input.tile((64,)), shift, output.tile((64,))

    def application(input: Any, shift: Any, output: Any) -> None:
        output = input + shift  # noqa: F841

    half = [Tensor(1, dtype=ninetoothed.float16) for _ in range(2)]
    tensors = half[0], Tensor(0, dtype=ninetoothed.uint8), half[1]
    made = built_of(lambda: (arrangement, application, tensors), "shifted", folder / "shifted")
    c = Loaded(library(made), driver(folder / "driver"))
    given, published = ctypes.byref(view(64).dlpack()), view(64).published()

    def launch(number: int) -> tuple[int, int]:
        own = ctypes.c_int64(number)
        return (
            c.library.shifted_launch(None, given, own, given),
            c.library.launch_shifted(None, published, calls.by_address(own), published),
        )

    assert launch(255) == (0, 0), c.message()
    for number in (256, -1):
        assert launch(number) == (-16, -16)
        assert c.message() == f"kernel `shifted`: `shift` is {number}, which does not fit uint8"


def _in_both_branches(x: Any, w: Any, y: Any, flag: Any) -> None:
    if flag > 0:
        y = x + w
    else:
        y = x - w  # noqa: F841


def _in_both_of_either(x: Any, w: Any, y: Any, flag: Any) -> None:
    if flag > 0:
        y = x + w if flag > 5 else x * w
    else:
        y = x - w  # noqa: F841


def _in_one_branch(x: Any, w: Any, y: Any, flag: Any) -> None:
    if flag > 0:
        y = x + w
    else:
        y = x  # noqa: F841


@pytest.mark.parametrize(
    ("application", "code"),
    [(_in_both_branches, -7), (_in_both_of_either, -7), (_in_one_branch, 0)],
)
def test_sizes_that_must_agree_whichever_way_a_number_decides(
    application: Any, code: int, folder: Path
) -> None:
    """What one branch alone needs is not asked in C: the other's calls are right with any sizes."""
    import ninetoothed
    from ninetoothed import Tensor

    def arrangement(x: Tensor, w: Tensor, y: Tensor, flag: Tensor) -> Any:
        return x.tile((1, 64)), w.tile((1, 64)), y.tile((1, 64)), flag

    half = [Tensor(2, dtype=ninetoothed.float16) for _ in range(3)]
    tensors = *half, Tensor(0, dtype=ninetoothed.int32)
    name = application.__name__.strip("_")
    made = built_of(lambda: (arrangement, application, tensors), name, folder / name)
    c = Loaded(library(made), driver(folder / "driver"))
    launch = getattr(c.library, f"{name}_launch")

    def called(columns: int, flag: int) -> int:
        given = [view(2, n) for n in (60, columns, 60)]
        passed = [ctypes.byref(each.dlpack()) for each in given]
        return launch(None, *passed, ctypes.c_int64(flag))

    assert called(60, 1) == called(60, -1) == 0, c.message()
    assert called(50, -1) == code, c.message()
    assert called(50, 1) == code, c.message()
    assert not code or "`x`: it meets `w`" in c.message()


#: A driver without a function, and a process without memory: what is defined away, the code and the message.
LACKING = [
    ("cuLaunchKernel nothing", "driver", "-15 libcuda.so.1 has no cuLaunchKernel"),
    ("calloc(count, bytes) NULL", "library", "-14 kernel `mm`: the host's memory is exhausted"),
]


@pytest.mark.parametrize(("lacking", "where", "said"), LACKING, ids=["function", "memory"])
def test_what_is_lacking_is_said(lacking: str, where: str, said: str, folder: Path) -> None:
    without = folder / f"without-{where}.h"
    without.write_text(f"#include <stdlib.h>\n#define {lacking}\n")
    flags = ("-include", str(without))
    of_driver, of_library = (flags, ()) if where == "driver" else ((), flags)
    made = built("mm", folder / f"lacking-{where}")
    path = library(made, "cc", *of_library)
    stub = driver(folder / f"driver-lacking-{where}", False, of_driver)
    assert run(sys.executable, "-c", _ALONE, path, env=environment(stub)).startswith(said)


#: A process of its own: no driver is there, and none was loaded before.
_ALONE = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.nt_error_message.restype = ctypes.c_char_p
print(library.mm_prepare(0), library.nt_error_message().decode(), library.nt_abi_version())
"""


def test_where_there_is_no_driver(mm: Loaded, folder: Path) -> None:
    path = folder / "mm" / "libmm.so"
    said = run(sys.executable, "-c", _ALONE, path, env=environment(None))
    assert said.startswith("-1 neither libcuda.so.1 nor libamdhip64.so can be loaded")
    assert said.split()[-1] == "1"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"fake_devices": 0}, "-2 libcuda.so.1 finds no device"),
        ({"fake_major": 7, "fake_minor": 5}, "-3 kernel `mm` was not compiled for device 0, of compute capability 7.5"),
        ({"fake_failure": 35}, "35 kernel `mm`: it cannot be loaded: the recording driver's error"),
        # 8.6 runs what 8.0 does, 9.0 alone what was compiled for it, and what is newer the text.
        ({"fake_major": 8, "fake_minor": 6}, "0 <sm_80 mm full>"),
        ({"fake_major": 9, "fake_minor": 0}, "0 <sm_90 mm contiguous>"),
        ({"fake_major": 12, "fake_minor": 0}, "0 <ptx_80 mm full>"),
    ],
)  # fmt: skip
def test_what_the_driver_says(
    variables: dict[str, int], said: str, mm: Loaded, folder: Path
) -> None:
    script = f"""
import ctypes, sys
sys.path.insert(0, {str(Path.cwd())!r})
from tests.aot.test_refusals import Loaded, call, view
from pathlib import Path
c = Loaded(Path(sys.argv[1]), Path({str(folder / "driver")!r}))
for name, value in {variables!r}.items():
    ctypes.c_int.in_dll(c.driver, name).value = value
# Whole tiles of what the estimate may choose for sm_80, and none of 128 rows.
address = 0x1000 if {variables.get("fake_major", 9)} != 9 else 0x1002
arguments = {{"input": (64, 64), "other": (64, 256), "output": (64, 256)}}
result = call(c, **{{n: view(*s, address=address) for n, s in arguments.items()}})
print(result, c.last().label() if result == 0 else c.message())
"""
    printed = run(sys.executable, "-c", script, folder / "mm" / "libmm.so")
    assert printed.startswith(said), printed


#: On HIP a binary is tried: which of them a device runs, its driver knows.
_ON_HIP = """
import ctypes, sys
driver = ctypes.CDLL(sys.argv[2] + "/libamdhip64.so", mode=ctypes.RTLD_GLOBAL)
(ctypes.c_char * 64).in_dll(driver, "fake_image").value = sys.argv[3].encode()
library = ctypes.CDLL(sys.argv[1])
library.nt_error_message.restype = ctypes.c_char_p
from tests.aot.reference import View
def half(*shape):
    return ctypes.byref(View(shape, (shape[1], 1), device=(10, 0)).dlpack())
print(library.mm_launch(None, half(64, 32), half(32, 128), half(64, 128)), end=" ")
from tests.aot.making import Recording
driver.last_recording.restype = ctypes.POINTER(Recording)
last = driver.last_recording().contents
print(last.label() if last.launches else library.nt_error_message().decode())
"""


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ("<gfx942", "0 <gfx942 mm "),
        ("<gfx90a", "0 <gfx90a mm "),
        ("<gfx1100", "-3 kernel `mm` was not compiled for device 0"),
    ],
)
def test_a_device_of_amd_runs_its_binaries(runs: str, said: str, folder: Path) -> None:
    where = folder / "hip"
    if not where.exists():
        library(built("mm", where, targets=("sm_90", "gfx90a", "gfx942")))
    stub = driver(folder / "driver-hip", True)
    arguments = (where / "libmm.so", stub, runs)
    printed = run(
        sys.executable,
        "-c",
        _ON_HIP,
        *arguments,
        env={**environment(None), "PYTHONPATH": str(Path.cwd())},
    )
    assert printed.startswith(said), printed


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kernel_name": "launch"}, "not called 'launch'.*give another `kernel_name`"),
        ({"torch_library": "a b"}, "`torch_library` is a name in ASCII, not 'a b'"),
        ({"targets": ()}, "at least one target.*sm_90"),
        ({"output_dir": HERE / "making.py"}, "making.py' cannot be written to"),
    ],
)
def test_what_cannot_be_built(options: Any, text: str, tmp_path: Path) -> None:
    with labelled(), pytest.raises(ArgumentError, match=text):
        build(PREMAKES["silu"], [((), {}, {})], **{"output_dir": tmp_path, **options})
