"""What a notebook shows: small, static, and escaped."""

from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

from omdpd import CMDP, Uniform, plot, run
from omdpd.problem.cmdp import Labels
from omdpd.problem.markup import curve_svg
from omdpd.report.study import load_study
from omdpd.worlds.card import problem_card

HOSTILE = "<script>alert(1)</script>"


def world():
    p = np.full((2, 2, 2), 0.5)
    cmdp = CMDP.from_arrays(p, [[0, 1], [0, 1]], [[0, 1], [0, 1]], budget=1.5, horizon=3)
    return cmdp.labelled(HOSTILE, Labels(constraints=(HOSTILE,)))


def checked(text):
    """Small markup that can be parsed, without a script."""
    ElementTree.fromstring(text)
    assert "<script" not in text
    assert len(text) < 20_000
    return text


def test_a_problem_and_its_card_are_shown_with_their_numbers():
    assert "1.5" in checked(world()._repr_html_())
    assert "Slater gap" in checked(problem_card(world())._repr_html_())


def test_a_history_is_shown_with_two_curves():
    history = replace(run(world(), Uniform(), "fixed", 30), label=HOSTILE)
    assert checked(history._repr_html_()).count("<polyline") == 2


def test_a_study_is_shown_with_its_groups(study_folder):
    study = load_study(study_folder)
    assert repr(study) == f"Study({study_folder}: 18 finished)"
    text = checked(study._repr_html_())
    assert "18 finished" in text
    assert text.count("<tr>") == 1 + 1 + 6


def test_a_small_curve_keeps_its_extremes():
    values = np.zeros(5000)
    values[1234] = 7.0
    assert ",0.0 " in curve_svg("x", values)


def test_plot_returns_the_figure_and_leaves_pyplot_alone():
    backend, mine = matplotlib.get_backend(), plt.figure()
    settings = dict(matplotlib.rcParams)
    figure = plot([run(world(), Uniform(), "fixed", 5)])
    assert figure.axes
    assert matplotlib.get_backend() == backend
    assert plt.get_fignums() == [mine.number]
    assert dict(matplotlib.rcParams) == settings
    plt.close(mine)
