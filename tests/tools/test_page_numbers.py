"""Numbers of README and docs are what a command made: named, shown as they were made, made again in the small."""

import pytest

from agreement import agree, disagreements
from marked import places
from page_numbers import ROOT, Entry, Reduced, adopt, chosen, entries, fingerprint, main, notices, printed, renew

ENTRIES = entries()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
PLACED = [entry for entry in ENTRIES if entry.place]
REDUCED = [entry for entry in ENTRIES if entry.reduced is not None]


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
    assert sorted(claimed) == sorted(f"docs/figures/{file.name}" for file in (ROOT / "docs" / "figures").iterdir())
    for entry in ENTRIES:
        text = (ROOT / entry.page).read_text()
        assert entry.command in text, entry.name
        assert all(figure.removeprefix("docs/") in text for figure in entry.figures), entry.name


def test_nothing_is_kept_of_what_the_manifest_does_not_name():
    kept = {path.name for path in (ROOT / "docs" / "numbers").iterdir()}
    wanted = {entry.file(".json").name for entry in ENTRIES} | {entry.file(".md").name for entry in PLACED}
    wanted |= {entry.file(".reduced.md").name for entry in REDUCED if entry.reduced.recorded}
    assert kept == wanted


def test_every_input_exists():
    for entry in ENTRIES:
        assert entry.inputs
        assert all((ROOT / path).exists() for path in entry.inputs), entry.name


@pytest.mark.parametrize("entry", REDUCED, ids=name_of)
def test_a_reduced_rerun_agrees_with_what_is_kept(entry):
    reduced = entry.reduced
    kept = entry.file(".reduced.md" if reduced.recorded else ".md").read_text()
    assert disagreements(kept, printed(reduced.command), reduced.tolerance, reduced.columns) == []


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
    renew(entry, repository)
    assert "| x | 2.0 |" in places((repository / "page.md").read_text())["it"]
    assert places((repository / "page.md").read_text())["it"] == entry.shown(repository)
    assert list(notices(repository)) == []
    (repository / "input.txt").write_text("2")
    ((_, sentence),) = notices(repository)
    assert "input.txt changed since this table was made (version " in sentence
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


def test_what_is_copied_by_hand_is_adopted_and_never_renewed(repository):
    manifest = repository / "docs" / "numbers.toml"
    manifest.write_text(manifest.read_text() + "by_hand = true\n")
    (entry,) = entries(repository)
    with pytest.raises(SystemExit, match="copied by hand"):
        renew(entry, repository)
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
    a, b, c = (
        Entry(name, page, "x", (), cheap=name == "c") for name, page in (("a", "p.md"), ("b", "p.md"), ("c", "q.md"))
    )
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
