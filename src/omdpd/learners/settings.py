"""Settings of a learner as fields of its class: shared ones to inherit, kinds of numbers, and presets.

A learner's class is its factory.  Its fields are what an experiment file may say, in the order that names every stored
run: a new one is keyword-only.  Those that several learners share are inherited from `Scaled`, `Boxed`, `Bonused`
or `Queued`.

    dual_scale: float = positive(1.0)              refused by name unless it is a positive number
    safe: SafePolicy | None = given(None)          what Python or a run hands over; no setting of a file
    published = Preset("...", w0=None)             the class with some settings fixed
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, TypeVar, get_type_hints

from omdpd.beliefs.bonuses import BernsteinBonus, Bonus
from omdpd.beliefs.confidence import (
    COST_SCALE,
    DELTA,
    REWARD_SCALE,
    SCALES,
    TRANSITION_SCALE,
    BoxEstimator,
    EmpiricalEstimator,
)
from omdpd.beliefs.counts import Counts
from omdpd.learners.needs import Needs
from omdpd.problem.arrays import check_number
from omdpd.storage.packing import WHERE_SET

T = TypeVar("T")
# What one does with a field of a learner: the kind of number it must be, whether a file may set it, and how versions
# that did not have it behaved.
KIND, GIVEN, BEFORE = "kind of number", "given in Python", "value of versions without it"

# Widths as papers print them: scales of one; tables that are not clipped.
ONES: dict[str, Any] = dict.fromkeys(SCALES, 1.0)
UNCLIPPED: dict[str, Any] = ONES | {"clip": False, "trusting": False}


def positive(default: Any) -> Any:
    """A field that must be a positive number, or None where its type says so."""
    return field(default=default, metadata={KIND: "positive"})


def nonnegative(default: Any) -> Any:
    """A field that must be a number of at least zero."""
    return field(default=default, metadata={KIND: "at least 0"})


def share(default: Any) -> Any:
    """A field that must lie strictly between zero and one."""
    return field(default=default, metadata={KIND: "a share"})


def given(default: Any) -> Any:
    """A field that a preset, a run or a caller in Python fills, and no file."""
    return field(default=default, kw_only=True, metadata={GIVEN: True})


def later(new: Any, before: Any) -> Any:
    """A field that came later; sessions that it leaves as they were, with the value `before`, keep their name."""
    return field(default=new.default, kw_only=True, metadata={**new.metadata, BEFORE: before})


def settings_of(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a factory that are settings: all but the fields of a class that are `given`."""
    own = getattr(factory, "__dataclass_fields__", {}) if inspect.isclass(factory) else {}
    found = inspect.signature(factory).parameters
    return {name: each for name, each in found.items() if name not in own or GIVEN not in own[name].metadata}


def types_of(factory: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters of a factory; those of inherited fields are looked up where they were written."""
    if inspect.isclass(factory) and hasattr(factory, "__dataclass_fields__"):
        return get_type_hints(factory, include_extras=True)
    owner = factory.__init__ if inspect.isclass(factory) else factory
    return inspect.get_annotations(inspect.unwrap(owner), eval_str=True)


class Preset:
    """A factory of a class under a name of its own, with some of its settings fixed or with other defaults.

    `takes` names its settings in their order, later ones after a star; without it they are those of the class that
    have no value here.  `of` names another factory of the class, whose settings they are then.
    """

    def __init__(self, doc: str, takes: str | None = None, *, of: str | None = None, **values: Any) -> None:
        self.doc, self.takes, self.of, self.values = doc, takes, of, values
        self.made: dict[type, Callable[..., Any]] = {}

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[T]) -> Callable[..., T]:
        if owner not in self.made:
            self.made[owner] = self._factory(owner)
        return self.made[owner]

    def _factory(self, owner: type[T]) -> Callable[..., T]:
        made: Callable[..., T] = owner if self.of is None else getattr(owner, self.of)
        types, taken = types_of(made), self._parameters(made)
        signature = inspect.Signature(taken)

        def factory(*args: Any, **kwargs: Any) -> T:
            return made(**self.values | signature.bind(*args, **kwargs).arguments)

        factory.__signature__ = signature  # type: ignore[attr-defined]  # what `inspect` reads
        factory.__annotations__ = {each.name: types[each.name] for each in taken}
        factory.__doc__, factory.__module__ = self.doc, owner.__module__
        factory.__name__, factory.__qualname__ = self.name, f"{owner.__name__}.{self.name}"
        return factory

    def _parameters(self, made: Callable[..., Any]) -> list[inspect.Parameter]:
        if self.takes is None:
            return [each for name, each in settings_of(made).items() if name not in self.values]
        known = inspect.signature(made).parameters
        first, _, later = self.takes.partition("*")
        kinds = (first, inspect.Parameter.POSITIONAL_OR_KEYWORD), (later, inspect.Parameter.KEYWORD_ONLY)
        return [
            known[name].replace(kind=kind, default=self.values.get(name, known[name].default))
            for names, kind in kinds
            for name in names.split()
        ]


@dataclass(frozen=True)
class Settings:
    """The base of all of them: it checks numbers where a learner is made, and knows how sessions name a learner."""

    # A field of earlier versions, and the settings that it held: sessions on disk know their learner by it.
    inside: ClassVar[tuple[str, ...]] = ()
    practical = Preset("The class by its earlier name.")

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if KIND in each.metadata and value is not None:
                check_number(f"{type(self).__name__}'s {each.name}", value, each.metadata[KIND])

    def pooled(self, counts: Counts) -> Counts:
        """The counts, of all steps as one in a world that is stationary."""
        return counts.pooled() if getattr(self, "stationary", False) else counts

    def packed_fields(self) -> dict[str, Any]:
        """The fields by which a session on disk knows its learner, as they were when the first one was stored."""
        own = {each.name: each for each in fields(self) if each.name not in self.inside}
        kept = {name: getattr(self, name) for name in (*self.inside[:1], *own)}
        kept = {key: value for key, value in kept.items() if value is not None or own[key].metadata != WHERE_SET}
        for key, each in own.items():
            if BEFORE in each.metadata and kept[key] == each.metadata[BEFORE]:
                del kept[key]
        choice = kept.pop("safe_policy", None)
        return kept if choice is None or kept["safe"] is not None else kept | {"safe": choice}


@dataclass(frozen=True)
class Widths(Settings):
    """The scales of the widths around r_hat, d_hat and p_hat, and whether counts are pooled over the steps."""

    reward_scale: float = nonnegative(REWARD_SCALE)
    cost_scale: float = nonnegative(COST_SCALE)
    transition_scale: float = nonnegative(TRANSITION_SCALE)
    stationary: bool = False


@dataclass(frozen=True)
class Scaled(Widths):
    """The scales, and the chance that the widths may fail."""

    _: KW_ONLY
    delta: float = share(DELTA)


@dataclass(frozen=True)
class Bonused(Scaled):
    """Optimism by bonuses under p_hat."""

    inside: ClassVar[tuple[str, ...]] = ("bonus", *SCALES, "stationary", "delta")

    @cached_property
    def bonus(self) -> Bonus:
        """What turns counts into optimistic tables."""
        return BernsteinBonus(
            self.reward_scale, self.cost_scale, self.transition_scale, self.stationary, self.delta
        )  # fmt: skip


@dataclass(frozen=True)
class Empirical(Settings):
    """Empirical tables and kernel with a margin (`EmpiricalEstimator`)."""

    _: KW_ONLY
    kappa: float = nonnegative(EmpiricalEstimator.kappa)
    reward_scale: float = nonnegative(EmpiricalEstimator.reward_scale)
    one_over_n: float = nonnegative(EmpiricalEstimator.one_over_n)
    pseudo_observations: float = nonnegative(EmpiricalEstimator.pseudo_observations)
    delta: float = share(DELTA)

    inside = ("estimator", "stationary", "kappa", "reward_scale", "one_over_n", "pseudo_observations", "delta", "box")

    @cached_property
    def estimator(self: Any) -> BoxEstimator | EmpiricalEstimator:
        """What turns counts into tables and a region."""
        return EmpiricalEstimator(
            self.kappa, self.reward_scale, self.one_over_n, self.pseudo_observations, self.stationary, self.delta
        )


@dataclass(frozen=True)
class Queued(Settings):
    """Two tables of Q-learning and a virtual queue: factors on the published bonuses and margin, and fresh starts."""

    reward_scale: float = nonnegative(0.01)
    cost_scale: float = nonnegative(1e-4)
    tightening_scale: float = nonnegative(0.0)
    restart: bool = False

    needs = Needs(episodes=True, single_constraint=True)


@dataclass(frozen=True)
class Boxed(Widths):
    """Optimistic tables and a confidence box around p_hat (`BoxEstimator`)."""

    _: KW_ONLY
    clip: bool = True
    trusting: bool = True
    delta: float = share(DELTA)

    inside = ("estimator", *SCALES, "stationary", "clip", "trusting", "delta")

    @cached_property
    def estimator(self) -> BoxEstimator:
        """What turns counts into tables and the box."""
        return BoxEstimator.practical(
            self.reward_scale, self.cost_scale, self.transition_scale, self.stationary, self.clip, self.trusting,
            self.delta,
        )  # fmt: skip
