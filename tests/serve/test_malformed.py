"""Malformed requests: each is refused with 4xx and one sentence, and nothing is written."""

import json
import random

import pytest

pytest.importorskip("uvicorn", reason="the server is not tested: pip install uvicorn")

from omdpd import Session
from tests.serve.asking import asking
from tests.serve.test_answers import SETTING, learner

VALUES = [
    None, True, -1, 3, 99, 10**30, 1.5, 1e308, -0.5, "", "a", "0", "a/b", "x" * 65, "\u0000", [], [0], [[]], [None],
    ["a"], {}, {"a": 1}, [1e308, 1e308], [[True]], [True, False, True], [[[[0]]]],
]  # fmt: skip
GOOD = {
    "/episodes": {"id": "new", "budget": 4.0, "allowed": [True, True], "initial": [1.0, 0.0, 0.0], "state": 0},
    "/episodes/open/act": {"state": 0, "step": 1},
    "/episodes/open/tell": {"steps": [{"step": 0, "reward": 0.5, "cost": [1.0]}]},
    "/episodes/whole/tell": {"states": [0] * 4, "actions": [0] * 4, "rewards": [0.5] * 4, "costs": [1.0] * 4},
    "/episodes/open/end": {"cut": True, "absorbed": 0},
    "/budget": {"budget": 3.0},
    "/rollback": {"to": 7},
}


def wrong_bodies(path, rng):
    """Entries with values that they may not have, entries nobody knows, and bytes that are no JSON."""
    good = GOOD[path]
    yield json.dumps(good | {rng.choice(["", "x", "Steps", "id "]): rng.choice(VALUES)}).encode()
    text = json.dumps(good).encode()
    yield text[: rng.randrange(1, len(text))]
    yield text + rng.choice([b"}", b",", b"{}", b"\xff"])
    yield bytes(rng.randrange(256) for _ in range(rng.randrange(1, 30)))
    yield rng.choice([b"[]", b"1", b'"a"', b"null", b"NaN", b"[" * 5000, b'{"a":' * 3000])
    for name in good:
        value = rng.choice(VALUES)
        steps = path.endswith("open/tell") and rng.random() < 0.7
        if steps:
            inner = rng.choice(["step", "reward", "cost", "what"])
            yield json.dumps({"steps": [good["steps"][0] | {inner: value}]}).encode()
        else:
            yield json.dumps(good | {name: value}).encode()


def is_fine(body):
    """Whether a request that was made up happens to say something that may be said."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict)


def test_five_hundred_malformed_requests_are_refused_with_a_sentence_each():
    rng, refused = random.Random(30), 0
    with asking(Session(learner(), SETTING)) as ask:
        session = ask.app.desks["one"].session
        ask.post("/episodes", id="open", state=0)
        while refused < 500:
            path = rng.choice(list(GOOD))
            for body in wrong_bodies(path, rng):
                before, entries = session.episodes, session._entries
                status, _, answer = ask.raw("POST", path, body)
                if status == 200:
                    assert is_fine(body), body  # and was one that may be said
                    continue
                assert 400 <= status < 500, (path, body, answer)
                told = json.loads(answer)
                assert list(told) == ["error"]
                assert 5 < len(told["error"]) < 400, told
                assert "\n" not in told["error"]
                assert "Traceback" not in told["error"]
                assert (session.episodes, session._entries) == (before, entries), (path, body)
                refused += 1
            if "open" not in session.open_episodes:  # it was ended by one that may be said
                session.books.digests.pop("open")
                ask.post("/episodes", id="open", state=0)


@pytest.mark.parametrize(
    ("path", "said", "sentence"),
    [
        ("/episodes/a/act", {"state": 3, "step": 0}, "state is 3, but must be between 0 and 2"),
        ("/episodes/a/act", {"state": 0}, "Object missing required field `step`"),
        (
            "/episodes/a/tell",
            {"steps": [{"step": 0, "reward": 2.0}]},
            "step 0 of episode 'a': reward = 2 is outside [0, 1]",
        ),
        ("/episodes/a/tell", {"steps": [{"step": 4, "reward": 0.0}]}, "step 4 of episode 'a' was not acted in"),
        ("/episodes/a/tell", {}, "tell either steps, or a whole episode"),
        ("/episodes", {"id": "a/b"}, "id must be 1 to 64 printable characters without a slash"),
        ("/budget", {"budget": [1.0, 2.0]}, "budget is 2 numbers, but there is 1 cost: cost 0"),
    ],
)
def test_the_sentence_names_the_entry_at_fault(path, said, sentence):
    with asking(Session(learner(), SETTING)) as ask:
        ask.post("/episodes", id="a", state=0)
        _, told = ask("POST", path, said)
        assert sentence in told["error"]
