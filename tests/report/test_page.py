"""The report in a real browser without a network: everything is drawn, switches and sliders work, text stays text."""

import csv
import io
import json
import shutil

import pytest

from omdpd.experiments.spec import Experiment
from omdpd.report.html import write_page
from omdpd.report.study import load_study, write_report
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.studies import play
from tests.report.test_study import HOSTILE, partial, runs_of

SECTIONS = (
    "glance", "asked", "progress", "curves", "bursts", "plane", "health", "errors", "policy", "occupancy", "visits",
    "comparison", "reproduce",
)  # fmt: skip
# Figures that a study of learners with weights has, with a drawing each.
DRAWN = ("violation", "regret", "bursts", "plane", "weight", "step", "lambda", "policy", "occupancy", "visits")


@pytest.fixture(scope="session")
def report(study_folder):
    return write_report(study_folder)


@pytest.fixture(scope="session")
def grid_report(grid_folder):
    return write_report(grid_folder)


def address(file):
    return f"file://{file}"


def pixels_differ(tab, section, act):
    """Do something, and wait until a section shows something else."""
    before = tab.picture(section)
    act()
    drawn = "([section, before]) => document.querySelector(`#${section} .body`).innerHTML !== before"
    tab.page.wait_for_function(drawn, arg=[section, before])
    tab.settle()
    return tab.picture(section) != before


def test_a_report_opens_from_disk_without_a_network_and_draws_everything(tab, report):
    page = tab.open(address(report))
    assert page.evaluate("[...document.querySelectorAll('section.card')].map((s) => s.id)") == list(SECTIONS)
    for name in DRAWN:
        assert page.locator(f"figure[data-figure='{name}'] svg path, figure[data-figure='{name}'] svg rect").count(), (
            name
        )
    groups = load_study(report.parent).groups()  # the first screen has a line for every learner and place
    assert page.locator("#glance .badge").count() == len(groups)
    for *_, learner in groups:
        assert page.locator("#glance tbody tr", has_text=learner).count()
    assert page.locator("text=could not be drawn").count() == 0
    assert tab.faults == []
    assert [url for url in tab.asked if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize(
    "switch",
    ["input[name=show][value=quantiles]", "input[name=show][value=seeds]", "input[name=scale][value=linear]",
     "input[name=scale][value=log]", "#switch-divided", "#switch-root", "#switch-weak", "input[name=learner] >> nth=1"],
)  # fmt: skip
def test_every_switch_changes_the_curves(tab, report, switch):
    page = tab.open(address(report))
    assert pixels_differ(tab, "curves", lambda: page.click(switch))
    assert tab.faults == []


def test_the_band_of_violation_ends_at_zero(tab, report, study_folder):
    study = load_study(study_folder)
    lows = [low for i in range(3) for low in study.group(i)["violation"]["low"]]
    assert min(lows) < 0.0, "three seeds of a random world have an interval that reaches below zero"
    page = tab.open(address(report))
    ticks = page.locator("figure[data-figure=violation] svg text").all_text_contents()
    assert "0" in ticks
    assert not [tick for tick in ticks if tick.startswith(("-", "\N{MINUS SIGN}"))]


def test_another_nature_changes_every_figure_and_says_that_nobody_is_safe(tab, report):
    page = tab.open(address(report))
    assert pixels_differ(tab, "curves", lambda: page.select_option("#select-place", "1"))
    assert "No policy is safe in every episode" in page.inner_text("figure[data-figure=regret]")
    assert "no policy" in page.inner_text("#asked")
    assert tab.faults == []


def move(page, slider, to):
    page.evaluate(
        "([id, to]) => { const s = document.getElementById(id); s.value = to; s.dispatchEvent(new Event('input')); }",
        [slider, to],
    )


def test_the_sliders_move_policy_occupancy_and_visits(tab, report):
    page = tab.open(address(report))
    assert pixels_differ(tab, "policy", lambda: move(page, "slider-step", 1))
    assert pixels_differ(tab, "occupancy", lambda: move(page, "slider-snapshot", 0))
    assert "after 1 episodes" in page.text_content("#policy")
    assert pixels_differ(tab, "visits", lambda: move(page, "slider-step", 2))
    assert pixels_differ(tab, "policy", lambda: page.click("#switch-difference"))
    assert "learned less best" in page.text_content("#policy")
    assert tab.faults == []


def test_a_world_with_a_map_is_drawn_on_it(tab, grid_report):
    page = tab.open(address(grid_report))
    assert page.locator("#policy svg.omdpd-map").count() == 2
    assert page.locator("#policy svg.omdpd-map rect").count() == 2 * 25
    assert pixels_differ(tab, "policy", lambda: move(page, "slider-step", 3))
    assert tab.faults == []


def test_pictures_and_tables_are_saved_as_files(tab, report, tmp_path):
    page = tab.open(address(report))
    contents = {}
    for kind in ("svg", "png", "csv", "latex"):
        with page.expect_download() as waiting:
            page.click(f"figure[data-figure=violation] button[data-export={kind}]")
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        contents[kind] = file.read_bytes()
    assert contents["svg"].startswith(b"<svg")
    assert b"<path" in contents["svg"]
    assert contents["png"].startswith(b"\x89PNG")
    assert len(contents["png"]) > 5000
    rows = list(csv.reader(io.StringIO(contents["csv"].decode())))
    assert [row[0] for row in rows] == ["learner", "ProximalOMDPD.cautious", "SinhaVaze", "Uniform"]
    assert contents["latex"].startswith(b"\\begin{tabular}")
    assert tab.faults == []


def test_the_numbers_of_a_figure_can_be_read_as_a_table(tab, report):
    page = tab.open(address(report))
    page.click("figure[data-figure=violation] summary")
    page.wait_for_selector("figure[data-figure=violation] tbody tr")  # it is filled when it is opened, a moment later
    assert page.locator("figure[data-figure=violation] tbody tr").count() == 3


def hostile_copy(value):
    """The parts of a study with every name of a learner, world, nature and run turned into markup."""
    if isinstance(value, dict):
        names = (
            "learner",
            "world",
            "nature",
            "run",
            "title",
            "baseline",
            "label",
            "error",
            "traceback",
            "why",
            "specs",
        )
        return {
            key: HOSTILE + item if key in names and isinstance(item, str) else hostile_copy(item)
            for key, item in value.items()
        }
    return [hostile_copy(item) for item in value] if isinstance(value, list) else value


def test_markup_in_names_stays_text(tab, study_folder, tmp_path):
    folder, _ = partial(study_folder, tmp_path)
    parts = hostile_copy(load_study(folder).parts())
    parts["head"]["learners"] = [HOSTILE + name for name in parts["head"]["learners"]]
    for world in parts["problems"]["worlds"]:
        world["states"] = [HOSTILE + str(s) for s in range(world["S"])]
        world["actions"] = [HOSTILE + str(a) for a in range(world["A"])]
    page = tab.open(address(write_page(parts, HOSTILE, tmp_path / "hostile.html")))
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert HOSTILE in page.inner_text("h1")
    assert HOSTILE in page.inner_text("#progress")
    assert page.locator("text=could not be drawn").count() == 0
    assert tab.faults == []


def test_failed_damaged_and_waiting_runs_are_told_and_their_errors_open(tab, study_folder, tmp_path):
    folder, names = partial(study_folder, tmp_path)
    page = tab.open(address(write_report(folder)))
    told = page.inner_text("#progress")
    for word in ("1 waiting", "1 failed", "1 damaged"):
        assert word in told
    assert "1 of 18 runs ended in an error, 1 of 18 runs is damaged" in told
    assert names[2] in page.inner_text("#curves"), "the mean says which run it lacks"
    for i in range(2):
        page.click(f"details.error summary >> nth={i}")
    told = "".join(page.locator("details.error").all_inner_texts())
    assert HOSTILE in told
    assert "is damaged" in told
    assert page.evaluate("window.hacked") is None
    assert tab.faults == []


def test_a_study_that_has_not_begun_says_so(tab, study_folder, tmp_path):
    folder = tmp_path / "planned"
    folder.mkdir()
    shutil.copy(study_folder / "experiment.toml", folder)
    page = tab.open(address(write_report(folder)))
    assert "18 runs: 18 waiting" in page.inner_text("#progress")
    assert "No episode is committed yet" in page.inner_text("#curves")
    (folder / "experiment.toml").unlink()
    (folder / "runs").mkdir()
    page = tab.open(address(write_report(folder)))
    assert "No run has started yet" in page.inner_text("#progress")
    assert page.locator("text=could not be drawn").count() == 0
    assert tab.faults == []


def test_a_figure_that_is_not_worked_out_yet_says_so_beside_runs_that_are_finished(tab, study_folder, tmp_path):
    """The live page has its progress before its figures."""
    parts = {name: part for name, part in load_study(study_folder).parts().items() if not name[-1].isdigit()}
    page = tab.open(address(write_page(parts, "x", tmp_path / "early.html")))
    assert "18 runs: 18 finished" in page.inner_text("#progress")
    for section in ("curves", "bursts", "plane"):
        assert "This is being worked out" in page.inner_text(f"#{section}")
    assert "No episode is committed yet" not in page.inner_text("main")
    assert tab.faults == []


def test_an_infeasible_study_says_what_can_be_compared(tab, infeasible_folder):
    page = tab.open(address(write_report(infeasible_folder)))
    assert "No policy meets every budget of this world" in page.inner_text("#asked")
    assert "nothing to regret against" in page.inner_text("#curves")
    assert tab.faults == []


def test_rescaled_costs_label_the_slater_gap_and_one_other_learner_is_one(tab, tmp_path):
    learners = (LEARNERS["GreedyLP"](), LEARNERS["Uniform"]())
    experiment = Experiment((WORLDS["inventory"](),), (NATURES["fixed"](),), learners, episodes=6, seeds=2)
    page = tab.open(address(write_report(play(experiment, tmp_path / "stock"))))
    assert "room below the budgets, in scaled units" in page.inner_text("#asked").lower()
    assert "over the one learner below" in page.inner_text("#comparison")
    assert tab.faults == []


def test_costs_as_they_are_label_nothing(tab, report):
    assert "in scaled units" not in tab.open(address(report)).inner_text("#asked").lower()


@pytest.mark.parametrize("settings", [{"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}])
def test_the_page_fits_a_phone_and_the_dark(new_tab, grid_report, report, settings):
    for file in (report, grid_report):
        tab = new_tab(offline=True, **settings)
        page = tab.open(address(file))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
        assert tab.faults == []


def test_every_input_has_a_name_and_every_picture_a_sentence(tab, report):
    page = tab.open(address(report))
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, button')].filter((n) => !(n.labels?.length || n.textContent || n"
        ".getAttribute('aria-label'))).map((n) => n.outerHTML)"
    )
    assert nameless == []
    assert page.evaluate("[...document.querySelectorAll('svg[role=img]')].every((n) => n.getAttribute('aria-label'))")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the figures"


def test_a_switch_is_reached_and_turned_by_the_keyboard(tab, report):
    page = tab.open(address(report))
    page.focus("input[name=scale][value=symlog]")
    assert pixels_differ(tab, "curves", lambda: page.keyboard.press("ArrowRight"))
    assert page.is_checked("input[name=scale][value=log]")


def test_the_page_runs_no_script_but_its_own(tab, report):
    page = tab.open(address(report))
    tab.page.evaluate("(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; "
                      "document.body.append(s); })()")  # fmt: skip
    assert page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in fault for fault in tab.faults)


@pytest.mark.slow
def test_a_report_of_a_hundred_runs_is_small_and_opens(new_tab, tmp_path):
    natures = tuple(NATURES[name]() for name in ("fixed", "noisy", "pool", "adaptive"))
    experiment = Experiment((WORLDS["random_dirichlet"](),), natures, (LEARNERS["Uniform"](),), 3000, seeds=25)
    file = write_report(play(experiment, tmp_path))
    assert len(runs_of(tmp_path)) == 100
    assert file.stat().st_size < 4e6
    tab = new_tab(offline=True)
    tab.open(address(file))
    assert tab.faults == []


def test_numbers_on_the_page_are_those_of_the_study(tab, report, study_folder):
    page = tab.open(address(report))
    study = json.loads(page.text_content("#study"))
    assert study["group-0"] == load_study(study_folder).group(0)
    assert len(runs_of(study_folder)) == len(study["progress"]["runs"])
