"""The command line: what is printed, as text and as JSON, and how it ends."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ninetoothed import doctor, plugins
from ninetoothed.__main__ import main, table
from ninetoothed.errors import DeviceError
from ninetoothed.plugins import Listing, PluginManager
from ninetoothed.plugins.hookspecs import CONTRACT_VERSION

REPOSITORY = Path(__file__).resolve().parents[1]
MM = REPOSITORY / "examples" / "mm.py"

KERNEL = """
import ninetoothed
from ninetoothed import Tensor


def arrangement(x, factor, y):
    return x.tile((16,)), factor, y.tile((16,))


def application(x, factor, y):
    y = x * factor


kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scaling.py"
    path.write_text(KERNEL)
    return path


@pytest.fixture
def sick(monkeypatch):
    """A plugin manager with a plugin that cannot be imported."""
    built_in = {"gone": "ninetoothed_no_such_module", "numpy": "ninetoothed.backends.numpy.backend"}
    monkeypatch.setattr(plugins, "MANAGER", PluginManager(built_in=built_in, group=None))


def found(listing, name):
    return next(each for each in doctor.examine(listing).findings if each.what == name)


def test_a_table_is_as_wide_as_what_is_in_it():
    text = table([("a", "long"), ("bcd", "")], ("x", "y"))
    assert text == "x    y\n---  ----\na    long\nbcd"


def test_plugins_lists_frontends_and_backends(capsys):
    assert main(["plugins"]) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert lines["plugin"] == ["plugin", "version", "origin", "state", "frontends", "backends"]
    assert lines["torch"][2:] == ["built", "in", "works", "torch", "-"]
    assert lines["triton"][2:] == ["built", "in", "works", "-", "triton"]


@pytest.mark.usefixtures("sick")
def test_plugins_tells_why_one_is_broken_and_ends_with_1(capsys):
    assert main(["plugins"]) == 1
    output = capsys.readouterr().out
    assert "gone is broken: ModuleNotFoundError" in output
    assert "numpy" in output


def test_plugins_as_json(capsys):
    assert main(["plugins", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["contract"] == CONTRACT_VERSION
    torch = next(each for each in told["plugins"] if each["name"] == "torch")
    assert (torch["state"], torch["origin"], torch["frontends"]) == ("works", "built in", ["torch"])


def test_doctor_says_what_kernels_run_on(capsys):
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert "cache directory" in output
    has_a_framework = any(importlib.util.find_spec(name) for name in ("torch", "paddle"))
    where = "the CPU, by the NumPy backend: tensors of" if has_a_framework else "nothing"
    assert f"Kernels run here on:\n  {where}" in output


@pytest.mark.usefixtures("sick")
def test_doctor_ends_with_1_where_something_is_broken(capsys):
    assert main(["doctor", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    broken = [each for each in told["findings"] if each["state"] == "broken"]
    assert [each["what"] for each in broken] == ["plugin gone"]
    assert "update or uninstall" in broken[0]["advice"]


def test_doctor_advises_the_plugin_of_an_installed_framework(monkeypatch):
    versions = {"jax": "0.11.2", "numpy": "2.3", "ml_dtypes": "0.5"}
    monkeypatch.setattr(doctor, "_version", versions.get)
    jax = found([Listing("numpy-arrays", "ninetoothed-numpy", ("numpy",), (), "")], "jax tensors")
    folder = Path(doctor.__file__).parents[1] / "plugins" / "ninetoothed-jax"
    assert (jax.state, jax.advice) == ("missing", f"pip install {folder}")
    monkeypatch.setattr(doctor, "__file__", "/site-packages/ninetoothed/doctor.py")
    jax = found([], "jax tensors")
    assert jax.advice == "pip install ninetoothed-jax"
    assert found((), "torch tensors").found == "not installed"


def test_doctor_wants_a_new_enough_triton(monkeypatch):
    monkeypatch.setattr(doctor, "_version", {"triton": "3.5.1", "numpy": "2.3"}.get)
    triton = found((), "triton")
    assert (triton.state, triton.advice) == ("broken", "pip install 'triton>=3.6'")
    assert found((), "ml_dtypes").state == "broken"


def test_doctor_tells_why_there_is_no_gpu(monkeypatch):
    from ninetoothed.backends.triton.runtime import device_api

    def none(kind):
        raise DeviceError(f"There is no {kind} driver on this machine.")

    monkeypatch.setattr(device_api, "runtime", none)
    assert found((), "GPU") == ("GPU", "missing", "There is no cuda driver on this machine.", "")


def test_doctor_describes_the_gpus_and_who_can_use_them(monkeypatch):
    from ninetoothed.backends.triton.runtime import device_api
    from ninetoothed.tuning.estimate import DeviceLimits

    class Library:
        def device_count(self):
            return 2

        def limits(self, index):
            return DeviceLimits("Toy GPU", "cuda", 90, 32, 132, 232448, 233472)

    def of(kind):
        if kind == "hip":
            raise DeviceError("none")
        return Library()

    monkeypatch.setattr(device_api, "runtime", of)
    monkeypatch.setattr(doctor, "_compiler", lambda: doctor.Finding("C compiler", "ok", "cc"))
    listing = [Listing("torch", "built in", ("torch",), (), "")]
    monkeypatch.setattr(doctor, "_version", {"triton": "3.6.0", "torch": "2.11"}.get)
    examined = doctor.examine(listing)
    assert [each.found for each in examined.findings if each.what == "cuda:1"] == [
        "Toy GPU, architecture 90, 132 multiprocessors, 232448 bytes of shared memory a program"
    ]
    assert "cuda:1, by the Triton backend: tensors of torch" in examined.runs_on


def test_doctor_wants_a_compiler_that_is_there(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert found((), "C compiler")[1:3] == ("missing", "CC is no-such-compiler, which is not there")


def test_doctor_refuses_a_cache_that_others_can_write(monkeypatch, tmp_path):
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o777)
    cache = found((), "cache directory")
    assert (cache.state, cache.advice.split(";")[0]) == ("broken", f"chmod 700 {tmp_path}")
    tmp_path.chmod(0o700)
    assert found((), "cache directory").state == "ok"


def test_inspect_shows_shapes_program_source_and_launch_function(capsys):
    assert main(["inspect", f"{MM}:kernel"]) == 0
    output = capsys.readouterr().out
    assert "kernel mm(input, other, output)" in output
    assert "programs  ((BLOCK_SIZE_M + input_size_0 - 1) // BLOCK_SIZE_M" in output
    assert "tile      (BLOCK_SIZE_M, BLOCK_SIZE_N)" in output
    assert "== program\n\nprogram mm:" in output
    assert "accumulator += tl.dot(input_tile, other_tile" in output
    assert "== launch function for torch\n\ndef launch(" in output


def test_inspect_as_json(capsys, file):
    assert main(["inspect", "--json", f"{file}:kernel"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["arguments"] == ["x", "factor", "y"]
    assert told["parameters"][0]["levels"] == ["((x_size_0 + 15) // 16,)", "(16,)"]
    assert [each["kind"] for each in told["parameters"]] == ["tensor", "scalar", "tensor"]
    assert "@triton.jit" in told["source"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kernl", "scaling.py is not there. Did you mean 'kernel'? Its kernels: kernel."),
        ("number", "scaling.py is of type int, no kernel. Its kernels: kernel."),
    ],
)
def test_inspect_names_the_kernels_that_there_are(capsys, file, name, message):
    assert main(["inspect", f"{file}:{name}"]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("no_such_file.py:kernel", "There is no file no_such_file.py"),
        ("kernel", "Say FILE:KERNEL"),
        (f"{MM}:", "Say FILE:KERNEL"),
    ],
)
def test_inspect_says_what_it_needs(capsys, place, message):
    assert main(["inspect", place]) == 1
    assert message in capsys.readouterr().err


def test_inspect_tells_what_stops_a_file(capsys, tmp_path):
    path = tmp_path / "failing.py"
    path.write_text("1 / 0\n")
    assert main(["inspect", f"{path}:kernel"]) == 1
    said = capsys.readouterr().err
    assert "failing.py cannot be run: ZeroDivisionError" in said
    assert f'File "{path}", line 1' in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "'unbuilt' cannot be imported: ZeroDivisionError: division by zero"),
        ("import nowhere", "'unbuilt' cannot be imported: No module named 'nowhere'"),
        ("def premake(:", "'unbuilt' cannot be imported: SyntaxError"),
    ],
)
def test_build_tells_what_stops_a_module(capsys, tmp_path, monkeypatch, text, message):
    path = tmp_path / "unbuilt.py"
    path.write_text(f"\n{text}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "unbuilt", raising=False)
    assert main(["build", "unbuilt:premake", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert f'File "{path}", line 2' in said


def test_inspect_of_an_unknown_frontend_lists_the_known(capsys, file):
    assert main(["inspect", "--frontend", "torhc", f"{file}:kernel"]) == 1
    assert "There is no frontend 'torhc'. Did you mean 'torch'?" in capsys.readouterr().err


def test_show_writes_a_page(capsys, tmp_path):
    out = tmp_path / "mm.html"
    sizes = "input=64x64 other=64x64 output=64x64 BLOCK_SIZE_M=16"
    assert main(["show", f"{MM}:kernel", "--sizes", sizes, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out} written; open it in a browser\n"
    page = out.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "<title>mm</title>" in page
    assert '"label": "BLOCK_SIZE_M", "value": 16' in page


def test_show_chooses_a_file_and_sizes(capsys, tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)
    assert main(["show", f"{file}:kernel", "--sizes", "x=40"]) == 0
    assert '"label": "x.shape[0]", "value": 40' in (tmp_path / "scaling.html").read_text()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("inptu=64x64", "'inptu' is neither a tensor nor a symbol of `mm`. Did you mean 'input'?"),
        ("input=64", "subs got the shape (64,)"),
        ("input=64x", "--sizes has 'input=64x'; say NAME=SIZE"),
        ("input", "--sizes has 'input'; say NAME=SIZE"),
        ("=4", "--sizes has '=4'; say NAME=SIZE"),
        ("input=8x8 input=8x8", "--sizes gives 'input' twice"),
        (
            "input=64x64 output=8x64",
            "the outermost shapes of the arranged tensors must be the same",
        ),
        ("BLOCK_SIZE_M=4x4", "subs got (4, 4) for `BLOCK_SIZE_M`"),
    ],
)
def test_show_tells_what_is_wrong_with_sizes(capsys, tmp_path, sizes, message):
    out = tmp_path / "mm.html"
    assert main(["show", f"{MM}:kernel", "--sizes", sizes, "--out", str(out)]) == 1
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_show_tells_of_a_file_that_cannot_be_written(capsys, tmp_path):
    out = tmp_path / "none" / "mm.html"
    assert main(["show", f"{MM}:kernel", "--out", str(out)]) == 1
    assert f"{out} cannot be written: No such file" in capsys.readouterr().err


def test_an_error_of_the_command_line_points_at_no_file_of_pythons(tmp_path):
    command = [sys.executable, "-m", "ninetoothed", "show", f"{MM}:kernel", "--sizes", "x=1"]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 1
    assert "'x' is neither a tensor nor a symbol" in result.stderr and "File" not in result.stderr


def test_inspecting_leaves_nothing_behind(file):
    path, modules = list(sys.path), set(sys.modules)
    assert main(["inspect", "--json", f"{file}:kernel"]) == 0
    assert sys.path == path
    assert "scaling" not in set(sys.modules) - modules


@pytest.mark.parametrize("arguments", [[], ["cure"], ["inspect"]])
def test_a_wrong_call_ends_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m ninetoothed" in capsys.readouterr().err


def test_it_runs_as_a_module_and_imports_no_framework():
    command = [sys.executable, "-X", "importtime", "-m", "ninetoothed", "doctor"]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert imported & {"torch", "paddle", "triton", "jax", "cupy"} == set()


def test_a_table_writes_out_what_would_steer_a_terminal():
    assert table([("a\x1b[2J", "b")], ("x", "y")).splitlines()[2] == "a\\x1b[2J  b"


def _distribution(tmp_path, monkeypatch, files):
    metadata = tmp_path / "ninetoothed-0.26.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: ninetoothed\nVersion: 0.26.0\n"
    )
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    monkeypatch.syspath_prepend(tmp_path)


def test_another_projects_distribution_of_the_same_name_is_noticed(tmp_path, monkeypatch):
    _distribution(tmp_path, monkeypatch, ["ninetoothed/__init__.py", "ninetoothed/jit.py"])
    manager = plugins.PluginManager()
    with pytest.warns(RuntimeWarning, match="ninetoothed 0.26.0 is another project's.*uninstall"):
        assert manager.frontend_named("torch").name == "torch"
    ours = found((), "ninetoothed")
    assert ours.state == "broken" and "pip uninstall ninetoothed" in ours.advice


def test_our_own_distribution_is_no_other_projects(tmp_path, monkeypatch):
    files = ["ninetoothed/__init__.py", "ninetoothed/plugins/hookspecs.py"]
    _distribution(tmp_path, monkeypatch, files)
    assert found((), "ninetoothed").state == "ok"


def test_who_reads_may_stop_reading():
    command = [sys.executable, "-m", "ninetoothed", "inspect", f"{MM}:kernel"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
