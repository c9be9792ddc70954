"""Routes say what the server answers: every request, what comes back, and the function between them.

Requests may be repeated: an action is drawn once, a step is told once, and an episode ends once.  The OpenAPI document
of the server is made from these routes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from omdpd import __version__
from omdpd.play.books import checked_id
from omdpd.problem.arrays import InvalidInputError
from omdpd.problem.setting import BanditFeedback, Trajectory
from omdpd.serve.desk import Desk
from omdpd.serve.status import Status

WHERE = "#/components/schemas/{name}"
# What any request may be refused with; those that say something also with the second.
REFUSALS = {
    "403": "the token is missing or wrong", "404": "there is no such episode, session or path",
    "408": "it took too long", "421": "another name of the server is meant", "429": "too many requests, or episodes",
    "503": "the session cannot be written",
}  # fmt: skip
OF_WHAT_IS_SAID = {
    "400": "what was sent is not JSON", "409": "it does not go with what was said before",
    "413": "it is too large", "415": "it is not sent as JSON", "422": "an entry is wrong",
}  # fmt: skip


class Begin(msgspec.Struct, forbid_unknown_fields=True):
    """Begin an episode, or go on with the open one of this id.

    With `state`, the first action comes back; with `policy`, the whole policy.
    """

    id: str | None = None
    budget: float | list[float] | None = None
    allowed: list[Any] | None = None
    initial: list[float] | None = None
    state: int | None = None
    policy: bool = False


class Begun(msgspec.Struct, omit_defaults=True):
    """An episode, the name of its policy, and its first action or its policy by step, state and action."""

    id: str
    playing: str
    action: int | None = None
    policy: list[list[list[float]]] | None = None


class Act(msgspec.Struct, forbid_unknown_fields=True):
    """The state that is met in a step, from 0 on."""

    state: int
    step: int


class Action(msgspec.Struct):
    """The action that was drawn for a step."""

    step: int
    action: int


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """What a step earned and cost."""

    step: int
    reward: float
    cost: float | list[float] = 0.0


class Tell(msgspec.Struct, forbid_unknown_fields=True):
    """Steps of an episode that acted here, or a whole one that was played elsewhere (`costs` by step)."""

    steps: list[Step] | None = None
    states: list[int] | None = None
    actions: list[int] | None = None
    rewards: list[float] | None = None
    costs: list[float | list[float]] | None = None
    cut: bool = False
    budget: float | list[float] | None = None


class End(msgspec.Struct, forbid_unknown_fields=True):
    """How an episode ended: whole, absorbed in a state, or cut (its end was not seen)."""

    absorbed: int | None = None
    cut: bool = False


class Budget(msgspec.Struct, forbid_unknown_fields=True):
    """The budget of the episodes that begin from now on."""

    budget: float | list[float]


class Rollback(msgspec.Struct, forbid_unknown_fields=True):
    """The policy that was kept after this many episodes; null: the learner's own again."""

    to: int | None


class Done(msgspec.Struct):
    """It is done and durable; `episodes` have ended so far."""

    episodes: int


class InForce(msgspec.Struct):
    """The policy that the next episode is played with, by step, state and action."""

    playing: str
    policy: list[list[list[float]]]


class Health(msgspec.Struct):
    """Whether the service works, and what is wrong if it does not."""

    ok: bool
    wrong: str = ""


class Refusal(msgspec.Struct):
    """Why a request was refused, in one sentence."""

    error: str


@dataclass(frozen=True)
class Route:
    """A request: its method and path, what it says and gets, and whether that is durable before it is answered.

    Where nothing else comes back, `Done` does.
    """

    method: str
    path: str
    says: type[Any] | None
    gets: type[Any]
    do: Callable[[Desk, str, Any], Any]
    durable: bool = False
    slow: bool = False  # worked out beside the loop


def _begin(desk: Desk, id: str, said: Begin) -> Begun:
    desk.check_room()
    session = desk.session
    if said.state is not None and not 0 <= said.state < session.setting.n_states:
        raise InvalidInputError(f"state is {said.state}, but must be between 0 and {session.setting.n_states - 1}")
    episode = session.begin(said.id, said.budget, said.allowed, said.initial)
    return Begun(
        episode.id, session.books.open[episode.id].policy, None if said.state is None else episode.act(said.state, 0),
        np.asarray(episode.policy).tolist() if said.policy else None,
    )  # fmt: skip


def _act(desk: Desk, id: str, said: Act) -> Action:
    return Action(said.step, desk.session.act(id, said.state, said.step))


def _tell(desk: Desk, id: str, said: Tell) -> None:
    session, whole = desk.session, (said.states, said.actions, said.rewards, said.costs)
    if said.steps is not None and all(each is None for each in whole):
        session.tell_steps(id, [(each.step, each.reward, each.cost) for each in said.steps])
    elif said.steps is None and not any(each is None for each in whole):
        if len({len(each) if isinstance(each, list) else -1 for each in said.costs or ()}) > 1:
            raise InvalidInputError("costs must have as many numbers in every step")
        costs = np.atleast_2d(np.array(said.costs, dtype=np.float64).T)
        walk = Trajectory(np.array(said.states), np.array(said.actions))
        feedback = BanditFeedback(walk, np.array(said.rewards), costs)
        session.tell(checked_id(id), feedback, cut=said.cut, budget=said.budget)
        desk.ended()
    else:
        raise InvalidInputError("tell either steps, or a whole episode as states, actions, rewards and costs")


def _end(desk: Desk, id: str, said: End) -> None:
    desk.session.end(id, said.absorbed, said.cut)
    desk.ended()


def _budget(desk: Desk, id: str, said: Budget) -> None:
    desk.session.set_budget(said.budget)


def _policy(desk: Desk, id: str, said: None) -> InForce:
    name, policy = desk.session.in_force()
    return InForce(name, np.asarray(policy).tolist())


ROUTES = (
    Route("POST", "/episodes", Begin, Begun, _begin),
    Route("POST", "/episodes/{id}/act", Act, Action, _act),
    Route("POST", "/episodes/{id}/tell", Tell, Done, _tell, durable=True),
    Route("POST", "/episodes/{id}/end", End, Done, _end, durable=True),
    Route("DELETE", "/episodes/{id}", None, Done, lambda desk, id, said: desk.session.drop(id), durable=True),
    Route("POST", "/budget", Budget, Done, _budget, durable=True, slow=True),
    Route("POST", "/rollback", Rollback, Done, lambda desk, id, said: desk.session.rollback(said.to), durable=True),
    Route("GET", "/policy", None, InForce, _policy),
    Route("GET", "/status", None, Status, lambda desk, id, said: desk.status(), slow=True),
    Route("GET", "/health", None, Health, lambda desk, id, said: Health(not desk.wrong, desk.wrong)),
)


def openapi(sessions: list[str]) -> dict[str, Any]:
    """The document: every route, with and without the name of a session."""
    kinds = [Refusal, *(kind for route in ROUTES for kind in (route.says, route.gets) if kind is not None)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=WHERE)
    known = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for prefix in ("", "/sessions/{session}"):
        for route in ROUTES:
            paths.setdefault(prefix + route.path, {})[route.method.lower()] = _operation(route, prefix, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "omdpd serve", "version": __version__,
            "description": f"Sessions: {', '.join(sessions)}. One alone is also asked without its name.",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }  # fmt: skip


def _operation(route: Route, prefix: str, known: dict[Any, Any]) -> dict[str, Any]:
    names = [name for name in ("session", "id") if f"{{{name}}}" in prefix + route.path]
    words = (route.says or route.gets).__doc__ or ""
    refusals = REFUSALS | (OF_WHAT_IS_SAID if route.says or "id" in names else {})
    answers = {"200": _content(known[route.gets], (route.gets.__doc__ or "").split("\n")[0])}
    if route.path == "/policy":
        answers["304"] = {"description": "the policy is the one whose ETag was sent"}
    found: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", route.method.lower() + prefix + route.path).strip("_"),
        "summary": words.split("\n")[0],
        "parameters": [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names],
        "responses": answers | {code: _content(known[Refusal], why) for code, why in refusals.items()},
    }
    if route.says is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": known[route.says]}}}
    return found


def _content(schema: Any, words: str) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema}}}
