import msgspec
import numpy as np
import pytest

from omdpd.beliefs.confidence import KnownModel
from omdpd.experiments.registry import Registry
from omdpd.learners.bvops import BVOPS
from omdpd.learners.dope import DOPE
from omdpd.learners.germano import Germano
from omdpd.learners.omdpd import OMDPD
from omdpd.learners.opdop import OPDOP
from omdpd.learners.optpess_lp import OptPessLP
from omdpd.learners.optpess_primal_dual import OptPessPrimalDual
from omdpd.learners.protocol import stored_classes
from omdpd.learners.proximal import ProximalOMDPD
from omdpd.learners.sops import SOPS
from omdpd.learners.triple_q import TripleQ
from omdpd.learners.ucpd import UCPD
from omdpd.play.scene import known_safe_policy, with_known_facts
from omdpd.play.simulate import play_episode
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.cmdp import CMDP, Round
from omdpd.storage.packing import pack, unpack
from tests.references.instances import random_cmdp
from tests.references.named import LEARNERS
from tests.references.trivial_world import COST, HORIZON, trivial_world


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_every_learner_is_told_what_it_needs_and_its_state_survives_a_file(name):
    cmdp = trivial_world()
    spec = LEARNERS[name]()
    kind = spec.build().card.feedback[0]
    learner = with_known_facts(spec.build(), cmdp, kind)
    state = learner.init(cmdp.setting(50, kind))
    rng = np.random.default_rng(0)
    for _ in range(3):
        policy = learner.policy(state)
        assert np.allclose(policy.sum(axis=-1), 1.0)
        met = play_episode(cmdp, Round(cmdp.reward, cmdp.excess), policy, kind, rng)
        back = unpack(*pack(state), stored_classes(learner))
        assert np.array_equal(learner.policy(back), policy)
        after, again = learner.update(state, met), learner.update(back, met)
        assert np.array_equal(learner.policy(after), learner.policy(again))
        state = after
    learner.report(state)


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_every_spec_survives_a_file(name):
    spec = LEARNERS[name]()
    assert Registry.installed().parse("learners", msgspec.to_builtins(spec)) == spec


def test_the_policy_of_least_cost_has_the_most_room():
    safe = known_safe_policy("SOPS", trivial_world())
    assert safe.room == pytest.approx(-COST.min() * HORIZON)


def test_with_several_constraints_the_largest_excess_is_least():
    cmdp = random_cmdp(np.random.default_rng(0), 4, 3, 2, 2, budget=0.7)
    safe = known_safe_policy("DOPE", cmdp)
    others = [
        known_safe_policy("DOPE", CMDP.from_arrays(cmdp.transition, cmdp.reward, c, 0.7, cmdp.initial))
        for c in cmdp.cost
    ]
    assert 0.0 < safe.room <= min(other.room for other in others) + 1e-9


def test_a_policy_without_room_is_refused():
    cmdp = trivial_world()
    with pytest.raises(InvalidInputError, match="the uniform policy leaves no room below constraint 0"):
        with_known_facts(LEARNERS["SOPS"](safe_policy="uniform").build(), cmdp, "bandit")
    hopeless = CMDP.from_arrays(cmdp.transition, cmdp.reward, np.ones((1, *cmdp.shape)), HORIZON)
    with pytest.raises(InvalidInputError, match="even the policy of least cost leaves no room"):
        with_known_facts(LEARNERS["OPDOP"]().build(), hopeless, "bandit")
    assert with_known_facts(LEARNERS["OPDOP"](room=0.5).build(), hopeless, "bandit").room == 0.5


def test_the_wrong_feedback_is_refused():
    with pytest.raises(InvalidInputError, match="SOPS needs feedback 'bandit', but this nature gives 'full'"):
        with_known_facts(LEARNERS["SOPS"]().build(), trivial_world(), "full")
    with pytest.raises(InvalidInputError, match="picks its tables"):
        with_known_facts(LEARNERS["Oracle"]().build(), trivial_world(), "full")


def test_published_constants_are_presets():
    safe, cmdp = known_safe_policy("SOPS", trivial_world()), trivial_world()
    for learner in (
        UCPD.theory(), Germano.theory(), BVOPS.theory(), SOPS.theory(safe), OptPessLP.theory(safe), DOPE.theory(safe),
        OptPessPrimalDual.theory(safe.room), OPDOP.theory(safe.room), TripleQ.theory(),
    ):  # fmt: skip
        kind = learner.card.feedback[0]
        state = learner.init(cmdp.setting(20, kind))
        rng = np.random.default_rng(0)
        for _ in range(3):
            met = play_episode(cmdp, Round(cmdp.reward, cmdp.excess), learner.policy(state), kind, rng)
            state = learner.update(state, met)
        assert learner.report(state).log.failures == 0
        if isinstance(learner, OptPessLP | DOPE):
            assert np.array_equal(learner.policy(state), safe.policy)


@pytest.mark.parametrize("waiting", [OMDPD.theory(known_model=True), ProximalOMDPD.optimistic(known_model=True)])
def test_a_learner_that_is_to_know_the_model_is_given_it_and_refuses_to_start_without(waiting):
    cmdp = trivial_world()
    with pytest.raises(InvalidInputError, match="must be given the model"):
        waiting.init(cmdp.setting(50, "bandit"))
    known = with_known_facts(waiting, cmdp, "bandit").estimator
    assert isinstance(known, KnownModel)
    for found, truth in ((known.transition, cmdp.transition), (known.reward, cmdp.reward), (known.cost, cmdp.excess)):
        assert np.array_equal(found, truth)
    assert with_known_facts(waiting, cmdp, "full").estimator.cost is None
    for kind in ("bandit", "full"):
        learner = with_known_facts(waiting, cmdp, kind)
        assert learner.init(cmdp.setting(50, kind)).q.shape == cmdp.shape
