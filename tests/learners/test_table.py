"""The table of learners: its factories take the settings that a stored run has, and build what they always built.

`built.json` has what 0.1 built for every learner: from its default settings, from others (in the order in which a run's
name hashes them), and with every switch turned.  It is never written again, but for a default that was changed on
purpose: runs are stored with their settings, so that only new ones get the new default, under another name.
"""

import json
import re
import subprocess
import sys
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

import numpy as np
import pytest

import omdpd.learners
from omdpd.beliefs.confidence import BoxEstimator
from omdpd.learners import LEARNERS, OMDPD, ProximalOMDPD
from omdpd.learners.omdpd import DIVERGENCES, HINTS, AsPrinted, DivergenceName, HintName
from omdpd.learners.settings import settings_of, types_of
from omdpd.problem.arrays import InvalidInputError
from omdpd.solvers.mirror import Divergence

RECORDED = Path(__file__).parents[1] / "recorded"
BUILT = json.loads((RECORDED / "built.json").read_text())
# The entry with the most settings has them all.
SETTINGS = {
    name: max((list(entry["settings"]) for entry in BUILT if entry["name"] == name), key=len)
    for name in dict.fromkeys(entry["name"] for entry in BUILT)
}
SIMPLE = (float, int, bool, str, NoneType)


def parameters(factory):
    """The parameters of a factory by name, with the types that their annotations resolve to."""
    hints = types_of(factory)
    return {name: (found, hints[name]) for name, found in settings_of(factory).items()}


def plain(value, recorded):
    """What was recorded of a value: the class of a dataclass and the fields that it had, anything else as it is."""
    if is_dataclass(value) and isinstance(recorded, dict):
        names = set(recorded) - {"class"}
        return {"class": type(value).__name__} | {name: plain(getattr(value, name), recorded[name]) for name in names}
    return value.value if isinstance(value, Enum) else value


def is_simple(kind):
    """Whether a file can spell every value of the type."""
    if isinstance(kind, UnionType) or get_origin(kind) in (tuple, Union):
        return all(is_simple(part) for part in get_args(kind) if part is not Ellipsis)
    return kind in SIMPLE or get_origin(kind) is Literal


def test_the_table_has_every_learner_that_was_ever_stored_in_the_same_order():
    assert [name for name in LEARNERS if name in SETTINGS] == list(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_positional_settings_are_those_of_stored_runs_in_their_order(name):
    found = [parameter for parameter, _ in parameters(LEARNERS[name]).values()]
    assert [each.name for each in found if each.kind is each.POSITIONAL_OR_KEYWORD] == SETTINGS[name]


@pytest.mark.parametrize("name", LEARNERS)
def test_every_setting_has_a_default_and_a_type_that_a_file_can_spell(name):
    for key, (found, kind) in parameters(LEARNERS[name]).items():
        assert found.default is not found.empty, key
        assert is_simple(kind), key
        assert found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY), key


@pytest.mark.parametrize("entry", BUILT, ids=lambda entry: f"{entry['name']}-{','.join(entry['settings'])}")
def test_a_factory_builds_what_version_0_1_built(entry):
    learner = LEARNERS[entry["name"]](**entry["settings"])
    found = plain(learner, entry["built"])
    if getattr(learner, "safe", ...) is None:  # which of them a run tells it is a setting of its own by now
        found["safe"] = learner.safe_policy
    assert found == entry["built"]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_factory_says_what_it_builds_in_one_line(name):
    line = LEARNERS[name].__doc__.splitlines()[0].strip()
    assert line.endswith(".")


def test_every_learner_of_the_table_can_be_imported_by_its_class():
    for name, factory in LEARNERS.items():
        assert getattr(omdpd.learners, name.split(".")[0]) is type(factory())
        assert name.split(".")[0] in omdpd.learners.__all__


@pytest.mark.parametrize("module", ["omdpd.learners", "omdpd.learners.protocol", "omdpd.learners.omdpd"])
def test_each_module_of_the_learners_can_be_imported_first(module):
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


def test_the_names_of_predictions_and_divergences_are_those_of_the_signatures():
    assert tuple(HINTS) == get_args(HintName)
    assert tuple(DIVERGENCES) == get_args(DivergenceName)


@pytest.mark.parametrize("preset", [OMDPD.tuned, OMDPD.theory])
def test_every_departure_from_the_paper_is_a_setting(preset):
    learner = preset(
        hint="as-printed", nested=True, diameter=37.5, divergence="kl", alpha=0.3, w0=0.4, beta_root=2.0, delta=0.1,
        stationary=True,
    )  # fmt: skip
    assert (learner.hint, learner.nested, learner.divergence) == (AsPrinted(), True, Divergence.KL)
    assert (learner.diameter, learner.alpha, learner.w0, learner.beta_root) == (37.5, 0.3, 0.4, 2.0)
    assert (learner.estimator.delta, learner.estimator.stationary) == (0.1, True)


def test_the_tuned_box_can_be_made_the_theorem_s():
    tuned = OMDPD.tuned(1.0, 1.0, 1.0, clip=False, trusting=False)
    assert tuned.estimator == OMDPD.theory().estimator == BoxEstimator()


def test_the_guarantee_on_a_card_is_that_of_the_learner_it_is_on():
    theory, proved = OMDPD.theory().card.guarantee, OMDPD.theory(nested=True, cost_scale=1.4143).card.guarantee
    assert theory.startswith(proved)
    assert "needs sets that only shrink (nested), cost_scale = 1.4143" in theory
    assert "needs" not in proved
    assert OMDPD.theory(known_model=True).card.guarantee.startswith("O(sqrt(log K)) regret")
    for learner in (OMDPD.tuned(), OMDPD.theory(alpha=0.1)):
        assert learner.card.guarantee.startswith("none with these")
    for name, factory in LEARNERS.items():
        if name.startswith("ProximalOMDPD") and name != "ProximalOMDPD.standard":
            assert factory().card.guarantee.startswith("no rate with these bonuses"), name
    assert ProximalOMDPD.standard(persistence=0.0).card.guarantee.startswith("no rate with these bonuses")
    for known in (ProximalOMDPD.optimistic(known_model=True), ProximalOMDPD.known_model(np.ones(1), np.ones(1))):
        assert known.card.guarantee == "run-time certificate of regret and violation"


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), "1", True, -1.0])
def test_a_setting_that_is_no_number_of_its_kind_is_refused_by_name_where_the_learner_is_made(name, wrong):
    factory = LEARNERS[name]
    for setting, (_, hint) in parameters(factory).items():
        if not {int, float} & {hint, *get_args(hint)}:
            continue
        with pytest.raises(InvalidInputError, match=rf"\b{setting}.* is {re.escape(repr(wrong))}, but must"):
            factory(**{setting: wrong})


POSITIVE = {
    "BVOPS": "step_scale gamma_scale", "CPDPO": "room eta_scale gamma_scale", "CVOPS": "room step_scale",
    "EpisodeSafe": "alpha most", "FlexDOME": "room eta_scale tau_scale", "Germano": "primal_scale",
    "GhoshZhouShroff.average": "room alpha_scale dual_scale", "LekeufackJordan": "w0 beta_root", "OPDOP": "room",
    "OptAug": "penalty_scale max_penalty", "OptDual": "room dual_scale", "OptPessPrimalDual": "room",
    "OptPrimalDual": "room primal_scale dual_scale", "PosteriorSampling": "prior", "RECOO": "alpha_scale epsilon",
    "RegularizedPrimalDual": "room eta_scale tau_scale", "SinhaVaze": "w0 beta_root", "SOPS": "step_scale gamma_scale",
    "UCPD": "reward_weight step_scale", "UOptRPGPD": "eta_scale", "WCOPS": "power step_scale",
}  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), POSITIVE.items())
def test_a_step_that_does_not_move_is_refused_by_name(name, settings):
    for setting in settings.split():
        with pytest.raises(InvalidInputError, match=f"{setting} is 0.0, but must be positive"):
            LEARNERS[name](**{setting: 0.0})


@pytest.mark.parametrize("name", ["alpha", "w0", "beta_root", "diameter"])
def test_a_constant_that_is_not_positive_is_refused_by_name(name):
    with pytest.raises(InvalidInputError, match=f"OMDPD's {name} is 0.0, but must be positive"):
        OMDPD.theory(**{name: 0.0})


def test_a_prediction_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(InvalidInputError, match="there is no hint 'last'; there are last-gradient, as-printed"):
        OMDPD.tuned(hint="last")


@pytest.mark.parametrize("name", [name for name, factory in LEARNERS.items() if "delta" in parameters(factory)])
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.5])
def test_a_delta_that_is_no_probability_of_failure_is_refused(name, delta):
    with pytest.raises(InvalidInputError, match=f"delta is {delta}, but must lie strictly between 0 and 1"):
        LEARNERS[name](delta=delta)
