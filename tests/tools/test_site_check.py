"""A page of the site that shows an error or the name of a picture is found."""

import pytest

from tools.site_check import FAULTS, main


@pytest.mark.parametrize("fragment", FAULTS)
def test_an_output_that_is_not_what_was_wanted_is_found(tmp_path, capsys, fragment):
    (tmp_path / "index.html").write_text("all is well")
    (tmp_path / "_modules").mkdir()
    (tmp_path / "_modules" / "code.html").write_text(fragment)
    assert main(str(tmp_path)) == 0
    (tmp_path / "page.html").write_text(f"<pre>{fragment}</pre>")
    assert main(str(tmp_path)) == 1
    assert capsys.readouterr().out.startswith("page.html: ")


def test_a_folder_without_a_site_is_said_to_be_none(tmp_path, capsys):
    assert main(str(tmp_path)) == 2
    assert "make docs" in capsys.readouterr().out
