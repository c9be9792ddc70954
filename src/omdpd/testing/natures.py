"""Every nature keeps to these rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np

from omdpd.natures.protocol import COSTLIEST, Nature, Safety, changes_of, rounds_ahead
from omdpd.play.judging import comparator
from omdpd.problem.arrays import Floats
from omdpd.problem.cmdp import CMDP, Round
from omdpd.problem.laws import DenseLaws
from omdpd.problem.setting import FeedbackKind
from omdpd.solvers.compiled.products import costliest
from omdpd.solvers.sweeps import occupancy_under
from omdpd.testing.common import ConformanceError, require, small_world

# Rounds of a nature that are looked at, and how many its verdict on safety is held against.
ROUNDS, JUDGED_ROUNDS = 20, 200


@dataclass(frozen=True, eq=False)
class NatureCase:
    """A nature of a world, built twice with the same seed."""

    cmdp: CMDP
    nature: Nature
    again: Nature

    def rounds(self, n: int = ROUNDS) -> Iterator[tuple[int, Floats, Round]]:
        """Episodes with the occupancy of a random policy each, and their rounds."""
        for k in range(n):
            q = self.occupancy(k)
            yield k, q, self.nature.draw(k, q)

    def occupancy(self, seed: int) -> Floats:
        """The occupancy of a random policy."""
        H, S, A = self.cmdp.shape
        policy = np.random.default_rng(seed).dirichlet(np.ones(A), (H, S))
        return occupancy_under(self.cmdp.laws, policy, self.cmdp.initial)


def check_nature(factory: Callable[..., Nature], world: CMDP | None = None, seed: int = 5) -> None:
    """Check a nature: a factory that takes (cmdp, seed); in a small random world if none is given."""
    case = nature_case(factory, world, seed)
    for rule in NATURE_RULES.values():
        rule(case)


def nature_case(factory: Callable[..., Nature], world: CMDP | None = None, seed: int = 5) -> NatureCase:
    """The nature, and the same once more."""
    cmdp = small_world(1) if world is None else world
    first, second = factory(cmdp, seed), factory(cmdp, seed)
    for name in ("feedback", "repeats", "draw", "table", "safety"):
        require(hasattr(first, name), f"a nature has {name!r}, but this one has none")
    require(first.feedback in get_args(FeedbackKind), f"its feedback is {first.feedback!r}, not 'bandit' or 'full'")
    return NatureCase(cmdp, first, second)


def a_draw_is_a_pure_function(case: NatureCase) -> None:
    """A round depends on the seed, the episode and the occupancy, and not on the order of the questions."""
    for k in (17, 0, 3):
        q = case.occupancy(k)
        first, *others = case.nature.draw(k, q), case.nature.draw(k, q), case.again.draw(k, q)
        same = all(np.array_equal(first.cost, other.cost) and first.key == other.key for other in others)
        require(same, f"episode {k} has another round when it is drawn again")


def a_round_fits_the_world(case: NatureCase) -> None:
    """Tables of the world's shape, finite, in range."""
    for k, _, round_ in case.rounds():
        wanted = (case.cmdp.n_constraints, *case.cmdp.shape)
        require(round_.cost.shape == wanted, f"the cost of episode {k} has shape {round_.cost.shape}, not {wanted}")
        inside = bool(np.all(np.isfinite(round_.cost))) and float(np.abs(round_.cost).max()) <= 1.0 + 1e-12
        require(inside, f"a cost of episode {k} is outside [-1, 1]")
        require(round_.reward.shape == case.cmdp.shape, f"the reward of episode {k} has shape {round_.reward.shape}")


def a_key_names_its_table(case: NatureCase) -> None:
    """Times the round's factor; where tables do not repeat, an episode's key is its number."""
    for k, _, round_ in case.rounds():
        table = case.nature.table(round_.key)
        require(round_.factor > 0.0, f"the factor of episode {k} is {round_.factor}, but must be positive")
        same = np.allclose(round_.cost, round_.factor * table, rtol=0.0, atol=1e-12)
        require(same, f"table({round_.key}) times its factor {round_.factor:g} is not the cost of episode {k}")
        own = case.nature.repeats or (round_.key == k and round_.factor == 1.0)
        require(own, f"it does not repeat tables, but episode {k} has another key, or a factor")


def drawing_changes_nothing_it_was_given(case: NatureCase) -> None:
    """Neither the occupancy nor the world."""
    laws = case.cmdp.laws
    arrays = (case.cmdp.reward, case.cmdp.cost, laws.table if isinstance(laws, DenseLaws) else laws.probabilities)
    before = [array.copy() for array in arrays]
    for k, q, _ in case.rounds(5):
        require(np.array_equal(q, case.occupancy(k)), "draw changed the occupancy that it was given")
    require(all(map(np.array_equal, before, arrays)), "draw changed the world")


def what_changes_is_revealed_or_said(case: NatureCase) -> None:
    """Costs under bandit feedback, and rewards, stay what they are unless `changes` names them."""
    changes = changes_of(case.nature)
    require(set(changes) <= {"reward", "cost", "kernel"}, f"changes is {changes}: none but reward, cost and kernel can")
    rounds = [round_ for _, _, round_ in case.rounds()]
    costs, rewards = {round_.cost.tobytes() for round_ in rounds}, {round_.reward.tobytes() for round_ in rounds}
    said = case.nature.feedback == "full" or "cost" in changes
    require(said or len(costs) == 1, "costs change, so they must be revealed ('full') or named in `changes`")
    same = "reward" in changes or rewards == {case.cmdp.reward.tobytes()}
    require(same, "rewards are not the world's, so `changes` must name them")
    inside = all(float(round_.reward.min()) >= 0.0 and float(round_.reward.max()) <= 1.0 for round_ in rounds)
    require(inside, "a reward is outside [0, 1]")
    for name in ("world", "dynamic_optimum"):
        require("kernel" not in changes or hasattr(case.nature, name), f"its kernel changes, but it has no {name!r}")


def an_oblivious_nature_does_not_look(case: NatureCase) -> None:
    """One that says it is oblivious draws the same round whatever is played, and where it is shown nothing."""
    owner = next((each for each in type(case.nature).__mro__ if "draw" in vars(each)), type(case.nature))
    if "ahead" in vars(owner) or not vars(owner).get("oblivious", False):
        return
    for k in range(ROUNDS):
        drawn = [case.nature.draw(k, case.occupancy(seed)) for seed in (k, 2 * ROUNDS + k, 4 * ROUNDS + k)]
        same = all(_same_round(drawn[0], each) for each in drawn)
        require(same, f"it is oblivious, but its round of episode {k} depends on what is played")
        try:
            same = _same_round(drawn[0], case.nature.draw(k, np.zeros(0)))
        except Exception as error:
            raise ConformanceError(
                f"it is oblivious, but its draw of episode {k} cannot do without an occupancy: {error}"
            ) from error
        require(same, f"it is oblivious, but its round of episode {k} is another one where it is shown no occupancy")


def what_is_announced_is_what_comes(case: NatureCase) -> None:
    """The rounds that a nature says ahead are those of `draw`, for all episodes that it is asked for."""
    for start, n in ((0, ROUNDS), (7, 1), (7, ROUNDS), (ROUNDS, 3)):
        ahead = rounds_ahead(case.nature, start, n)
        if ahead is None:
            return
        rounds, choices = ahead
        tables = np.array([each.cost for each in rounds])
        for k, choice in enumerate(choices.tolist(), start):
            q = case.occupancy(k)
            announced = rounds[costliest(tables, q) if choice == COSTLIEST else choice]
            require(
                _same_round(announced, case.nature.draw(k, q)), f"ahead gives another round of episode {k} than draw"
            )


def the_verdict_on_safety_is_true(case: NatureCase) -> None:
    """A linear program over many episodes finds a policy safe in all of them exactly where `safety` says so."""
    verdict = case.nature.safety()
    require(isinstance(verdict, Safety), f"safety is a {type(verdict).__name__}, but must be a Safety")
    require(bool(verdict.why.strip()), "safety does not say why")
    keys = sorted({round_.key for _, _, round_ in case.rounds(JUDGED_ROUNDS)})
    if "kernel" in changes_of(case.nature):
        there = case.nature.dynamic_optimum(JUDGED_ROUNDS) is not None  # type: ignore[attr-defined]
        require(there == verdict.exists, f"safety says {verdict.exists}, but its optimum says {there}")
        return
    best = comparator(case.cmdp, case.nature, keys)
    require(best.exists == verdict.exists, f"safety says {verdict.exists}, but a linear program says {best.exists}")


def _same_round(one: Round, other: Round) -> bool:
    """Whether two rounds are the same in everything that a run or a comparator reads."""
    named = all(getattr(one, name) == getattr(other, name) for name in ("key", "factor", "reward_noise", "cost_noise"))
    return named and np.array_equal(one.cost, other.cost) and np.array_equal(one.reward, other.reward)


NATURE_RULES: dict[str, Callable[[NatureCase], None]] = {
    rule.__name__: rule
    for rule in (
        a_draw_is_a_pure_function, a_round_fits_the_world, a_key_names_its_table,
        drawing_changes_nothing_it_was_given, what_changes_is_revealed_or_said,
        an_oblivious_nature_does_not_look, what_is_announced_is_what_comes, the_verdict_on_safety_is_true,
    )
}  # fmt: skip
