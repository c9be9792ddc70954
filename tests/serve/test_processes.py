"""The real server as a process: killed under load, stopped in order, slow clients, many clients at once."""

import re
import socket

import pytest

pytest.importorskip("uvicorn", reason="the server is not tested: pip install uvicorn")

from benchmarks.serving import Server, asked, drive, episodes, kills, made, order

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


def test_the_page_shows_what_is_played_and_that_the_server_is_gone(new_tab, tmp_path):
    import random

    server = Server(made(tmp_path / "shop"))
    try:
        drive(server.place, [episodes(0, random.Random(0), n=12)])
        tab = new_tab()
        tab.page.goto("http://{}:{}/".format(*server.place))
        tab.page.wait_for_selector("section.card")
        text = tab.page.inner_text("main")
        assert "shop: ProximalOMDPD" in text
        assert "Alarms that are quiet" in text
        assert tab.page.locator("svg").count() == 2
        drive(server.place, [episodes(1, random.Random(1), n=1)])
        tab.page.wait_for_function("() => /episodes\\s+13\\b/.test(document.body.innerText)")
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
