"""Numbers of README and docs are what a command made: named, shown as they were made, made again in the small."""

import ast
import os
import re
from pathlib import Path

import pytest

from tools.agreement import agree, disagreements
from tools.marked import places
from tools.page_numbers import (
    ROOT,
    Entry,
    Reduced,
    adopt,
    chosen,
    entries,
    fingerprint,
    keep_reduced,
    main,
    notices,
    printed,
    renew,
    spelled,
)

ENTRIES = entries()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
PLACED = [entry for entry in ENTRIES if entry.place]
REDUCED = [entry for entry in ENTRIES if entry.reduced is not None]
TOGETHER = {
    command: [entry for entry in REDUCED if entry.reduced.command == command]
    for command in (entry.reduced.command for entry in REDUCED)
}


def name_of(entry):
    return entry.name


def test_every_marked_place_is_in_the_manifest_and_every_entry_on_its_page():
    marked = {(page.relative_to(ROOT).as_posix(), name) for page in PAGES for name in places(page.read_text())}
    assert marked == {(entry.page, entry.name) for entry in PLACED}


@pytest.mark.parametrize("entry", PLACED, ids=name_of)
def test_a_page_shows_what_its_command_made(entry):
    assert places((ROOT / entry.page).read_text())[entry.name] == entry.shown()


def test_every_figure_has_one_command_and_stands_on_its_page():
    claimed = [figure for entry in ENTRIES for figure in entry.figures]
    drawn = [*(ROOT / "docs" / "figures").iterdir(), *(ROOT / "docs" / "studies" / "data").glob("*.svg")]
    assert sorted(claimed) == sorted(file.relative_to(ROOT).as_posix() for file in drawn)
    for entry in ENTRIES:
        text = (ROOT / entry.page).read_text()
        assert entry.command in text, entry.name
        places_of = (Path(os.path.relpath(figure, Path(entry.page).parent)).as_posix() for figure in entry.figures)
        assert all(f"]({place})" in text for place in places_of), entry.name


def test_every_study_is_an_entry_that_fills_its_page():
    for data in (ROOT / "docs" / "studies" / "data").glob("*.json"):
        (entry,) = (entry for entry in ENTRIES if entry.name == f"study-{data.stem}")
        assert entry.page == f"docs/studies/{data.stem}.md"
        assert entry.table == f"python -m benchmarks.studies.pages {entry.results} {entry.page}"


def imported(file):
    """The files of the package's mathematics, learners and natures that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("omdpd."):
            whole = ROOT / "src" / Path(*node.module.split("."))
            files = [whole.with_suffix(".py"), *(whole / f"{alias.name}.py" for alias in node.names)]
            yield from (path for path in files if path.exists() and path.parts[-2] not in ("storage", "experiments"))


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_what_a_learner_or_nature_among_the_inputs_imports_is_an_input_too(entry):
    covered = [ROOT / path for path in entry.inputs]
    for room in ("learners", "natures", "beliefs"):
        for file in (ROOT / "src" / "omdpd" / room).glob("*.py"):
            if file.name != "__init__.py" and any(file.is_relative_to(path) for path in covered):
                missing = [each for each in imported(file) if not any(each.is_relative_to(path) for path in covered)]
                assert missing == [], file


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_the_programs_that_make_numbers_are_among_their_inputs(entry):
    commands = [entry.command, *([entry.table] if entry.table else [])]
    modules = [module for command in commands for module in re.findall(r"-m ((?:tools|benchmarks)\.[\w.]+)", command)]
    programs = [ROOT / module.replace(".", "/") for module in modules]
    files = [program if program.is_dir() else program.with_suffix(".py") for program in programs]
    covered = [ROOT / path for path in entry.inputs]
    # Of a package of programs the files that matter are named.
    named = [any(file.is_relative_to(path) or path.is_relative_to(file) for path in covered) for file in files]
    assert entry.dated or all(named)


@pytest.mark.parametrize("entry", ENTRIES, ids=name_of)
def test_a_command_that_goes_on_where_it_stopped_names_its_folder(entry):
    resumes = entry.command.startswith(("omdpd lab compare", "python -m benchmarks.studies", "omdpd lab suite"))
    assert (entry.results is not None) == resumes
    assert not entry.command.startswith("omdpd paper") or "--fresh" in entry.command


def test_nothing_is_kept_of_what_the_manifest_does_not_name():
    kept = {path.name for path in (ROOT / "docs" / "numbers").iterdir()}
    wanted = {entry.file(".json").name for entry in ENTRIES} | {entry.file(".md").name for entry in PLACED}
    wanted |= {entry.file(".reduced.md").name for entry in REDUCED if entry.reduced.recorded}
    assert kept == wanted


def test_every_input_exists():
    for entry in ENTRIES:
        assert entry.inputs or entry.dated, entry.name
        assert all((ROOT / path).exists() for path in entry.inputs), entry.name


@pytest.mark.whole
@pytest.mark.parametrize("together", TOGETHER.values(), ids=lambda found: found[0].name)
def test_a_reduced_rerun_agrees_with_what_is_kept(together):
    ran = {}  # tables of one command are made of one run
    for entry in together:
        kept = entry.file(".reduced.md" if entry.reduced.recorded else ".md").read_text()
        assert entry.reduced.disagreements(kept, entry.reduced.rerun(ran=ran)) == [], entry.name


def test_every_table_has_a_reduced_rerun_unless_it_is_of_times():
    assert [entry.name for entry in PLACED if (entry.reduced is None) != entry.dated] == []
    kept = {"README.md", "docs/paper.md", "docs/comparison.md", "docs/suite.md", "docs/sizes.md"}
    assert not any(entry.dated for entry in PLACED if entry.page in kept)


def test_times_of_a_day_are_never_called_old(repository):
    manifest = repository / "docs" / "numbers.toml"
    manifest.write_text(manifest.read_text().replace('inputs = ["input.txt"]', "dated = true"))
    (entry,) = entries(repository)
    renew(entry, repository)
    (repository / "input.txt").write_text("other")
    assert list(notices(repository)) == []


def test_no_two_reduced_reruns_write_to_one_place():
    """They run at the same time (`pytest -n 2`), and some remove what was there before."""
    written = [word for command in TOGETHER for word in set(command.split()) if word.startswith("results/")]
    assert len(written) == len(set(written))
    assert all(word.startswith("results/reduced/") for word in written)
    removed = {entry.reduced.results for entry in REDUCED} - {None}
    assert removed <= set(written)


# ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path):
    """A page with one place, made from one file."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "input.txt").write_text("1")
    (tmp_path / "page.md").write_text("# Page\n\n<!-- numbers: it -->\n| a | b |\n|---|---|\n<!-- end -->\n")
    command = "python -c 'print(\"| a | b |\\\\n|---|---|\\\\n| x | 2.0 |\")'"
    (tmp_path / "docs" / "numbers.toml").write_text(
        f"[it]\npage = \"page.md\"\ncommand = '''{command}'''\ninputs = [\"input.txt\"]\n"
    )
    return tmp_path


def test_renewing_fills_the_page_and_changed_inputs_are_said(repository):
    (entry,) = entries(repository)
    assert [sentence for _, sentence in notices(repository)] == ["this table was never made"]
    renew(entry, repository)
    assert "| x | 2.0 |" in places((repository / "page.md").read_text())["it"]
    assert places((repository / "page.md").read_text())["it"] == entry.shown(repository)
    assert list(notices(repository)) == []
    (repository / "input.txt").write_text("2")
    ((_, sentence),) = notices(repository)
    assert sentence.startswith("what is in input.txt changed since this table was made (version ")
    assert list(notices(repository, "another.md")) == []


def test_an_adopted_table_stays_as_it_is_and_counts_as_changed(repository):
    (entry,) = entries(repository)
    adopt(entry, ("0.1.0", "2026-01-31"), repository)
    shown = places((repository / "page.md").read_text())["it"]
    assert shown.startswith("| a | b |\n|---|---|\n\n*`python -c")
    assert shown.endswith("version 0.1.0, 2026-01-31.*")
    ((_, sentence),) = notices(repository)
    assert sentence == "from which code this table was made is not recorded (version 0.1.0, 2026-01-31)"
    adopt(entry, ("0.1.0", "2026-01-31"), repository)
    assert places((repository / "page.md").read_text())["it"] == shown


def test_what_was_made_step_by_step_just_now_is_adopted_with_the_code_as_it_is(repository):
    (entry,) = entries(repository)
    adopt(entry, (), repository)
    assert list(notices(repository)) == []
    (repository / "input.txt").write_text("2")
    assert entry.changed(repository) == ["input.txt"]


def test_a_notice_says_what_a_reduced_rerun_is_worth(repository):
    manifest = repository / "docs" / "numbers.toml"
    manifest.write_text(manifest.read_text() + '[it.reduced]\ncommand = "x"\ntolerance = 0.02\n')
    (entry,) = entries(repository)
    assert entry.reduced == Reduced("x", 0.02)
    adopt(entry, (), repository)
    (repository / "input.txt").write_text("2")
    ((_, sentence),) = notices(repository)
    assert sentence.endswith("; a reduced rerun in the tests agrees with it within 2 %")
    manifest.write_text(manifest.read_text() + 'columns = ["b", "c"]\n')
    ((_, sentence),) = notices(repository)
    assert sentence.endswith("; a reduced rerun in the tests agrees with its columns b, c within 2 %")
    manifest.write_text(manifest.read_text() + 'rows = ["x"]\n')
    ((_, sentence),) = notices(repository)
    assert sentence.endswith("; a reduced rerun in the tests agrees with its rows x and its columns b, c within 2 %")


def test_a_fingerprint_depends_on_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    one = fingerprint(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    two = fingerprint(tmp_path)
    (tmp_path / "b").write_text("2")
    assert len({one, two, fingerprint(tmp_path)}) == 3
    (tmp_path / "b").write_text("1")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "b.nbi").write_text("left by a compiler")
    assert fingerprint(tmp_path) == two
    with pytest.raises(FileNotFoundError, match=r"names .* as an input"):
        fingerprint(tmp_path / "c")


def test_entries_are_chosen_by_name_by_page_or_for_being_cheap():
    pages = {"a": "p.md", "b": "p.md", "c": "q.md"}
    a, b, c = (Entry(name, page, f"make {name}", (), cheap=name == "c") for name, page in pages.items())
    assert chosen([a, b, c], ["p.md"]) == [a, b]
    assert chosen([a, b, c], ["b", "q.md"]) == [b, c]
    assert chosen([a, b, c], []) == [c]
    with pytest.raises(SystemExit, match="no page 'r'"):
        chosen([a, b, c], ["r"])


def test_what_two_tables_share_is_run_once(repository):
    (entry,) = entries(repository)
    ran = {entry.command: "| a |\n|---|\n| 7 |"}
    renew(entry, repository, ran)
    assert "| 7 |" in (repository / "page.md").read_text()


def test_entries_of_one_command_are_renewed_together():
    a, b, c = (Entry(name, "p.md", command, ()) for name, command in (("a", "x"), ("b", "y"), ("c", "x")))
    assert chosen([a, b, c], ["a"]) == [a, c]


def test_groups_of_inputs_are_spelled_out_once():
    groups = {"inner": ["b", "c"], "outer": ["a", "@inner"]}
    assert list(spelled(["@outer", "c", "d"], groups)) == ["a", "b", "c", "d"]
    with pytest.raises(KeyError, match="no group 'other'"):
        list(spelled(["@other"], groups))


def test_results_that_other_code_left_are_not_gone_on_with(repository):
    manifest = repository / "docs" / "numbers.toml"
    manifest.write_text(manifest.read_text() + 'results = "results/it"\n')
    (entry,) = entries(repository)
    renew(entry, repository)
    renew(entry, repository)  # the same code goes on
    (repository / "input.txt").write_text("2")
    with pytest.raises(SystemExit, match="results/it has what other code left"):
        renew(entry, repository)


def test_an_entry_without_a_place_is_filled_by_its_own_program(repository):
    program = 'python -c \'import pathlib; pathlib.Path("filled").write_text("yes")\''
    entry = Entry("it", "page.md", "python -c pass", ("input.txt",), table=program, place=False)
    renew(entry, repository)
    assert (repository / "filled").read_text() == "yes"
    assert entry.changed(repository) == []


def test_a_command_may_begin_with_variables(repository, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "before")
    program = 'A=1 PYTHONPATH=here python -c \'import os; print(os.environ["A"], os.environ["PYTHONPATH"])\''
    assert printed(program, repository).split() == ["1", f"here{os.pathsep}before"]


def test_a_reduced_command_may_leave_its_table_to_another(repository):
    reduced = Reduced("python -c pass", 0.0, table="python -c 'print(7)'")
    assert reduced.rerun(repository) == "7\n"


def test_a_reduced_command_of_several_tables_is_run_once_and_finds_its_folder_empty(repository):
    left = repository / "results" / "reduced" / "it"
    left.mkdir(parents=True)
    (left / "old").write_text("of another command")
    program = "python -c 'import os; print(os.path.exists(\"results/reduced/it\"))'"
    reduced = Reduced(program, 0.0, results="results/reduced/it")
    ran = {}
    assert reduced.rerun(repository, ran) == "False\n"
    left.mkdir()
    assert reduced.rerun(repository, ran) == "False\n"
    assert left.exists()


def test_a_reduced_table_is_kept_without_the_numbers_being_made_again(repository):
    manifest = repository / "docs" / "numbers.toml"
    manifest.write_text(
        manifest.read_text() + "[it.reduced]\ncommand = 'python -c \"print(7)\"'\ntolerance = 0.0\nrecorded = true\n"
    )
    (entry,) = entries(repository)
    adopt(entry, (), repository)
    before = entry.file(".md", repository).read_text()
    keep_reduced(entry, repository)
    assert entry.file(".reduced.md", repository).read_text() == "7\n"
    assert entry.file(".md", repository).read_text() == before


def test_a_row_that_a_whole_table_or_the_choice_lacks_is_a_disagreement():
    one = "| a | b | c |\n|---|---|---|\n| x | 2.0 | 1 s |\n"
    assert disagreements(TABLE, one, 0.0) == []
    assert disagreements(TABLE, one, 0.0, whole=True) == ["the row 'y' is lost"]
    assert disagreements(TABLE, one, 0.0, chosen=["y"]) == ["the row 'y' is lost"]
    assert disagreements(TABLE, TABLE.replace("2.0", "9.0"), 0.0, chosen=["y"]) == []
    assert disagreements(TABLE, TABLE.replace("3 / 4", "3 / 9"), 0.0, chosen=["y"]) != []
    assert Reduced("x", 0.0, recorded=True).disagreements(TABLE, one) == ["the row 'y' is lost"]


def test_rows_of_one_name_are_told_apart():
    twice = "| a | b |\n|---|---|\n| x | 1 |\n| x | 5 |\n"
    assert disagreements(twice, twice, 0.0) == []
    (sentence,) = disagreements(twice, twice.replace("| 1 |", "| 9 |"), 0.0)
    assert sentence.startswith("x, b: '1' was kept")


def test_a_word_that_is_no_command_is_answered_with_those_that_are(capsys):
    assert main(["bogus"]) == 2
    assert "renew" in capsys.readouterr().out


TABLE = "| a | b | c |\n|---|---|---|\n| x | 2.0 | 1 s |\n| y | 3 / 4 | - |\n"


def test_tables_agree_where_numbers_are_near_and_words_are_equal():
    assert disagreements(TABLE, TABLE, 0.0) == []
    assert disagreements(TABLE, "| a | b | c |\n|---|---|---|\n| x | 2.1 | 1 s |\n", 0.0) == []  # rounding
    assert disagreements(TABLE, "| a | b | c |\n|---|---|---|\n| x | 2.2 | 1 s |\n", 0.0) != []
    assert disagreements(TABLE, "| a | b | c |\n|---|---|---|\n| x | 2.2 | 1 s |\n", 0.1) == []
    assert disagreements(TABLE, "| a | b | c |\n|---|---|---|\n| x | 2.2 | 9 s |\n", 0.1, ["b"]) == []
    assert "9 s" in disagreements(TABLE, "| a | b | c |\n|---|---|---|\n| x | 2.0 | 9 s |\n", 0.1)[0]
    assert disagreements(TABLE, "| a | b |\n|---|---|\n| z | 1 |\n", 0.1) == ["there is no row 'z'"]
    assert disagreements(TABLE, "| a | b |\n|---|---|\n", 0.1) == ["there is no row"]


def test_signs_and_powers_are_read():
    assert agree("\N{MINUS SIGN}3.0", "-3.0", 0.0)
    assert not agree("\N{MINUS SIGN}3.0", "3.0", 0.5)
    assert agree("1.0e-12", "1.1e-12", 0.0)
    assert not agree("1.0e-12", "1.0e-11", 0.5)
