"""Requests are routed among three models of different price and skill, under a budget for every day.

A request has up to three attempts.  Its state is its kind (easy, hard), the attempt, and whether the last one failed.
Whether an attempt solved it is known at once; the bill and the customer's verdict come later, out of order.  A model is
down now and then: it is masked.  What one request leaves of the day's budget, others may use (`[carry]`).

The learner is a server of its own (`omdpd serve`), asked over HTTP.  In the middle it is killed and started again.

    python examples/routing.py            # 600 requests, half a minute
"""

import http.client
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = {"small": 1.0, "medium": 4.0, "large": 15.0}  # cents of an attempt
SOLVES = {"easy": (0.6, 0.85, 0.97), "hard": (0.1, 0.45, 0.9)}
KINDS, ATTEMPTS = list(SOLVES), 3
DONE = 2 * ATTEMPTS * 2  # the state of a request that is solved
FIRST = [0.5 if state in (0, 2 * ATTEMPTS) else 0.0 for state in range(DONE + 1)]  # easy or hard, at first
DAY, BUDGET = 50, 7.0  # requests of a day, and cents that one may cost on average
SESSION = f"""\
[setting]
horizon = {ATTEMPTS}
n_states = {DONE + 1}
n_actions = {len(MODELS)}
initial = {FIRST}
budget = {BUDGET}
cost_scale = 15.0
seed = 1

[learner]
name = "ProximalOMDPD.standard"

[carry]
period = {DAY}
most = 2.0
"""


def state_of(kind, attempt, failed):
    """The number of a state."""
    return (KINDS.index(kind) * ATTEMPTS + attempt) * 2 + failed


class Service:
    """The server as a process, and a client that repeats what was not answered: every request may be."""

    def __init__(self, folder):
        self.folder = folder
        self.start()

    def start(self):
        """Start it; it goes on where it was."""
        words = [sys.executable, "-m", "omdpd", "serve", str(self.folder), "--port", "0"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)/", line)[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def end(self, how):
        """Kill it, or ask it to stop."""
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()
        self.connection.close()

    def ask(self, method, path, **said):
        """What is answered to a request."""
        body = json.dumps(said) if method == "POST" else None
        self.connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(json.loads(content)["error"])
        return json.loads(content) if answer.getheader("Content-Type") == "application/json" else content.decode()


def route(service, rng, id, down):
    """Try to solve one request; what is to be told of it later: its steps, and how it ended."""
    kind, steps, solved = rng.choice(KINDS), [], False
    allowed = [name != down for name in MODELS]
    service.ask("POST", "/episodes", id=id, allowed=allowed)
    for attempt in range(ATTEMPTS):
        state = state_of(kind, attempt, attempt > 0)
        action = service.ask("POST", f"/episodes/{id}/act", state=state, step=attempt)["action"]
        solved = rng.random() < SOLVES[kind][action]
        steps.append({"step": attempt, "reward": float(solved), "cost": list(MODELS.values())[action]})
        if solved:
            break
    return id, steps, {"absorbed": DONE} if len(steps) < ATTEMPTS else {}


def tell(service, late):
    """The bill and the verdict of a request that was tried some time ago."""
    id, steps, end = late
    service.ask("POST", f"/episodes/{id}/tell", steps=steps)
    service.ask("POST", f"/episodes/{id}/end", **end)


def main(folder, n=600, seed=0):
    """Route n requests; the status of the session at the end, and how many were told before the kill."""
    (folder / "session.toml").write_text(SESSION)
    rng, late, told = random.Random(seed), [], 0
    service = Service(folder)
    for k in range(n):
        down = "large" if k % 100 >= 90 else None
        late.append(route(service, rng, f"request-{k}", down))
        while len(late) > 20:  # verdicts come late, in any order, and some twice
            chosen = late.pop(rng.randrange(len(late)))
            for _ in range(rng.choice((1, 1, 2))):
                tell(service, chosen)
            told += 1
        if k == n // 2:
            service.end(signal.SIGKILL)
            service.start()
            before = service.ask("GET", "/status")
            assert (before["ended"], before["open"]) == (told, len(late)), "something acknowledged was lost"
    for each in late:
        tell(service, each)
    status, page = service.ask("GET", "/status"), service.ask("GET", "/")
    service.end(signal.SIGTERM)
    assert "<main" in page
    return status


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found = main(Path(place))
    days = [sum(each["costs"][0] for each in found["recent"][i : i + DAY]) for i in (0, DAY)]
    solved = sum(each["reward"] for each in found["recent"]) / len(found["recent"])
    print(f"{found['ended']} requests; of the last {2 * DAY}, {100 * solved:.0f} % were solved")
    print(f"the last two days cost {days[0]:.0f} and {days[1]:.0f} cents, of {DAY * BUDGET:.0f} each")
    print(found["belief"]["words"])
