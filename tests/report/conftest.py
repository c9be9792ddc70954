"""Studies to look at, and a real browser to look with."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from omdpd import CMDP, save_problem
from omdpd.experiments.files import pinned
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import Experiment
from tests.references.named import LEARNERS, NATURES, WORLDS
from tests.references.studies import play

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
# As root, without a screen, and without the requests that a browser makes for itself.
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the page is not tested: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("the page is not tested: there is no chromium here (make browser)")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


# How long a browser may take for anything, in milliseconds: only so that a fault does not last for ever.
PATIENCE = 3_600_000


class Tab:
    """A page that notes what goes wrong in it, and every address it asks for."""

    def __init__(self, browser, **settings):
        self.context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | settings))
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.faults, self.asked = [], []
        self.page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: self.faults.append(f"dialog {dialog.message}"))

    def open(self, address):
        """Open an address and wait until everything is drawn."""
        self.page.goto(str(address))
        self.settle()
        return self.page

    def settle(self):
        self.page.wait_for_selector("main[data-ready=yes]")

    def picture(self, section):
        """What a section shows."""
        return self.page.evaluate(f"document.querySelector('#{section} .body').innerHTML")


@pytest.fixture
def tab(browser):
    """A tab without a network: a file is all it can open."""
    made = Tab(browser, offline=True, accept_downloads=True)
    yield made
    made.context.close()


@pytest.fixture
def new_tab(browser):
    """Tabs with settings of one's own."""
    opened = []

    def make(**settings):
        opened.append(Tab(browser, **settings))
        return opened[-1]

    yield make
    for each in opened:
        each.context.close()


@pytest.fixture(scope="session")
def study_folder(tmp_path_factory):
    """Two natures (one without a safe policy), three learners, three seeds."""
    experiment = Experiment(
        (WORLDS["random_dirichlet"](n_states=3, n_actions=2, horizon=3),),
        (NATURES["noisy"](), NATURES["independent"]()),
        (LEARNERS["ProximalOMDPD.cautious"](), LEARNERS["SinhaVaze"](), LEARNERS["Uniform"]()),
        episodes=60,
        seeds=3,
    )
    return play(experiment, tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def grid_folder(tmp_path_factory):
    """A world with a map."""
    learners = (LEARNERS["ProximalOMDPD.cautious"](stationary=True), LEARNERS["Uniform"]())
    experiment = Experiment((WORLDS["grid"](),), (NATURES["fixed"](),), learners, episodes=40, seeds=1)
    return play(experiment, tmp_path_factory.mktemp("grid"))


@pytest.fixture(scope="session")
def infeasible_folder(tmp_path_factory):
    """A problem whose budget nobody can meet."""
    folder = tmp_path_factory.mktemp("infeasible")
    transition = np.full((2, 2, 2), 0.5)
    cmdp = CMDP.from_arrays(transition, [[0.0, 1.0]] * 2, [[0.5, 0.9]] * 2, budget=0.6, horizon=3)
    save_problem(cmdp, folder / "hard.npz")
    world = pinned(Registry.installed().spec("worlds", "file", {"path": "hard.npz"}), folder)
    learners = (LEARNERS["ProximalOMDPD.cautious"](), LEARNERS["Uniform"]())
    return play(Experiment((world,), (NATURES["fixed"](),), learners, episodes=20, seeds=2), folder / "out")
