"""The figure of the tries: the best learners of a panel have names, the others are there in grey."""

from types import SimpleNamespace

from omdpd.report.figures import STYLES
from omdpd.report.planes import REST, draw_frontiers


def tries_of(number):
    common = {"world": "w", "nature": "n", "learner": f"learner {number}", "on_frontier": True}
    return [
        SimpleNamespace(**common, regret=10.0 + number, violation=5.0, criterion=15.0 + number, chosen=True),
        SimpleNamespace(**common, regret=20.0 + number, violation=1.0, criterion=21.0 + number, chosen=False),
    ]


def test_the_best_learners_have_names_and_the_others_are_grey():
    lines = [line for number in reversed(range(len(STYLES) + 3)) for line in tries_of(number)]
    (axes,) = draw_frontiers(lines).axes
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named == [f"learner {i}" for i in range(len(STYLES))]
    frontiers = [line for line in axes.lines if len(line.get_xdata()) == 2]
    assert sum(line.get_color() == REST for line in frontiers) == 3
    assert len(frontiers) == len(STYLES) + 3


def test_a_try_without_regret_is_left_out():
    lines = tries_of(0)
    lines[0].regret = None
    (axes,) = draw_frontiers(lines).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[20.0]]
