"""What a solution, a card, a command and a figure say about a known model, in words that one reads once."""

import numpy as np
import pytest
from typer.testing import CliRunner

from omdpd import CMDP, InvalidInputError, Labels, load_problem, save_problem
from omdpd.cli.main import app
from omdpd.play.explained import MAX_DRAWS
from omdpd.report.pictures import draw_policy, draw_world
from omdpd.worlds.card import problem_card

NAMES = Labels(("in", "out"), ("rest", "work", "hurry"), ("hours", "served"))


def work(budgets, horizon=4):
    """One works for an hour and serves two; or hurries, which takes three and serves three."""
    p = np.full((2, 3, 2), 0.5)
    hours, served = [[0.0, 1.0, 3.0]] * 2, [[0.0, 2.0, 3.0]] * 2
    return CMDP.from_arrays(
        p, [[0.0, 1.0, 2.0]] * 2, [hours, -np.array(served)], budgets, [1, 0], horizon, labels=NAMES
    )


def test_a_budget_below_zero_is_said_as_at_least():
    text = str(work([6.0, -7.0]).solve())
    assert "costs -9 of -7: 9, and at least 7 is asked for (most possible 12)" in text
    assert "room below the budgets           " in text
    assert "% of each by one policy" in text
    none = work([2.0, -9.0]).solve()
    assert f"none: every policy exceeds some budget by {-100.0 * none.room:.4g} % of it or more" in str(none)


def test_a_budget_that_is_never_reached_is_no_share_of_the_way():
    lines = problem_card(work([100.0, -1.0])).lines()
    assert any("hours: budget 100; least possible 0" in line and line.endswith(", which spends less") for line in lines)
    assert not any("8" in line and "% of the way" in line for line in lines if line.startswith("hours"))
    assert any("% of the way between them" in line for line in problem_card(work([6.0, None])).lines())


def test_what_a_chance_earns_is_said_per_percentage_point():
    p = np.ones((1, 2, 1))
    cmdp = CMDP.from_arrays(p, [[0.0, 1.0]], [[0.0, 1.0]], None, horizon=3, labels=Labels(constraints=("hours",)))
    limited = cmdp.with_spent("hours", range(3), chance=0.25)
    found = limited.solve()
    price = found.shadow_prices[1]
    line = next(line for line in str(found).splitlines() if line.startswith("chance of hours above 2"))
    assert line.endswith(f"; one more percentage point earns {price / 100.0:.6g}")
    assert any("one more percentage point earns" in line for line in problem_card(limited).lines())


def test_very_many_draws_are_printed_as_the_first_and_how_many_more():
    S, stay = 60, np.tile(np.eye(60)[:, None], (1, 2, 1))
    cmdp = CMDP.from_arrays(stay, [[0.0, 1.0]] * S, [[0.0, 1.0]] * S, 1.5, horizon=3)
    found = cmdp.solve().randomises()
    assert isinstance(found, list)
    assert len(found) > MAX_DRAWS
    lines = str(found).splitlines()
    assert lines == [*map(str, found[:MAX_DRAWS]), f"(and {len(found) - MAX_DRAWS} more)"]
    assert repr(found) == str(found)
    assert str(found[:0]) == "[]"


@pytest.mark.parametrize("command", ["solve", "check", "curve", "show"])
def test_a_budget_of_a_problem_file_is_set_on_the_way(command, tmp_path):
    file = str(save_problem(work([6.0, -7.0]), tmp_path / "it.npz"))
    wanted = work([5.0, -4.0]).solve()
    done = CliRunner().invoke(app, [command, file, "--set", "budget=[5, -4]"])
    assert done.exit_code == 0, done.output
    assert f"{wanted.value:.6g}" in done.output
    wrong = CliRunner().invoke(app, [command, file, "--set", "horizon=3"])
    assert wrong.exit_code != 0
    assert "settings: budget" in str(wrong.exception or wrong.output)


def test_a_wrong_name_in_a_problem_file_is_no_bad_file(tmp_path):
    np.savez(tmp_path / "bad.npz", transition=np.ones((1, 1, 1)), rewards=[[0.0]], cost=[[0.0]])
    with pytest.raises(InvalidInputError, match=r"^\S+bad.npz holds 'rewards.npy', which is none of transition"):
        load_problem(tmp_path / "bad.npz")


def test_figures_have_state_0_on_top_and_names_where_there_are_some():
    many = 40
    names = Labels(tuple(f"{s} waiting" for s in range(many)))
    cmdp = CMDP.from_arrays(
        np.full((many, 2, many), 1 / many), [[0.0, 1.0]] * many, [[0.0, 1.0]] * many, 2.0, horizon=3, labels=names
    )  # fmt: skip
    found = cmdp.solve()
    for figure in (draw_policy(found.policy), draw_world(cmdp, problem_card(cmdp))):
        for axes in (axes for axes in figure.axes if axes.images and axes.get_xlabel() == "step"):
            bottom, top = axes.get_ylim()
            assert bottom > top
            shown = [label.get_text() for label in axes.get_yticklabels()]
            assert 5 <= len(shown) <= many
            assert set(shown) <= set(names.states)
