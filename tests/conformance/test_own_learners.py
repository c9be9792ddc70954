"""What a learner of somebody's own is told where it breaks a rule: one sentence that says what is wrong."""

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from omdpd import InvalidInputError, Setting
from omdpd.learners import Factor
from omdpd.learners.factors import ROLES
from omdpd.testing import ConformanceError, check_learner

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_learner.py"


@pytest.fixture(scope="module")
def own():
    spec = importlib.util.spec_from_file_location("own_learner", EXAMPLE)
    module = sys.modules["own_learner"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_role_that_is_none_is_refused_where_it_is_written():
    with pytest.raises(InvalidInputError, match="there is no role of a factor 'bonus'; there are reward width"):
        Factor("bonus", "step")
    assert [Factor(role, "x").role for role in ROLES] == [*ROLES]


def test_a_plugin_with_a_wrong_role_is_refused_when_it_is_loaded(tmp_path):
    from omdpd.experiments.registry import Registry

    file = tmp_path / "mine.py"
    file.write_text(EXAMPLE.read_text().replace('Factor("step"', 'Factor("bonus"'))
    with pytest.raises(InvalidInputError, match="there is no role of a factor 'bonus'"):
        Registry.installed().with_plugins([file])


def test_factors_that_are_no_factors_are_named(own):
    class Named(own.DualAscent):
        factors = ("step",)

    with pytest.raises(ConformanceError, match="`factors` holds 'step'"):
        check_learner(Named())


def test_a_state_that_is_a_dictionary_is_named(own):
    class Loose(own.DualAscent):
        def init(self, setting: Setting) -> dict:
            return {"prices": np.zeros(1)}

    with pytest.raises(ConformanceError, match="init gives a dict, but a state is a frozen dataclass"):
        check_learner(Loose())


def test_what_a_learner_raises_itself_becomes_a_sentence(own):
    @dataclass(frozen=True)
    class Broken(own.DualAscent):
        def update(self, state, feedback):
            return state.nothing

    with pytest.raises(ConformanceError, match=r"its own code raised, where .*, AttributeError: .*'nothing'"):
        check_learner(Broken())
