"""The text of a program whose padding is masked."""

from ninetoothed.passes import mask_padding
from ninetoothed.program.verify import verify
from tests.parsing.applications import body_of, program_of


def masked(application, *before):
    """The text of a program after the pass, which leaves what it is given alone."""
    program = program_of(application)
    for each in before:
        program = each.run(program)
    text = str(program)
    result = mask_padding.run(program)
    verify(result)
    assert str(program) == text
    return body_of(result)
