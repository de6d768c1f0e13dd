"""Compilation for named targets on a machine that need not have any of them."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("triton")

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.backends.triton.compiler import compile as compiling
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.compiler.compile import compile_source
from ninetoothed.backends.triton.specialization.target import Target
from ninetoothed.errors import ApplicationError, CompilationError, DeviceError

SOURCE = '''"""A kernel as the emitter writes them."""
import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n)
    tl.store(y + offsets, value * 2.0 + 1.0, mask=offsets < n)
'''

SIGNATURE = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
ALIGNED = {"x": 16, "y": 16}
HOPPER = Target.parse(("cuda", 90))

TARGETS = [("cuda", 80), ("cuda", 90), ("cuda", 100), ("hip", "gfx942")]


def compiled(source: str = SOURCE, target: Target = HOPPER, divisors=ALIGNED, **options):
    return compile_source(
        source, "add_kernel", SIGNATURE, {"BLOCK": 1024}, divisors, target, **options
    )


@pytest.mark.parametrize("description", TARGETS, ids=str)
def test_each_target_gets_its_binary(description) -> None:
    stages = compiled(target=Target.parse(description)).asm

    text, binary = ("amdgcn", "hsaco") if description[0] == "hip" else ("ptx", "cubin")
    assert "add_kernel" in stages[text] and stages[binary][:4] == b"\x7fELF"


def test_a_target_knows_its_warp_size() -> None:
    sizes = [Target.parse(given).warp_size for given in [*TARGETS, ("hip", "gfx1100")]]
    assert sizes == [32, 32, 32, 64, 32]
    assert Target.parse(("hip", "gfx942", 32)).warp_size == 32
    assert Target.parse(HOPPER) is HOPPER


@pytest.mark.parametrize("given", ["cuda", ("cuda", "90"), ("hip", 942), ("metal", 1), 90, ()])
def test_what_is_no_target_is_refused(given) -> None:
    with pytest.raises(DeviceError, match=r"is no target.*\(\"cuda\", 90\)"):
        Target.parse(given)


def test_options_reach_the_compiler() -> None:
    metadata = compiled(num_warps=8, num_stages=2).metadata
    assert (metadata.num_warps, metadata.num_stages) == (8, 2)


def test_a_multiplication_and_an_addition_are_fused_whatever_the_release() -> None:
    assert "fma.rn" in compiled().asm["ptx"]
    assert "fma.rn" not in compiled(enable_fp_fusion=False).asm["ptx"]


@pytest.mark.parametrize("told, width", [(16, "v4.b32"), (4, "v4.b32"), (2, "v2.b32"), (1, "b32")])
def test_what_divides_a_size_decides_how_wide_accesses_are(told: int, width: str) -> None:
    text = compiled(divisors=ALIGNED | {"n": told}).asm["ptx"]
    assert set(re.findall(r"(?:ld|st)\.global\.(\S+)", text)) == {width}


@pytest.mark.parametrize("told, width", [(16, "v4.b32"), (8, "v2.b32"), (4, "b32")])
def test_what_divides_an_address_decides_how_wide_accesses_are(told: int, width: str) -> None:
    text = compiled(divisors={"x": told, "y": told, "n": 16}).asm["ptx"]
    assert set(re.findall(r"(?:ld|st)\.global\.(\S+)", text)) == {width}


def test_functions_of_the_user_are_found() -> None:
    double = compiling.load(
        "import triton\n\n\n@triton.jit\ndef double(value):\n    return value + value\n",
        "double",
        Path("double.py"),
        {},
    )
    source = SOURCE.replace("value * 2.0", "twice(value)")

    assert "add_kernel" in compiled(source, externs={"twice": double}).asm["ptx"]
    with pytest.raises(CompilationError, match="twice is not defined"):
        compiled(source)


def test_the_target_that_the_language_sees_is_the_one_compiled_for() -> None:
    source = SOURCE.replace(
        "import triton.language as tl",
        "import triton.language as tl\nfrom triton.language.target_info import is_cuda",
    ).replace("value * 2.0 + 1.0", "value if is_cuda() else value * 0.25")

    assert "arith.mulf" not in compiled(source).asm["ttir"]
    assert "arith.mulf" in compiled(source, Target.parse(("hip", "gfx942"))).asm["ttir"]


def test_other_threads_keep_their_driver_meanwhile() -> None:
    from triton.runtime import driver

    before = driver._active
    mine = SimpleNamespace(get_current_target=lambda: "mine", utils="my utilities")
    driver.set_active(mine)
    seen = []
    try:
        with compiling.compiling_for("the target"):
            other = threading.Thread(
                target=lambda: seen.append(
                    (driver.active.get_current_target(), driver.active.utils)
                )
            )
            other.start()
            other.join()
            assert driver.active.get_current_target() == "the target"
        assert seen == [("mine", "my utilities")] and driver.active is mine
    finally:
        driver.set_active(before)


def test_the_file_is_where_inspection_finds_the_source(tmp_path: Path) -> None:
    import inspect

    path = tmp_path / "never_written.py"
    function = compiling.load(SOURCE, "add_kernel", path, {})

    assert inspect.getsourcefile(function.fn) == str(path)
    assert inspect.getsource(function.fn).startswith("@triton.jit\ndef add_kernel(")


def test_what_runs_is_the_text_given_and_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text("raise SystemExit('the file was executed')")

    assert "add_kernel" in compiled(path=path).asm["ptx"]
    assert path.read_text().startswith("raise SystemExit")


def test_one_source_is_loaded_once(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    first = compiling.load(SOURCE, "add_kernel", path, {})

    assert compiling.load(SOURCE, "add_kernel", path, {}) is first
    assert compiling.load(SOURCE + "\n", "add_kernel", path, {}) is not first
    assert compiling.load(SOURCE, "add_kernel", path, {"extern": first}) is not first


def test_threads_compile_at_once() -> None:
    def shared(warps: int) -> int:
        return compiled(SOURCE + f"# {warps}\n", num_warps=warps).metadata.num_warps

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(shared, [1, 2, 4, 8])) == [1, 2, 4, 8]


def test_a_refusal_shows_the_generated_line() -> None:
    with pytest.raises(CompilationError) as caught:
        compiled(SOURCE.replace("value * 2.0", "values * 2.0"))

    message = str(caught.value)
    assert "cannot compile 'add_kernel' for ('cuda', 90): values is not defined" in message
    assert "tl.store(y + offsets, values * 2.0 + 1.0, mask=offsets < n)" in message
    assert caught.value.location.line == 10 and Path(caught.value.location.file).exists()


def test_a_refusal_inside_a_helper_shows_the_call_and_the_reason() -> None:
    helper = "@triton.jit\ndef helper(value):\n    return tl.reshape(value, (3, 5))\n\n\n"
    source = SOURCE.replace("@triton.jit\n", helper + "@triton.jit\n").replace(
        "value * 2.0", "helper(value)"
    )
    with pytest.raises(CompilationError) as caught:
        compiled(source)

    message = str(caught.value)
    assert "helper(value) + 1.0" in message and "must be a power of 2" in message


def test_an_assertion_that_says_nothing_is_named() -> None:
    asserted = "    tl.static_assert(BLOCK == 0)\n    tl.store("
    with pytest.raises(CompilationError, match="cannot compile .*: CompileTimeAssertionFailure"):
        compiled(SOURCE.replace("    tl.store(", asserted))


@pytest.mark.parametrize(
    ("dtype", "too_small", "error", "size"),
    [("float16", 8, ApplicationError, 16), ("int8", 16, CompilationError, 32)],
)
def test_a_product_of_tiles_too_small_says_what_to_do(
    dtype: str, too_small: int, error: type[Exception], size: int
) -> None:
    def product(x, y, output):
        output = ntl.dot(x, y)  # noqa: F841

    def of_inner_size(inner):
        def arrangement(x, y, output):
            return x.tile((16, inner)), y.tile((inner, 16)), output.tile((16, 16))

        return ninetoothed.make(arrangement, product, tuple(Tensor(2) for _ in range(3)))

    torch = pytest.importorskip("torch", reason="needs PyTorch")
    x, y = (torch.ones(shape, dtype=getattr(torch, dtype)) for shape in ((16, 8), (8, 16)))
    output = torch.empty(16, 16)

    with pytest.raises(error, match=f"`ntl.dot` takes tiles.* {size} or more") as raised:
        of_inner_size(too_small).compile(x, y, output, target=HOPPER)

    assert "output = ntl.dot(x, y)" in str(raised.value)
    of_inner_size(size).compile(x, y, output, target=HOPPER)
    of_inner_size(size)(x, y, output)
    assert torch.equal(output, torch.full((16, 16), 8.0))


def reduced_number(x, y):
    y = x + ntl.max(ntl.program_id(0))  # noqa: F841


def tile_as_condition(x, y):
    if x > 0:
        y = x  # noqa: F841


def tile_in_a_conditional_expression(x, y):
    y = x if x > 0 else -x  # noqa: F841


def number_that_becomes_a_tile(x, y):
    total = 0.0
    for _ in range(x.source.shape[1]):
        total += x
    y = total  # noqa: F841


@pytest.mark.parametrize(
    ("application", "error", "advice"),
    [
        (reduced_number, ApplicationError, "got one number. Use it as it is"),
        (tile_as_condition, ApplicationError, "One number is needed here, .*; ntl.where chooses"),
        (tile_in_a_conditional_expression, ApplicationError, "needed here, .*; ntl.where chooses"),
        (number_that_becomes_a_tile, ApplicationError, "Give it the shape .* before it begins"),
    ],
)
def test_what_often_is_not_as_triton_has_it_says_what_to_do(application, error, advice) -> None:
    def arrangement(*tensors):
        return tuple(tensor.tile((1, 8)) for tensor in tensors)

    torch = pytest.importorskip("torch", reason="needs PyTorch")

    with pytest.raises(error, match=advice) as raised:
        kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
        kernel.compile(torch.ones(4, 20), torch.empty(4, 20), target=HOPPER)
    assert __file__ in str(raised.value)


def test_a_function_that_one_device_lacks_says_what_to_do() -> None:
    def application(x, y):
        y = ntl.libdevice.cbrt(x)  # noqa: F841

    torch = pytest.importorskip("torch", reason="needs PyTorch")
    kernel = ninetoothed.make(
        lambda *tensors: tuple(tensor.tile((8,)) for tensor in tensors),
        application,
        (Tensor(1), Tensor(1)),
    )

    with pytest.raises(CompilationError, match="no `libdevice.cbrt` for this device: write it"):
        kernel.compile(torch.ones(6), torch.empty(6), target=("hip", "gfx942"))


def compiled_with(function):
    """A kernel compiled with a function of the language for a constant."""

    def application(x, function, y):
        y = function(x)  # noqa: F841

    torch = pytest.importorskip("torch", reason="needs PyTorch")
    kernel = ninetoothed.make(
        lambda x, function, y: (x.tile((8,)), function, y.tile((8,))),
        application,
        (Tensor(1), Tensor(0, constexpr=True), Tensor(1)),
    )
    return kernel.compile(torch.ones(6), function, torch.empty(6), target=HOPPER)


@pytest.mark.parametrize("function", [ntl.exp, ntl.abs, ntl.libdevice.tanh], ids=repr)
def test_a_constant_may_be_a_function_of_the_language(function) -> None:
    assert compiled_with(function).asm["ptx"]


def test_a_program_that_does_nothing_compiles() -> None:
    def application(x, y):
        x + 1

    torch = pytest.importorskip("torch", reason="needs PyTorch")
    kernel = ninetoothed.make(
        lambda *tensors: tuple(tensor.tile((8,)) for tensor in tensors),
        application,
        (Tensor(1), Tensor(1)),
    )

    assert kernel.compile(torch.ones(6), torch.empty(6), target=HOPPER).asm["ptx"]


def test_a_source_that_is_no_python_is_located() -> None:
    with pytest.raises(CompilationError, match="is no Python") as caught:
        compiled(SOURCE.replace("tl.load(", "tl.load(("))
    assert caught.value.location.line == 9


def test_a_source_without_the_kernel_is_refused() -> None:
    with pytest.raises(CompilationError, match="defines no `triton.jit` function 'add_kernel'"):
        compiled(SOURCE.replace("def add_kernel", "def other_kernel"))


def test_a_signature_that_does_not_fit_is_refused() -> None:
    with pytest.raises(CompilationError, match=r"has the parameters \['BLOCK', 'n', 'x', 'y'\]"):
        compile_source(SOURCE, "add_kernel", {"x": "*fp32"}, {}, {}, HOPPER)
    with pytest.raises(CompilationError, match=r"has the constants \['BLOCK'\].*given \[\]"):
        compile_source(SOURCE, "add_kernel", SIGNATURE, {}, {}, HOPPER)


def test_an_old_triton_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import triton

    monkeypatch.setattr(triton, "__version__", "3.5.1")
    versions.version.cache_clear()
    try:
        with pytest.raises(DeviceError, match=r"Triton 3\.5\.1 is too old: 3\.6 or newer"):
            compiled()
    finally:
        versions.version.cache_clear()


def test_no_framework_is_needed_or_imported() -> None:
    script = f"""
        import sys
        for framework in ("torch", "paddle", "jax", "cupy"):
            sys.modules[framework] = None
        from ninetoothed.backends.triton.compiler.compile import compile_source
        from ninetoothed.backends.triton.specialization.target import Target
        kernel = compile_source({SOURCE!r}, "add_kernel", {SIGNATURE!r}, {{"BLOCK": 512}},
                                dict.fromkeys("xy", 16), Target.parse(("cuda", 90)))
        print(kernel.asm["cubin"][1:4].decode())
    """
    finished = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    assert finished.stdout.strip() == "ELF", finished.stderr


def test_a_thread_that_parses_meanwhile_makes_triton_parse_again(monkeypatch, tmp_path) -> None:
    from triton.runtime import JITFunction

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    disturbed = []
    plain = JITFunction.parse

    def parse(self):
        if len(disturbed) < 2:
            disturbed.append(self)
            raise SystemError("AST constructor recursion depth mismatch (before=45, after=39)")
        return plain(self)

    monkeypatch.setattr(JITFunction, "parse", parse)
    source = SOURCE.replace("1.0", "3.0")
    compiled = compile_source(source, "add_kernel", SIGNATURE, {"BLOCK": 128}, ALIGNED, HOPPER)

    assert compiled.asm["ptx"]
    assert len(disturbed) == 2
