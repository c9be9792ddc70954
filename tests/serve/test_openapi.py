"""The OpenAPI document: what it names is there, its schemas are schemas, and answers are what it says."""

import json
import re

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="the server is not tested: pip install uvicorn")
pytest.importorskip("jsonschema", reason="the document is not checked: pip install jsonschema")

import jsonschema

from omdpd import Session
from omdpd.serve.routes import ROUTES
from tests.serve.asking import asking
from tests.serve.test_answers import SETTING, learner, play


@pytest.fixture(scope="module")
def ask():
    with asking(Session(learner(), SETTING)) as made:
        play(made, "before", np.random.default_rng(0))
        yield made


@pytest.fixture(scope="module")
def document(ask):
    status, found = ask("GET", "/openapi.json")
    assert status == 200
    return found


def operations(document):
    for path, each in document["paths"].items():
        for method, operation in each.items():
            yield path, method, operation


def test_it_has_every_route_twice_and_nothing_else(document):
    found = {(method.upper(), path) for path, method, _ in operations(document)}
    assert found == {(r.method, prefix + r.path) for r in ROUTES for prefix in ("", "/sessions/{session}")}
    assert document["openapi"].startswith("3.1")
    assert set(document["info"]) >= {"title", "version"}


def test_operations_have_names_of_their_own_and_declare_what_their_paths_hold(document):
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for path, method, operation in operations(document):
        declared = {each["name"] for each in operation["parameters"] if each["in"] == "path" and each["required"]}
        assert declared == set(re.findall(r"\{(\w+)\}", path))
        assert operation["summary"].endswith(".") or operation["summary"].endswith(":")
        assert ("requestBody" in operation) == (method == "post")
        assert all(each["description"] for each in operation["responses"].values())


def test_references_lead_somewhere_and_schemas_are_schemas(document):
    text = json.dumps(document)
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', text)):
        place = document
        for part in reference.split("/"):
            place = place[part]
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


SAID = {
    "/episodes": [{"state": 1, "policy": True}, {"id": "x"}],
    "/episodes/{id}/act": [{"state": 1, "step": 0}],
    "/episodes/{id}/tell": [{"steps": [{"step": 0, "reward": 0.5, "cost": [1.0]}]}],
    "/episodes/{id}/end": [{"cut": True}],
    "/budget": [{"budget": 4.0}],
    "/rollback": [{"to": None}],
}


def test_answers_and_refusals_are_what_it_says(ask, document):
    for path, method, operation in operations(document):
        if path.startswith("/sessions"):
            continue
        for said in SAID.get(path, [None]):
            place = path.replace("{id}", "x")
            status, told = ask(method.upper(), place, said)
            expected = {409} if method == "delete" else {200}
            assert status in expected, (path, told)
            check(document, operation, status, told)
            if said is not None:
                check(document, operation, *ask(method.upper(), place, {"unknown": 1}))


def check(document, operation, status, told):
    schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(told)
