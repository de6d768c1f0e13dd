"""Breakpoints, prints and threads in the user's own function."""

from __future__ import annotations

import io
import pdb
import threading

import numpy as np

import ninetoothed.language as ntl
from tests.numpy.execution.running import floats, run


def test_a_breakpoint_stops_in_the_users_line(monkeypatch):
    output = io.StringIO()

    def application(x, out):
        local = x + 1
        breakpoint()
        out = local

    commands = io.StringIO("p local.data.tolist()\np x\nn\nn\nc\n")
    debugger = pdb.Pdb(stdin=commands, stdout=output, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    monkeypatch.setattr("sys.breakpointhook", lambda: debugger.set_trace(_frame_of("application")))
    run(application, floats(4), np.zeros(4, np.float32))
    text = output.getvalue()
    assert "test_debugger.py" in text
    assert "out = local" in text
    assert "[2.0, 3.0, 4.0, 5.0]" in text
    assert "tensor of program (0,)" in text


def _frame_of(name):
    import sys

    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != name:
        frame = frame.f_back
    return frame


def test_a_print_shows_the_loaded_tile(capsys):
    def application(x):
        print("tile", x)

    run(application, floats(4))
    assert "float32[4]" in capsys.readouterr().out


def test_a_debugger_steps_line_by_line_without_added_stops():
    def application(x, flag, out):
        total = x * 0
        for k in range(2):
            if flag > k:
                total = total + x
        out = total

    lines = []
    first = application.__code__.co_firstlineno

    def trace(frame, event, argument):
        if frame.f_code.co_name != "application":
            return None
        if event == "line":
            lines.append(frame.f_lineno - first)
        return trace

    import sys

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        run(application, floats(4), 1.0, np.zeros(4, np.float32))
    finally:
        sys.settrace(previous)
    assert lines == [1, 2, 3, 4, 2, 3, 2, 5]


def test_the_users_function_is_not_changed():
    def application(x, out):
        out = x

    code = application.__code__
    run(application, floats(4), np.zeros(4, np.float32))
    assert application.__code__ is code


def test_threads_run_kernels_side_by_side():
    def application(x, out):
        out = x + ntl.program_id(0)

    results = {}

    def work(number):
        out = np.zeros(64, np.float32)
        for _ in range(5):
            run(application, floats(64) * number, out)
        results[number] = out

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_array_equal(results[number], floats(64) * number + np.arange(64) // 4)


def test_the_operands_of_a_tile_in_a_debugger_are_its_values():
    def application(x, out):
        reference = [x.source, out]
        assert reference[0].shape == (4,)
        inspect_references(x, out)

    def inspect_references(x, out):
        seen.append(references(locals()))

    seen = []
    run(application, floats(4), floats(4))
    (names,) = seen
    assert (names["x"] + names["out"]).data.tolist() == [2, 4, 6, 8]
    assert (2 * names["x"]).data.tolist() == [2, 4, 6, 8]
    assert (-names["x"]).data.tolist() == [-1, -2, -3, -4]
    assert (names["x"] < 3).data.tolist() == [True, True, False, False]


def references(names):
    return dict(names)
