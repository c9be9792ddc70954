"""The figure of the tries: the best learners of a panel have names, the others are there in grey."""

from types import SimpleNamespace

from omdpd.report.figures import STYLES
from omdpd.report.planes import REST, Reference, draw_frontiers, draw_plane, highlighted, references


def tries_of(number):
    common = {"world": "w", "nature": "n", "learner": f"learner {number}", "on_frontier": True}
    return [
        SimpleNamespace(
            **common, shared_regret=10.0 + number, shared_violation=5.0, criterion=15.0 + number, chosen=True
        ),
        SimpleNamespace(
            **common, shared_regret=20.0 + number, shared_violation=1.0, criterion=21.0 + number, chosen=False
        ),
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
    lines[0].shared_regret = None
    (axes,) = draw_frontiers(lines).axes
    assert [list(line.get_xdata()) for line in axes.lines] == [[20.0]]


def test_references_are_stars_of_their_own_panel():
    stars = [Reference("w", "n", "boundary", 7.0, 3.0), Reference("w", "other", "boundary", 8.0, 3.0)]
    (axes,) = draw_frontiers(tries_of(0), stars).axes
    assert [list(line.get_xdata()) for line in axes.lines if line.get_marker() == "*"] == [[7.0]]
    assert [text.get_text() for text in axes.texts] == ["boundary"]


def test_who_is_informed_is_a_reference_and_no_learner():
    records = [
        {"world": "w", "nature": "n", "learner": name, "seed": 0, "regret": regret, "violation": 2.0}
        for name, regret in (("Informed", 30.0), ("OptCMDP", 90.0))
    ]
    limit = SimpleNamespace(world="w", nature="n", regret=7.0, violation=3.0)
    stars = references(records, [limit])
    assert [(each.name, each.regret) for each in stars] == [("boundary", 7.0), ("Informed", 30.0)]
    figure = draw_plane(records, "title", stars=stars)
    (axes,) = figure.axes
    assert [list(line.get_xdata()) for line in axes.lines if line.get_marker() == "*"] == [[7.0], [30.0]]
    assert " 1  OptCMDP" in [text.get_text() for text in figure.texts]


def test_among_many_who_learns_nothing_beats_nobody():
    points = {f"l{i}": (10.0 + i, 5.0 + i) for i in range(20)} | {"Oracle": (0.0, 0.0), "l20": (8.0, 9.0)}
    groups = {("w", "n", name): [{"regret": x, "violation": y}] for name, (x, y) in points.items()}
    assert highlighted(groups, ()) == ["l0", "Oracle", "l20"]


def test_of_too_many_unbeaten_ones_those_are_named_that_are_so_in_most_places():
    places, n = ("n", "m"), 3 * len(STYLES)
    groups = {("w", place, f"l{i}"): [{"regret": 10.0 + i, "violation": n - i}] for place in places for i in range(n)}
    groups[("w", "m", f"l{n}")] = [{"regret": 12.5, "violation": 0.0}]  # there it beats all from l3 on
    named = highlighted(groups, ())
    assert len(named) == 2 * len(STYLES)
    assert named[:3] == ["l0", "l1", "l2"]
