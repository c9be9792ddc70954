"""The JSON schema of an experiment's file, from the structs that read it: editors complete and check TOML with it."""

from __future__ import annotations

from typing import Any

import msgspec

from omdpd.experiments.files import Rest
from omdpd.experiments.registry import Registry
from omdpd.experiments.spec import KINDS, Kind

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Settings of earlier versions: files that have them are read, and nobody is offered them.
NOT_OFFERED = {"layout"}


def experiment_schema(registry: Registry) -> dict[str, Any]:
    """The schema of an experiment whose names are those of a registry.

    A setting may be what its factory takes or a list of such values, which is a grid.
    """
    parts: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    for kind in KINDS:
        definitions = _parts(registry, kind)
        parts |= definitions
        choices = [{"$ref": f"#/$defs/{name}"} for name in definitions]
        properties[kind] = {"type": "array", "minItems": 1, "items": {"anyOf": choices}}
    properties["learners"] = {"anyOf": [properties["learners"], {"const": "all"}]}
    (reference, *_), whole = msgspec.json.schema_components([Rest], ref_template="{name}")
    rest = whole[reference["$ref"]]
    return {
        "$schema": DIALECT,
        "title": "An experiment of omdpd",
        "description": "Every world with every nature, learner and seed; a setting that is a list is a grid.",
        "type": "object",
        "properties": rest["properties"] | properties,
        "required": [*rest.get("required", ()), *KINDS],
        "additionalProperties": False,
        "$defs": parts,
    }


def _parts(registry: Registry, kind: Kind) -> dict[str, Any]:
    """The schema of every name of a kind, as a table with that name."""
    found = {}
    for name, made in registry.types(kind):
        (reference, *_), whole = msgspec.json.schema_components([made], ref_template="{name}")
        table = whole[reference["$ref"]]
        table["title"] = name
        table["properties"] = {
            key: value if key == "name" else _or_grid(value)
            for key, value in table["properties"].items()
            if key not in NOT_OFFERED
        }
        found[f"{kind}.{name}"] = table
    return found


def _or_grid(value: dict[str, Any]) -> dict[str, Any]:
    """A value, or a list of such values; what describes the value stays at the top."""
    told: dict[str, Any] = {key: value[key] for key in ("default", "description") if key in value}
    plain = {key: item for key, item in value.items() if key not in told}
    return {"anyOf": [plain, {"type": "array", "minItems": 1, "items": plain}], **told}
