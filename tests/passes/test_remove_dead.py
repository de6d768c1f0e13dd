"""What is never read is removed, and what has an effect stays."""

import ninetoothed.language as ntl
from ninetoothed import passes
from ninetoothed.passes import remove_dead
from tests.parsing.applications import body_of, expected, program_of
from tests.passes.passed import after

# Dead code.


def test_what_is_never_read_is_removed():
    def application(x, y, n):
        unused = x + 1
        chain = unused * 2
        counter = n
        counter += 1
        y = x

    assert after(application, remove_dead) == "store y = x"


def test_blocks_that_became_empty_are_removed():
    def application(x, y, n):
        unused = 0.0
        for k in range(n):
            if k > 2:
                unused += 1.0
        y = x

    assert after(application, remove_dead) == "store y = x"


def test_an_empty_first_branch_is_turned_round():
    def application(x, y, n):
        if n > 0:
            unused = x + 1
        else:
            y = x

    assert after(application, remove_dead) == expected("""
        if not n > 0:
            store y = x
    """)


def test_effects_stay():
    def application(x, y, n):
        old = ntl.atomic_add(y.data_ptr() + y.offsets(), x)
        while n > 0:
            n = n - 1

    text = after(application, remove_dead)

    assert "atomic_add" in text
    assert "while n_1 > 0" in text


def test_passes_end():
    def application(x, y, n):
        while n > 0:
            unused = x
        y = x

    program = program_of(application)

    assert body_of(passes.run(program)) == body_of(passes.run(passes.run(program)))
