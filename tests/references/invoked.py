"""Commands in this process."""

from typer.testing import CliRunner

from omdpd.cli.main import app


def command(*words):
    """What came of a command."""
    return CliRunner().invoke(app, [str(word) for word in words])
