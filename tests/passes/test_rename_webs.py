"""Names of what an `if` gives another type."""

import ninetoothed.language as ntl
from ninetoothed.passes import mask_padding, rename_webs
from tests.passes.passed import after


def text_of(application):
    return after(application, rename_webs)


def test_what_both_ways_give_another_shape_has_a_name_of_its_own():
    def application(x, n, y):
        v = ntl.sum(x)
        if n > 1:
            v = v * x
        else:
            v -= x
        y = v

    text = text_of(application)

    assert "v = ntl.sum(x)" in text
    assert "v_1 = v * x" in text
    assert "v_1 = v - x" in text
    assert text.splitlines()[-1].endswith("v_1")


def test_what_has_one_type_keeps_its_name():
    def application(x, n, y):
        v = x.to(ntl.float32)
        if n > 1:
            v = v * 2.0
        else:
            v = v + 1.0
        y = v

    assert "v_1" not in text_of(application)


def test_what_a_constant_decides_keeps_its_name():
    def application(x, FLAG: ntl.constexpr, y):
        v = ntl.sum(x)
        if FLAG:
            v = v * x
        else:
            v = v + x
        y = v

    assert "v_1" not in text_of(application)


def test_what_a_round_hands_on_has_one_name():
    def application(x, n, y):
        v = x + 1
        for k in range(n):
            v = ntl.sum(v)
            if k > 1:
                v = v * x
            else:
                v = v - x
        y = v

    lines = [line.strip() for line in text_of(application).splitlines()]

    assert "v = ntl.sum(v_1)" in lines
    assert "v_1 = x + 1" in lines
    assert {"v_1 = v * x", "v_1 = v - x"} < {*lines}


def test_what_keeps_what_it_had_keeps_its_name():
    def application(x, n, y):
        v = x.offsets(0) + 0 * x.to(ntl.int32)
        total = ntl.full(x.shape, 0.0, ntl.float64)
        for k in range(n):
            if n > 1:
                total += v // 0.5
            elif n > 0:
                total += v // 2.0
        y = ntl.sum(total)

    text = after(application, mask_padding, rename_webs)

    assert "total = kept(total, total_before" in text
    assert "total_1" not in text
