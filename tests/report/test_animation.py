import shutil

import pytest
from PIL import Image

from omdpd.problem.arrays import InvalidInputError
from omdpd.report.animation import animated_runs, write_gif, write_player
from omdpd.report.study import load_study
from tests.report.test_page import address, move
from tests.report.test_study import runs_of


@pytest.fixture(scope="session")
def player(grid_folder, tmp_path_factory):
    study = load_study(grid_folder)
    return write_player(study, animated_runs(study), tmp_path_factory.mktemp("player") / "player.html")


def frame(page):
    return int(page.get_attribute("main", "data-frame"))


def test_the_player_opens_from_disk_plays_and_stops(tab, player):
    page = tab.open(address(player))
    assert "After 1 of 40 episodes" in page.inner_text("#readout")
    page.select_option("#speed", "8")
    page.click("#play")
    page.wait_for_function("() => Number(document.querySelector('main').dataset.frame) >= 3")
    page.click("#play")
    held = frame(page)
    page.wait_for_timeout(400)
    assert frame(page) == held
    assert tab.faults == []
    assert [url for url in tab.asked if not url.startswith(("file:", "data:"))] == []


def test_the_player_answers_keys_sliders_and_another_learner(tab, player):
    page = tab.open(address(player))
    page.click("#readout")
    page.keyboard.press("ArrowRight")
    assert frame(page) == 1
    page.keyboard.press("ArrowLeft")
    assert frame(page) == 0
    before = page.inner_html("#stage")
    move(page, "step", 4)
    assert page.inner_html("#stage") != before
    before = page.inner_html("#stage")
    page.select_option("#track", "1")
    assert page.inner_html("#stage") != before
    page.click("#readout")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    page.wait_for_function("() => Number(document.querySelector('main').dataset.frame) >= 1")
    assert tab.faults == []


def test_a_gif_has_a_picture_for_every_kept_policy(study_folder, tmp_path):
    study = load_study(study_folder)
    view = animated_runs(study)[0]
    with Image.open(write_gif(study, view, tmp_path / "x.gif", step=1)) as picture:
        assert picture.format == "GIF"
        assert 2 <= picture.n_frames <= len(view.snapshots()["episodes"])


def test_what_cannot_be_animated_is_refused(grid_folder, tmp_path):
    study = load_study(grid_folder)
    with pytest.raises(InvalidInputError, match="no run 'nobody'"):
        animated_runs(study, "nobody")
    with pytest.raises(InvalidInputError, match="steps 0 to 11"):
        write_gif(study, animated_runs(study)[0], tmp_path / "x.gif", step=12)
    folder = tmp_path / "without"
    shutil.copytree(grid_folder, folder)
    for run in runs_of(folder):
        (run / "commit.json").unlink()
    with pytest.raises(InvalidInputError, match="kept its policies"):
        animated_runs(load_study(folder))
