"""The commands that look at a study, as somebody types them."""

import shutil

from tests.references.real_commands import omdpd

TINY = """\
episodes = 6
seeds = 1
worlds = [{ name = "random_dirichlet", n_states = 3, n_actions = 2, horizon = 3, binding = false }]
natures = [{ name = "noisy" }]
learners = [{ name = "Uniform" }]
"""


def test_a_report_is_written_where_it_is_asked_for(study_folder, tmp_path):
    code, told = omdpd("report", study_folder, "-o", tmp_path / "deep" / "page.html")
    assert code == 0
    assert told.startswith(f"wrote {tmp_path / 'deep' / 'page.html'} (")
    assert (tmp_path / "deep" / "page.html").read_text().startswith("<!doctype html>")


def test_a_folder_without_results_is_refused_with_a_sentence(tmp_path):
    code, told = omdpd("report", tmp_path)
    assert code == 2
    assert told == f"omdpd: {tmp_path} holds no results: there is no folder {tmp_path / 'runs'}\n"


def test_a_run_can_end_with_its_report(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    code, told = omdpd("run", tmp_path / "tiny.toml", "--out", tmp_path / "out", "--jobs", 1, "--report")
    assert code == 0, told
    assert "report.html" in told.replace("\n", "")
    assert (tmp_path / "out" / "report.html").exists()


def test_figures_for_a_paper_are_written_and_another_style_is_refused(study_folder, tmp_path):
    code, told = omdpd("plot", study_folder, "--out", tmp_path, "--style", "paper")
    assert code == 0, told
    assert {"paper-one.pdf", "paper-two.svg", "exponents.tex"} <= {file.name for file in tmp_path.iterdir()}
    code, told = omdpd("plot", study_folder, "--style", "poster")
    assert code == 2
    assert told == "omdpd: --style is 'poster', but must be screen or paper\n"


def test_a_player_is_written(grid_folder, tmp_path):
    folder = shutil.copytree(grid_folder, tmp_path / "grid")
    code, told = omdpd("animate", folder)
    assert code == 0, told
    assert told == f"wrote {folder / 'animation.html'}\n"
