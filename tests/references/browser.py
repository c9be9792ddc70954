"""A real browser to look at pages with; one for all tests of a process, since two cannot be driven at a time."""

import shutil

import pytest

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
