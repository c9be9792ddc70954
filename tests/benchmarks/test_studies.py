"""Studies: every one plays, is summed up and drawn; committed pages hold what their summaries say."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from benchmarks.studies import STUDIES
from benchmarks.studies.growth import exponent, ratios
from benchmarks.studies.pages import encoded, read_summary, renew, write_study
from benchmarks.studies.study import Line, Size, Summary, generated, summarised
from omdpd.experiments.executors import InProcess
from omdpd.experiments.many_runs import run_all
from omdpd.problem.arrays import InvalidInputError
from omdpd.storage.atomic import RecordError
from tools.marked import filled, places

PAGES = Path(__file__).parents[2] / "docs" / "studies"
COMMITTED = sorted(file.stem for file in (PAGES / "data").glob("*.json"))


def played(study, folder) -> Summary:
    """The quick form of a study on one instance."""
    specs = study.runs(study.size(quick=True, seeds=1))
    records = run_all(specs, folder / "runs", InProcess(), lambda done: None)
    return summarised(study, study.command(True, 1), specs, records, folder / "runs")


@pytest.fixture(scope="module")
def growth(tmp_path_factory) -> Summary:
    return played(STUDIES["growth"], tmp_path_factory.mktemp("growth"))


@pytest.mark.whole
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_plays_and_writes_its_page_figure_and_summary(name, tmp_path):
    study = STUDIES[name]
    summary = played(study, tmp_path)
    page = write_study(study, summary, tmp_path)
    text = page.read_text()
    assert study.question in text
    assert f"python -m benchmarks.studies {name} --quick --seeds 1" in text
    assert read_summary(tmp_path / "study.json") == summary
    for kind in ("png", "svg", "pdf"):
        assert (tmp_path / f"figure.{kind}").stat().st_size > 5000
    for table in study.tables.values():
        head, marks, *rows = table(summary).splitlines()
        assert rows
        assert {line.count("|") for line in (head, marks, *rows)} == {head.count("|")}


@pytest.mark.parametrize("name", STUDIES)
def test_every_run_of_a_study_is_played_once(name):
    study = STUDIES[name]
    specs = study.runs(study.full)
    assert len({spec.id for spec in specs}) == len(specs)
    assert {spec.seed for spec in specs} == set(range(study.full.first, study.full.first + study.full.seeds))


def test_long_runs_may_have_fewer_seeds():
    size = Size((10, 100), 3, fewer=(100, 2), first=7)
    assert [list(size.seeds_at(K)) for K in (10, 100)] == [[7, 8, 9], [7, 8]]
    assert [len(replace(size, seeds=1).seeds_at(K)) for K in (10, 100)] == [1, 1]


def test_an_exponent_is_of_the_seeds_that_both_lengths_have():
    short = Line("noisy", "x", 100, [1, 2], {"regret": [10.0, 1000.0]})
    long = Line("noisy", "x", 10_000, [1], {"regret": [100.0]})
    assert exponent(short, long, "regret") == "0.50"
    assert exponent(short, replace_seeds(long, [2]), "regret") == "-"
    assert exponent(short, None, "regret") == "-"


def replace_seeds(line: Line, seeds: list[int]) -> Line:
    return Line(line.nature, line.learner, line.episodes, seeds, line.numbers)


def test_ratios_are_of_paired_means_and_of_the_worst_instance(growth):
    lines = [
        Line(nature, name, K, [1, 2], {"regret": regret, "violation": [1.0, 3.0]})
        for nature, K in (("noisy", 10), ("noisy", 100), ("pool", 100))
        for name, regret in (("ProximalOMDPD.standard", [2.0, 6.0]), ("ProximalOMDPD.settling", [1.0, 15.0]))
    ]
    _, _, *rows = ratios(msgspec.structs.replace(growth, lines=lines)).splitlines()
    same = "100 | 0.50 (0.40 .. 2.00) | 1.00 (1.00 .. 1.00) | 6; 15 | 2.00 |"
    assert rows == [f"| {name} | {same}" for name in ("noisy", "pool", "together")]


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_page_holds_what_its_summary_says(name):
    study, page = STUDIES[name], (PAGES / f"{name}.md").read_text()
    summary = read_summary(PAGES / "data" / f"{name}.json")
    assert filled(page, generated(study, summary)) == page
    assert set(places(page)) == {"command", *study.tables}
    assert f"data/{name}.svg" in page
    assert (PAGES / "data" / f"{name}.svg").stat().st_size > 5000


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_summary_is_that_of_the_default_command(name):
    study = STUDIES[name]
    summary = read_summary(PAGES / "data" / f"{name}.json")
    assert summary.command == study.command()
    assert summary.runs == len(study.runs(study.full))


def test_every_study_with_a_page_is_on_the_list_of_pages():
    listed = (PAGES / "index.md").read_text()
    assert [name for name in COMMITTED if f"\n{name}\n" not in listed] == []


@pytest.fixture
def results(growth, tmp_path) -> Path:
    """A folder with the summary of a study."""
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "study.json").write_bytes(encoded(growth))
    return folder


def test_a_page_is_filled_and_its_figure_and_summary_stand_beside_it(growth, results, tmp_path):
    page = tmp_path / "growth.md"
    page.write_text("# Ours\n\n<!-- numbers: exponents -->\n<!-- end -->\n\nA reading.\n")
    assert renew(results, page) == 1
    assert "| pool | `ProximalOMDPD.settling` | violation |" in page.read_text()
    assert page.read_text().endswith("A reading.\n")
    assert read_summary(tmp_path / "data" / "growth.json") == growth
    assert (tmp_path / "data" / "growth.svg").stat().st_size > 5000


def test_a_place_that_a_study_does_not_fill_is_refused_and_the_page_stays(results, tmp_path):
    page = tmp_path / "growth.md"
    page.write_text("<!-- numbers: exponent -->\n<!-- end -->\n")
    with pytest.raises(InvalidInputError, match="a place 'exponent'; there are command, ratios, numbers, exponents"):
        renew(results, page)
    assert page.read_text() == "<!-- numbers: exponent -->\n<!-- end -->\n"


def test_what_is_no_summary_is_named(tmp_path):
    file = tmp_path / "growth.json"
    file.write_text('{"study": 3}')
    with pytest.raises(RecordError, match=r"growth\.json is no summary of a study"):
        read_summary(file)


def test_a_line_that_a_summary_does_not_have_is_named(growth):
    with pytest.raises(InvalidInputError, match="the summary of growth has no Nobody, pool, K = 3"):
        growth.line("pool", "Nobody", 3)


def test_numbers_of_a_summary_are_those_of_the_runs(tmp_path):
    study = replace(STUDIES["growth"], curves=True)
    summary = played(study, tmp_path)
    for line in summary.lines:
        assert line.curve is not None
        assert line.curve.episodes[-1] == line.episodes
        assert line.curve.regret[-1] == pytest.approx(line.mean("regret"), rel=1e-3)
        assert line.curve.violation[-1] == pytest.approx(line.mean("violation"), rel=1e-3, abs=1e-9)
