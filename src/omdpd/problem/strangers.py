"""Code of others that is called here (plugins, environments, a user's own functions): what it does ends in a sentence.

Whatever such code raises becomes one sentence that says what was called, and nothing called so ends the program.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from omdpd.problem.arrays import InvalidInputError, shortened


@contextmanager
def strangers_code(what: str, passing: tuple[type[BaseException], ...] = ()) -> Iterator[None]:
    """Refuse what is raised inside with a sentence that begins with `what`; our own refusals pass unchanged.

    So do Ctrl-C, a lack of memory, and what is `passing`.

    >>> with strangers_code("the factory of 'mine' raised"):
    ...     raise KeyError("x")
    Traceback (most recent call last):
        ...
    omdpd.problem.arrays.InvalidInputError: the factory of 'mine' raised KeyError: 'x'
    """
    try:
        yield
    except (Exception, SystemExit, GeneratorExit) as error:  # whatever it is, it is not ours
        if isinstance(error, (InvalidInputError, MemoryError, *passing)):
            raise
        raise InvalidInputError(f"{what} {said(error)}") from error


def said(error: BaseException) -> str:
    """Describe an error of foreign code as part of a sentence: its class, and its message in one line.

    An exit says nothing, so its place is told.
    """
    try:
        text = " ".join(str(error).split())
        if isinstance(error, SystemExit) and error.__traceback__ is not None:
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{text} (in {place.filename}, line {place.lineno})"
    except Exception:  # somebody's own way to say it
        text = ""
    return shortened(f"{type(error).__name__}: {text}" if text else type(error).__name__)
