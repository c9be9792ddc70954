"""The real server as a process: killed under load, stopped in order, slow clients, many clients at once."""

import re
import socket

import pytest

pytest.importorskip("uvicorn", reason="the server is not tested: pip install uvicorn")

from benchmarks.http_clients import Server, asked, drive, episodes, made, response
from benchmarks.serving_faults import kills, order

pytestmark = pytest.mark.whole


def test_nothing_acknowledged_is_lost_in_kills_under_load():
    told, lost = kills(5, seed=1)
    assert told > 0
    assert not lost


def test_delays_duplicates_and_disorder_of_many_clients_leave_the_state_of_the_journals_order():
    assert order(64, 256, seed=2) == (256, True)


def test_a_stop_answers_what_was_asked_and_the_next_start_goes_on(tmp_path):
    import random

    folder, told = made(tmp_path / "one"), []
    for k in range(2):
        server = Server(folder)
        drive(server.place, [episodes(k, random.Random(k), n=3, told=told)])
        assert server.stop() in (0, -15, 143)
        assert (folder / "snapshot.json").exists()
    assert len(told) == 12


def test_bytes_that_are_no_request_are_refused_and_a_slow_client_does_not_hold_others_up(tmp_path):
    import random

    server = Server(made(tmp_path / "one"))
    try:
        for sent in (
            b"nonsense\r\n\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"POST /episodes HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        ):
            with socket.create_connection(server.place, timeout=600.0) as line:
                line.sendall(sent)
                assert re.match(rb"HTTP/1.1 4\d\d ", line.recv(1000))
        with socket.create_connection(server.place, timeout=600.0) as slow:
            slow.sendall(b"POST /episodes HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 5\r\n")
            told = []
            drive(server.place, [episodes(0, random.Random(0), n=2, told=told)])
            assert len(told) == 4
    finally:
        server.stop()


OFFER = "host: 127.0.0.1\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAB\r\n"


def offering(path, said, offer=OFFER):
    """A request that offers to change to HTTP/2, as Java's client does."""
    head = f"POST {path} HTTP/1.1\r\n{offer}content-type: application/json\r\ncontent-length: {len(said)}\r\n\r\n"
    return head.encode() + said.encode()


def answer_to(line, sent):
    line.sendall(sent)
    data = b""
    while (found := response(data)) is None:
        data += line.recv(65536)
    return found[:2]


def test_an_offer_to_change_to_http_2_is_passed_over_and_what_it_comes_with_is_heard(tmp_path):
    server = Server(made(tmp_path / "one"))
    try:
        with socket.create_connection(server.place, timeout=600.0) as line:
            sent = offering("/episodes", '{"id": "offered", "state": 1}')
            line.sendall(sent[:30])
            status, told = answer_to(line, sent[30:])
            assert (status, told["id"]) == (200, "offered")
            assert answer_to(line, offering("/episodes/offered/act", '{"state": 2, "step": 1}'))[0] == 200
        with socket.create_connection(server.place, timeout=600.0) as line:
            assert answer_to(line, offering("/episodes", '{"id": "plain"}', "host: 127.0.0.1\r\n"))[0] == 200
            line.sendall(offering("/episodes/plain/act", '{"state": 2, "step": 0}'))
            said = line.recv(65536)
            assert said.startswith(b"HTTP/1.1 400") or b'"action":' in said
    finally:
        server.stop()


def test_what_is_said_may_be_large_and_not_too_large(tmp_path):
    server = Server(made(tmp_path / "one"))
    try:
        for size, wanted in ((500_000, 200), (2**20 + 1, 413)):
            with socket.create_connection(server.place, timeout=600.0) as line:
                sent = offering("/episodes", '{"id": "large"}'.ljust(size), "host: 127.0.0.1\r\n")
                head, _, body = sent.partition(b"\r\n\r\n")
                line.sendall(head + b"\r\n\r\n")
                assert answer_to(line, body)[0] == wanted
    finally:
        server.stop()


def test_it_serves_without_the_fast_reader_of_requests(tmp_path, monkeypatch):
    import os
    import random

    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "httptools.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "without"), os.environ.get("PYTHONPATH", "")]))
    server, told = Server(made(tmp_path / "one")), []
    try:
        drive(server.place, [episodes(0, random.Random(0), n=3, told=told)])
    finally:
        server.stop()
    assert len(told) == 6


def test_the_page_shows_what_is_played_and_that_the_server_is_gone(new_tab, tmp_path):
    import random

    server = Server(made(tmp_path / "shop"))
    try:
        drive(server.place, [episodes(0, random.Random(0), n=12)])
        tab = new_tab()
        tab.page.goto("http://{}:{}/".format(*server.place))
        tab.page.wait_for_selector("section.card")
        folded = tab.page.locator("details summary").all_inner_texts()
        assert folded[-1] == "When not to believe it"
        assert folded[0].startswith("The policy in force")
        tab.page.locator("details summary").last.click()
        shown = tab.page.locator("section.card").inner_text()
        assert "the learner's own policy after" in shown
        alarms = asked(server.place, "/sessions/shop/status")["alarms"]
        assert all(alarm["words"] in shown for alarm in alarms)
        text = tab.page.inner_text("main")
        assert "shop: ProximalOMDPD" in text
        assert "Alarms that are quiet" in text
        assert tab.page.locator("svg").count() == 2
        drive(server.place, [episodes(1, random.Random(1), n=1)])
        tab.page.wait_for_function("() => /episodes\\s+13\\b/.test(document.body.innerText)")
        assert tab.page.locator("details").last.get_attribute("open") is not None  # as it was left
        assert not tab.faults
        assert all("{}:{}/".format(*server.place) in address for address in tab.asked)
        looked = Server(tmp_path / "shop", command=("session", "--live"))
        try:
            assert asked(looked.place, "/sessions/shop/status")["ended"] == 13
            assert "only shows" in asked(looked.place, "/sessions/shop/policy")["error"]
        finally:
            looked.stop()
    finally:
        server.stop()
    tab.page.wait_for_selector("#fault")
