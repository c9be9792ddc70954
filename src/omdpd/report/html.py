"""Parts of a study to one HTML file that stands alone: its scripts, styles and numbers inside, and no request made.

The content security policy lets exactly these scripts and styles run, by their hashes, and connects to nothing (the
live page: to its own server).  Numbers and names travel as JSON and are shown as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from omdpd.storage.atomic import save_file

FOLDER = Path(__file__).parent / "page"
LIBRARIES = ("vendor/d3.min.js", "vendor/plot.min.js")
PAGE = ("draw.js", "curves.js", "maps.js", "details.js", "page.js")
PLAYER = ("draw.js", "maps.js", "player.js")


def page(parts: Mapping[str, Any] | None, title: str, scripts: Sequence[str] = PAGE) -> str:
    """The whole page; without parts it is the live one, which asks its own server for them."""
    texts = [_text(name) for name in (*LIBRARIES, *scripts)]
    data = "" if parts is None else f'<script type="application/json" id="study">{data_text(parts)}</script>'
    return filled_page(title, texts, live=parts is None, data=data)


def filled_page(title: str, texts: Sequence[str], live: bool, data: str = "") -> str:
    """A page of ours with some scripts and some data."""
    style = _text("page.css")
    filled = {
        "policy": html.escape(policy(texts, style, live)),
        "title": html.escape(title),
        "requests": "It asks its own server again and again." if live else "It makes no request.",
        "style": style,
        "data": data,
        "scripts": "\n".join(f"<script>{text}</script>" for text in texts),
    }
    before, *rest = _text("page.html").split("{{")
    return before + "".join(filled[name] + after for name, after in (piece.split("}}", 1) for piece in rest))


def write_page(parts: Mapping[str, Any], title: str, file: Path, scripts: Sequence[str] = PAGE) -> Path:
    """Write the page whole or not at all."""
    return save_file(file, page(parts, title, scripts).encode())


def policy(scripts: Sequence[str], style: str, live: bool) -> str:
    """The content security policy of a page with these scripts and this style.

    Plot adds one style of its own to every drawing; its hash is pinned beside the library.
    """
    allowed = " ".join(f"'{source(text)}'" for text in scripts)
    pins = json.loads(_text("vendor/pins.json"))
    rules = (
        "default-src 'none'", f"script-src {allowed}", f"style-src '{source(style)}' '{pins['plot_style']}'",
        "img-src data:", f"connect-src {chr(39)}{'self' if live else 'none'}{chr(39)}", "base-uri 'none'",
        "form-action 'none'",
    )  # fmt: skip
    return "; ".join(rules)


def page_policy(live: bool, texts: Sequence[str] | None = None) -> str:
    """The content security policy of the page, or of one with other scripts."""
    own = [_text(name) for name in (*LIBRARIES, *PAGE)] if texts is None else texts
    return policy(own, _text("page.css"), live)


def data_text(value: Any) -> str:
    """JSON that can stand inside a script element: it holds no `<`, so it cannot end it."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def source(text: str) -> str:
    """A script or style as a content security policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _text(name: str) -> str:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert "</script" not in text.lower(), f"{name} would end its own script element"
    return text
