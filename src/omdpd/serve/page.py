"""The live page of a server: one HTML file that asks its own server for the status, again and again."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from omdpd.report.html import filled_page, page_policy

SCRIPT = Path(__file__).parent / "page" / "session.js"


@cache
def _script() -> str:
    return SCRIPT.read_text(encoding="utf-8")


def page(title: str) -> str:
    """The page of a session, or of all of them."""
    return filled_page(title, [_script()], live=True)


def page_headers() -> tuple[tuple[bytes, bytes], ...]:
    """What a browser is told about it."""
    rules = page_policy(True, [_script()]) + "; frame-ancestors 'none'"
    return (
        (b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", rules.encode()),
        (b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"),
    )  # fmt: skip
