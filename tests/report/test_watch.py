"""The live page in a real browser, served by the real command, while runs commit, fail and go on."""

import http.client
import json
import re
import shutil
import socket
import threading
import time
from contextlib import suppress

import pytest

from omdpd.report.study import Study
from omdpd.storage.manifest import Commit
from omdpd.storage.run_folder import RunFolder
from tests.references.real_commands import PATIENCE, end_all, start, start_program
from tests.report.test_study import runs_of

pytest.importorskip("starlette", reason="the live page is not tested: pip install starlette uvicorn")
pytest.importorskip("uvicorn", reason="the live page is not tested: pip install starlette uvicorn")

import uvicorn

from omdpd.cli.report import watch
from omdpd.problem.arrays import InvalidInputError
from omdpd.report import connections, server
from omdpd.report.server import LOOK_EVERY, Feed  # which needs both


@pytest.fixture(autouse=True)
def nothing_is_left_running():
    yield
    end_all()


def serve(folder, *words, port=0):
    """`omdpd watch`: its process, and the address that it printed."""
    process = start("watch", folder, "--port", port, *words)
    line = process.stdout.readline()
    found = re.search(r"at (http://\S+)", line)
    assert found, line
    return process, found[1]


def ask(address, path="/", **headers):
    """The status and the headers of an answer."""
    place = address.removeprefix("http://").split("/")[0]
    connection = http.client.HTTPConnection(place, timeout=PATIENCE)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    status, told = answer.status, dict(answer.getheaders())
    connection.close()
    return status, told


def unfinished_copy(study_folder, folder):
    """The study as if one of its runs had stopped on the way: the run, and the whole of what it committed."""
    shutil.copytree(study_folder, folder)
    run = runs_of(folder)[0]
    record = RunFolder(run, run.name)
    whole = record.rows(), record.values(), record.last_commit()
    (run / "summary.json").unlink()
    (run / "commit.json").unlink()
    write_commit(run, whole, 11)
    return run, whole


def write_commit(run, whole, episodes):
    """The next commit of the run, up to some episode."""
    rows, values, last = whole
    record = RunFolder(run, run.name)
    before = record.episodes
    part = {name: column[before:episodes] for name, column in rows.items()}
    record.commit(part, values[before:episodes], Commit(episodes, last.tree, last.arrays))


def row_of(page, run):
    return page.locator("#progress tbody tr", has_text=run.name).inner_text()


def wait_for(page, text):
    page.wait_for_function("(t) => document.body.innerText.includes(t)", arg=text)


def test_a_new_episode_count_is_sent_with_the_next_look_and_looks_are_a_second_apart(study_folder, tmp_path):
    """So that a page shows it within three seconds, if the machine is not busy with something else."""
    run, whole = unfinished_copy(study_folder, tmp_path / "live")
    feed = Feed(Study(tmp_path / "live", live=True))
    feed.look()
    _, version = feed.since(0)
    for episodes in (23, 37):
        write_commit(run, whole, episodes)
        feed.look()
        sent, version = feed.since(version)
        (row,) = (row for row in json.loads(sent["progress"])["runs"] if row["run"] == run.name)
        assert row["k"] == episodes
    assert LOOK_EVERY <= 1.0


def test_damage_to_a_finished_run_is_told_with_the_next_look(study_folder, tmp_path):
    shutil.copytree(study_folder, tmp_path / "live")
    run = runs_of(tmp_path / "live")[0]
    feed = Feed(Study(tmp_path / "live", live=True))
    feed.look()
    while feed.work():
        pass
    _, version = feed.since(0)
    rows = next(iter(run.glob("rows-*")))
    rows.write_bytes(rows.read_bytes()[:-1] + b"x")
    feed.look()
    while feed.work():
        pass
    sent, _ = feed.since(version)
    (row,) = (row for row in json.loads(sent["progress"])["runs"] if row["run"] == run.name)
    assert row["state"] == "damaged"
    groups = [json.loads(text) for name, text in sent.items() if name.startswith("group-")]
    assert [(group["damaged"], group["n_mean"]) for group in groups] == [([run.name], 2)]
    assert "comparison" in sent
    shutil.rmtree(run)
    feed.look()
    rows = {row["run"]: row["state"] for row in json.loads(feed.texts["progress"])["runs"]}
    assert rows[run.name] == "waiting", "the experiment still asks for it"


def test_a_name_that_is_no_folder_is_refused_with_the_one_that_was_meant(study_folder, tmp_path):
    shutil.copytree(study_folder, tmp_path / "results")
    for name in ("reslts", "."):
        with pytest.raises(InvalidInputError, match=r"holds no results: .*; --wait waits for it") as told:
            watch(tmp_path / name, 0, "127.0.0.1")
        assert ("did you mean 'results'?" in str(told.value)) == (name == "reslts")


@pytest.fixture
def bounded(study_folder, monkeypatch):
    """A server of at most two connections, and a function that connects to it."""
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 2)
    config = uvicorn.Config(
        server.application(study_folder, hosts=["127.0.0.1"]), http=connections.fastest(), log_level="critical",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    running, opened = uvicorn.Server(config), []
    with connections.listening("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()

        def connect(sent):
            opened.append(socket.create_connection(listener.getsockname(), timeout=PATIENCE))
            opened[-1].sendall(sent)
            return opened[-1]

        yield connect, running
        for each in opened:
            each.close()
        running.should_exit = True
        thread.join()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_a_connection_that_does_not_say_what_it_wants_is_closed(bounded, sent, monkeypatch):
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.1)
    with suppress(ConnectionError):  # closed as well
        assert bounded[0](sent).recv(1) == b""


def test_a_viewer_stays_connected_and_one_too_many_is_turned_away(bounded):
    connect, running = bounded
    ask = b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    viewers = [connect(ask), connect(ask)]
    assert all(viewer.recv(12) == b"HTTP/1.1 200" for viewer in viewers)
    assert all(each.late is None for each in running.server_state.connections), "no clock runs against a viewer"
    assert connect(b"").recv(12) == b"HTTP/1.1 503"


def test_a_head_without_an_end_is_refused(bounded):
    said = bounded[0](b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (connections.MAX_HEAD // 4)).recv(12)
    assert said.startswith(b"HTTP/1.1 4")


def test_somebody_who_takes_no_answer_is_let_go(bounded, monkeypatch):
    monkeypatch.setattr(connections, "TAKE_SECONDS", 0.1)
    connect, running = bounded
    connect(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1000)
    while running.server_state.total_requests == 0:
        time.sleep(0.01)
    while running.server_state.connections:
        time.sleep(0.01)
    assert running.server_state.total_requests < 1000


def test_a_new_episode_count_is_shown_without_reloading(new_tab, study_folder, tmp_path):
    run, whole = unfinished_copy(study_folder, tmp_path / "live")
    _, address = serve(tmp_path / "live")
    tab = new_tab()
    page = tab.open(address)
    page.evaluate("window.here = true")
    assert "11 / 60" in row_of(page, run)
    for episodes in (23, 37):
        write_commit(run, whole, episodes)
        wait_for(page, f"{episodes} / 60")
    assert page.evaluate("window.here") is True
    assert tab.faults == []
    assert {url.split("/")[2] for url in tab.asked if url.startswith("http")} == {address.split("/")[2]}


def test_the_page_survives_a_restart_of_the_server_and_the_failure_of_a_run(new_tab, study_folder, tmp_path):
    run, whole = unfinished_copy(study_folder, tmp_path / "live")
    process, address = serve(tmp_path / "live")
    tab = new_tab()
    page = tab.open(address)
    process.terminate()
    process.wait(timeout=PATIENCE)
    wait_for(page, "not connected")
    serve(tmp_path / "live", port=int(address.split(":")[2].strip("/")))
    write_commit(run, whole, 31)
    wait_for(page, "31 / 60")
    wait_for(page, "live ·")
    RunFolder(run, run.name).fail({"error": "ValueError: <b>it broke</b>", "traceback": "line 1"})
    wait_for(page, "1 failed")
    page.click("details.error summary")
    assert "<b>it broke</b>" in page.inner_text("details.error")
    # A server that is away is the browser's own complaint, not the page's.
    assert [fault for fault in tab.faults if "ERR_" not in fault] == []


def test_the_live_page_draws_what_the_report_draws(new_tab, study_folder):
    _, address = serve(study_folder)
    tab = new_tab()
    page = tab.open(address)
    for name in ("violation", "regret", "bursts", "plane", "policy", "comparison"):
        page.wait_for_selector(f"figure[data-figure={name}]")
    assert page.locator("text=could not be drawn").count() == 0
    assert tab.faults == []


def test_a_folder_that_is_not_there_yet_is_waited_for(new_tab, study_folder, tmp_path):
    _, address = serve(tmp_path / "later", "--wait")
    tab = new_tab()
    page = tab.open(address)
    assert "No run has started yet" in page.inner_text("#progress")
    assert not (tmp_path / "later").exists()
    shutil.copytree(study_folder, tmp_path / "later")
    wait_for(page, "18 runs: 18 finished")
    wait_for(page, "best safe value")
    page.wait_for_selector("figure[data-figure=violation] svg")
    assert tab.faults == []


def test_only_known_names_of_the_machine_are_served_and_nothing_can_be_changed(study_folder):
    _, address = serve(study_folder)
    assert ask(address)[0] == 200
    assert ask(address, Host="evil.example")[0] == 421
    assert ask(address, "/events", Host="evil.example:80")[0] == 421
    assert ask(address, "/../../etc/passwd")[0] == 404
    told = ask(address)[1]
    policy = {name.lower(): value for name, value in told.items()}["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src 'self'" in policy
    connection = http.client.HTTPConnection(address.removeprefix("http://").strip("/"), timeout=PATIENCE)
    connection.request("POST", "/", body=b"x")
    assert connection.getresponse().status == 405
    connection.close()


def test_another_address_needs_a_flag_and_a_token(study_folder):
    process = start("watch", study_folder, "--address", "0.0.0.0", "--port", 0)
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "say --public if that is wanted" in told
    _, address = serve(study_folder, "--address", "0.0.0.0", "--public", "--name", "lab.example")
    place, token = address.rsplit("/", 1)
    local = f"http://127.0.0.1:{place.rsplit(':', 1)[1]}"
    assert ask(local)[0] == 403
    assert ask(local, "/?token=wrong")[0] == 403
    assert ask(local, "/events?token=wrong")[0] == 403
    assert ask(local, "/" + token)[0] == 200
    assert ask(local, "/" + token, Host="lab.example")[0] == 200
    assert ask(local, "/" + token, Host="evil.example")[0] == 421


def test_a_port_that_is_taken_is_refused_with_a_sentence(study_folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start("watch", study_folder, "--port", taken.getsockname()[1])
        told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert told.startswith("omdpd: cannot listen at 127.0.0.1, port")


def listen(address, until, listening, seen, i):
    """One viewer without a browser: reads events until it has met a text."""
    place = address.removeprefix("http://").strip("/")
    connection = http.client.HTTPConnection(place, timeout=PATIENCE)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    listening[i].set()
    while (line := answer.readline()) and until not in line:
        pass
    seen[i] = bool(line)
    connection.close()


def test_twenty_viewers_see_a_commit(study_folder, tmp_path):
    run, whole = unfinished_copy(study_folder, tmp_path / "live")
    _, address = serve(tmp_path / "live")
    listening, seen = [threading.Event() for _ in range(20)], [False] * 20
    viewers = [threading.Thread(target=listen, args=(address, b'"k":47,', listening, seen, i)) for i in range(20)]
    for viewer in viewers:
        viewer.start()
    assert all(each.wait(PATIENCE) for each in listening)
    write_commit(run, whole, 47)
    for viewer in viewers:
        viewer.join(PATIENCE)
    assert all(seen)


def test_without_the_extra_packages_the_command_says_what_to_install(study_folder):
    import sys

    script = (
        "import sys; sys.modules['starlette'] = None; sys.modules['uvicorn'] = None\n"
        "sys.argv = ['omdpd', 'watch', sys.argv[1]]\n"
        "from omdpd.cli.main import main; main()"
    )
    process = start_program([sys.executable, "-c", script, study_folder])
    told, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert "pip install starlette uvicorn" in told
