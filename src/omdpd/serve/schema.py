"""The OpenAPI document of the server, made from its routes."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from omdpd import __version__
from omdpd.serve.routes import ROUTES, Refusal, Route

WHERE = "#/components/schemas/{name}"
# What any request may be refused with; those that say something also with the second.
REFUSALS = {
    "403": "the token is missing or wrong", "404": "there is no such episode, session or path",
    "408": "it took too long", "421": "another name of the server is meant", "429": "too many requests, or episodes",
    "503": "the session cannot be written",
}  # fmt: skip
OF_WHAT_IS_SAID = {
    "400": "what was sent is not JSON", "409": "it does not go with what was said before",
    "413": "it is too large", "415": "it is not sent as JSON", "422": "an entry is wrong",
}  # fmt: skip


def openapi(sessions: list[str]) -> dict[str, Any]:
    """The document: every route, with and without the name of a session."""
    kinds = [Refusal, *(kind for route in ROUTES for kind in (route.says, route.gets) if kind is not None)]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=WHERE)
    known = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Any] = {}
    for prefix in ("", "/sessions/{session}"):
        for route in ROUTES:
            paths.setdefault(prefix + route.path, {})[route.method.lower()] = _operation(route, prefix, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "omdpd serve", "version": __version__,
            "description": f"Sessions: {', '.join(sessions)}. One alone is also asked without its name.",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }  # fmt: skip


def _operation(route: Route, prefix: str, known: dict[Any, Any]) -> dict[str, Any]:
    names = [name for name in ("session", "id") if f"{{{name}}}" in prefix + route.path]
    words = (route.says or route.gets).__doc__ or ""
    refusals = REFUSALS | (OF_WHAT_IS_SAID if route.says or "id" in names else {})
    answers = {"200": _content(known[route.gets], (route.gets.__doc__ or "").split("\n")[0])}
    if route.path == "/policy":
        answers["304"] = {"description": "the policy is the one whose ETag was sent"}
    found: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", route.method.lower() + prefix + route.path).strip("_"),
        "summary": words.split("\n")[0],
        "parameters": [{"name": n, "in": "path", "required": True, "schema": {"type": "string"}} for n in names],
        "responses": answers | {code: _content(known[Refusal], why) for code, why in refusals.items()},
    }
    if route.says is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": known[route.says]}}}
    return found


def _content(schema: Any, words: str) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema}}}
