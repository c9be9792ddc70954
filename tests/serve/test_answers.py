"""What the server answers: episodes over HTTP, repeats, refusals, and that acting waits for nothing."""

import json
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the server is not tested: pip install uvicorn")

from omdpd import ProximalOMDPD, Session, Setting, Uniform
from omdpd.problem.setting import BanditFeedback, Trajectory
from omdpd.serve import app as serving
from omdpd.serve import desk as desks
from tests.serve.asking import asking

H, S, A = 4, 3, 2
SETTING = Setting(H, S, A, budget=4.0, cost_scale=2.0, seed=3)


def learner():
    return ProximalOMDPD.cautious()


def play(ask, id, rng, at=""):
    """One episode by its id; the number of requests that were refused."""
    ask.post(f"{at}/episodes", id=id)
    steps = []
    for h in range(H):
        _, told = ask.post(f"{at}/episodes/{id}/act", state=int(rng.integers(S)), step=h)
        steps.append({"step": h, "reward": (1 + told["action"]) / 2, "cost": 0.5 + told["action"]})
    ask.post(f"{at}/episodes/{id}/tell", steps=steps)
    return ask.post(f"{at}/episodes/{id}/end")


def test_episodes_over_http_teach_what_they_teach_a_session_in_memory(tmp_path):
    with asking(Session.open(tmp_path, learner(), SETTING)) as ask:
        rng, desk = np.random.default_rng(0), ask.app.desks["one"]
        for k in range(8):
            assert play(ask, f"e{k}", rng) == (200, {"episodes": k + 1})
            ask.learnt(desk)  # so that the order of updates is that of a session which does not lag
        status, found = ask("GET", "/policy")
    session, rng = Session(learner(), SETTING), np.random.default_rng(0)
    session._name = desk.session._name
    for k in range(8):
        episode = session.begin(f"e{k}")
        for _ in range(H):
            action = episode.act(int(rng.integers(S)))
            episode.tell((1 + action) / 2, 0.5 + action)
        episode.end()
    assert status == 200
    assert found == {"playing": "learnt 8", "policy": np.asarray(session.policy()).tolist()}


def test_a_first_action_comes_with_the_beginning_and_so_does_a_policy():
    with asking(Session(learner(), SETTING)) as ask:
        _, begun = ask.post("/episodes", id="a", state=1, policy=True, allowed=[False, True], budget=3.0)
        assert begun["action"] == 1
        assert np.array_equal(begun["policy"], np.broadcast_to([0.0, 1.0], (H, S, A)))
        assert ask.app.desks["one"].session.books.open["a"].budget == [3.0]
        assert ask.post("/episodes", state=0)[1]["id"] != ask.post("/episodes", state=0)[1]["id"]


def test_repeats_are_harmless_and_contradictions_refused():
    with asking(Session(learner(), SETTING)) as ask:
        first = ask.post("/episodes", id="a", state=2)
        assert ask.post("/episodes", id="a", state=2) == first
        assert ask.post("/episodes/a/act", state=2, step=0) == (200, {"step": 0, "action": first[1]["action"]})
        assert ask.post("/episodes/a/act", state=1, step=0)[0] == 409
        step = {"step": 0, "reward": 0.5, "cost": 1.0}
        assert ask.post("/episodes/a/tell", steps=[step]) == ask.post("/episodes/a/tell", steps=[step])
        assert ask.post("/episodes/a/tell", steps=[step | {"reward": 0.6}])[0] == 409
        assert ask.post("/episodes/a/end")[0] == 409
        assert ask.post("/episodes/a/end", cut=True) == (200, {"episodes": 1})
        assert ask.post("/episodes/a/end", cut=True) == (200, {"episodes": 1})
        assert ask.post("/episodes/a/tell", steps=[step]) == (200, {"episodes": 1})
        assert ask.post("/episodes", id="a")[0] == 409
        whole = {"states": [0] * H, "actions": [1] * H, "rewards": [0.5] * H, "costs": [[1.0]] * H}
        assert ask("POST", "/episodes/w/tell", whole) == (200, {"episodes": 2})
        assert ask("POST", "/episodes/w/tell", whole) == (200, {"episodes": 2})
        assert ask("POST", "/episodes/w/tell", whole | {"actions": [0] * H})[0] == 409
        assert ask.post("/episodes", id="d")[0] == 200
        assert ask("DELETE", "/episodes/d") == ask("DELETE", "/episodes/d") == (200, {"episodes": 2})
        assert ask("DELETE", "/episodes/x")[0] == 404


def test_a_policy_is_sent_once():
    with asking(Session(learner(), SETTING)) as ask:
        _, headers, body = ask.raw("GET", "/policy")
        tag = headers[b"etag"].decode()
        assert ask.raw("GET", "/policy", headers={"if-none-match": tag})[::2] == (304, b"")
        assert ask.raw("HEAD", "/policy")[::2] == (200, b"")
        play(ask, "a", np.random.default_rng(1))
        ask.learnt(ask.app.desks["one"])
        status, headers, later = ask.raw("GET", "/policy", headers={"if-none-match": tag})
        assert status == 200
        assert later != body
        assert headers[b"etag"].decode() != tag


def test_budgets_and_policies_of_before_are_set_and_kept(tmp_path):
    with asking(Session.open(tmp_path, learner(), SETTING)) as ask:
        session = ask.app.desks["one"].session
        assert ask.post("/budget", budget=3.0)[0] == 200
        ask.post("/episodes", id="a")
        assert session.books.open["a"].budget == [3.0]
        kept = session.keep_policy()
        assert ask.post("/rollback", to=kept)[0] == 200
        assert ask("GET", "/policy")[1]["playing"] == "kept 0"
        assert ask("POST", "/rollback", {"to": 5})[1]["error"].startswith("no policy was kept after 5 episodes")
        assert ask("POST", "/rollback", {"to": None})[0] == 200
    with Session.open(tmp_path, learner(), SETTING) as again:
        assert again.base_budget().tolist() == [3.0]
        assert again.playing == "learnt 0+1"


def test_several_sessions_are_asked_by_name():
    with asking(Session(learner(), SETTING), Session(Uniform(), replace(SETTING, n_states=9, initial=None))) as ask:
        assert ask("GET", "/sessions") == (200, ["one", "two"])
        assert play(ask, "a", np.random.default_rng(0), "/sessions/two")[0] == 200
        assert len(ask("GET", "/sessions/two/policy")[1]["policy"][0]) == 9
        assert ask("GET", "/sessions/one/status")[1]["ended"] == 0
        assert ask("GET", "/sessions/three/status") == (
            404,
            {"error": "there is no session 'three'; there are one, two"},
        )
        status, told = ask("GET", "/status")
        assert (status, told["error"]) == (
            404, "say which session is meant: /sessions/NAME/status, with a NAME of one, two",
        )  # fmt: skip


def test_the_status_says_what_was_played_and_what_is_believed():
    with asking(Session(ProximalOMDPD.standard(), SETTING)) as ask:
        rng = np.random.default_rng(2)
        for k in range(30):
            play(ask, f"e{k}", rng)
        ask.post("/episodes", id="open")
        ask.learnt(ask.app.desks["one"])
        _, told = ask("GET", "/status")
    assert (told["ended"], told["open"], told["waiting"], told["budget"]) == (30, 1, 0, [4.0])
    assert told["spent"] == pytest.approx([sum(each["costs"][0] for each in told["recent"])])
    assert told["allowed"] == [120.0]
    over = [max(each["costs"][0] - 4.0, 0.0) for each in told["recent"]]
    assert told["violation"] == pytest.approx(sum(over))
    value, cost = told["belief"]["amounts"]
    assert value["low"] <= value["expected"] <= value["high"]
    assert (cost["name"], cost["budget"]) == ("cost 0", 4.0)
    assert [each["name"] for each in told["alarms"]] == ["over cost 0", "drift", "weight at its cap"]


@dataclass(frozen=True)
class Slow(Uniform):
    """An update that lasts until it is let go."""

    begun = threading.Event()
    going = threading.Event()

    def update(self, state, feedback):
        self.begun.set()
        assert self.going.wait(600.0)
        return super().update(state, feedback)


def test_acting_and_telling_do_not_wait_for_an_update(tmp_path):
    Slow.begun.clear(), Slow.going.clear()
    with asking(Session.open(tmp_path, Slow(), SETTING)) as ask:
        rng = np.random.default_rng(0)
        play(ask, "first", rng)
        assert Slow.begun.wait(600.0)
        for k in range(3):
            assert play(ask, f"meanwhile {k}", rng)[0] == 200
        assert ask("GET", "/policy")[1]["playing"] == "learnt 0"
        assert ask.app.desks["one"].session.waiting == 4
        Slow.going.set()
        ask.learnt(ask.app.desks["one"])
        assert ask("GET", "/policy")[1]["playing"] == "learnt 4"


@dataclass(frozen=True)
class Fragile(Uniform):
    """Cannot learn."""

    def update(self, state, feedback):
        raise ArithmeticError("no")


def test_an_update_that_fails_leaves_the_fallback_in_force_and_says_so():
    safe = np.zeros((H, S, A))
    safe[..., 0] = 1.0
    with asking(Session(Fragile(), SETTING, fallback=safe)) as ask:
        play(ask, "a", np.random.default_rng(0))
        ask.learnt(ask.app.desks["one"])
        assert np.array_equal(ask("GET", "/policy")[1]["policy"], safe)
        told = ask("GET", "/status")[1]
        assert (told["unsure"], told["failures"]) == ("ArithmeticError: no", 1)


def test_a_disk_that_fails_acknowledges_nothing(tmp_path, monkeypatch):
    with asking(Session.open(tmp_path, learner(), SETTING)) as ask:
        assert ask("GET", "/health") == (200, {"ok": True, "wrong": ""})
        ask.post("/episodes", id="a", state=0)
        step = {"step": 0, "reward": 0.5}
        import omdpd.storage.log as log

        def failing(handle):
            raise OSError(5, "input/output error")

        monkeypatch.setattr(log.os, "fdatasync", failing)
        status, told = ask.post("/episodes/a/tell", steps=[step])
        assert status == 503
        assert "input/output error" in told["error"]
        assert ask("GET", "/health")[0] == 503


def test_what_never_ends_is_dropped_and_too_many_are_refused(monkeypatch):
    monkeypatch.setattr(desks, "MOST_OPEN", 2)
    with asking(Session(learner(), SETTING), drop_after=60.0) as ask:
        for id in ("a", "b"):
            assert ask.post("/episodes", id=id)[0] == 200
        status, told = ask.post("/episodes", id="c")
        assert (status, told["error"]) == (429, "2 episodes are open: end or drop some first")
        session = ask.app.desks["one"].session
        session.books.open["a"].began -= 61.0
        looking = ask.runner.get_loop().create_task(ask.app.desks["one"].look())
        assert ask.post("/episodes", id="d")[0] in (200, 429)  # in which the loop looks for what is old
        looking.cancel()
        assert "a" not in session.open_episodes
        assert session.books.totals.dropped == 1
        assert ask.post("/episodes/a/act", state=0, step=0) == (409, {"error": "episode 'a' was dropped"})


def test_requests_are_bounded_in_size_time_and_rate():
    with asking(Session(learner(), SETTING), rate=3.0) as ask:
        ask.app.rates.clock = lambda: 0.0
        assert [ask("GET", "/health")[0] for _ in range(5)] == [200, 200, 200, 429, 429]
        ask.app.rates.clock = lambda: 100.0
        assert ask.raw("POST", "/episodes", b" " * (serving.MOST_BYTES + 1))[0] == 413
        ask.app.seconds = 0.01
        assert ask.raw("POST", "/episodes", pieces=[b"{"])[0] == 408


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"host": "evil.example"}, b"", 421), ({}, b"", 403), ({"authorization": "Bearer wrong"}, b"", 403),
        ({"authorization": "Bearer right"}, b"", 200), ({}, b"token=right", 200),
        ({"authorization": "Bearer right", "origin": "http://evil.example"}, b"", 403),
        ({"authorization": "Bearer right", "origin": "http://127.0.0.1:1"}, b"", 200),
    ],
)  # fmt: skip
def test_who_is_not_let_in_gets_nothing(headers, query, status):
    with asking(Session(learner(), SETTING), token="right") as ask:
        assert ask.raw("GET", "/policy", headers=headers, query=query)[0] == status


def test_what_is_not_sent_as_json_is_refused_so_that_no_page_can_send_it():
    with asking(Session(learner(), SETTING)) as ask:
        assert ask.raw("POST", "/episodes", b"{}", headers={"content-type": "text/plain"})[0] == 415
        status, headers, body = ask.raw("GET", "/")
        assert status == 200
        assert b"script-src 'sha256-" in headers[b"content-security-policy"]
        assert b"<script>" in body
        assert json.loads(ask.raw("GET", "/sessions")[2]) == ["one"]


def test_a_budget_over_http_has_its_plan_before_it_is_answered(tmp_path):
    """Two arms: the better one costs 1, the other nothing; thirty logged episodes tried both."""
    rng, setting = np.random.default_rng(0), Setting(1, 1, 2, budget=0.5, cost_scale=1.0)
    log = [
        BanditFeedback(Trajectory(np.array([0]), np.array([a])), np.array([float(a)]), np.array([[float(a)]]))
        for a in rng.integers(2, size=30)
    ]
    with asking(Session.open(tmp_path, None, setting, logged=log)) as ask:
        shares = []
        for k, budget in enumerate((0.5, 0.25, 0.75)):
            assert ask.post("/budget", budget=budget) == (200, {"episodes": 0})
            _, begun = ask.post("/episodes", id=f"e{k}", policy=True)
            shares.append(begun["policy"][0][0][1])
            assert ask("GET", "/status")[1]["budget"] == [budget]
    assert shares == pytest.approx([0.5, 0.25, 0.75], abs=0.1)
