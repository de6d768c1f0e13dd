"""The text of a program after the passes."""

from ninetoothed.program.verify import verify
from tests.parsing.applications import body_of, program_of


def after(application, *run):
    """The text of a program after some passes, each of which leaves what it is given alone."""
    program = program_of(application)
    for each in run:
        text = str(program)
        result = each.run(program)
        verify(result)
        assert str(program) == text
        program = result
    return body_of(program)
