"""The OpenAPI document covers every route with examples; run as a module, it writes it.

`python -m tests.interfaces.test_openapi_document` writes the document that the gateway answers
with.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from pkgutil import iter_modules
from typing import Any
from unittest.mock import MagicMock

from prometheus_client import CollectorRegistry
from pydantic import BaseModel, TypeAdapter

from reverie.runtime.http.health import health_routes
from reverie.runtime.http.routes import Route, RouteTable
from reverie.runtime.observability.call_metrics import CallMetrics
from reverie.runtime.observability.metrics import PolledGauges
from reverie_services.engine import routes as engine_routes
from reverie_services.recall.routes import mcp as mcp_routes
from reverie_services.recall.routes import openapi as openapi_routes
from tests.interfaces.openapi_builder import build_openapi
from tests.interfaces.openapi_examples import QUERY_EXAMPLES, REQUEST_EXAMPLES

PATH = Path(str(files("reverie_services.recall.routes") / "openapi.json"))
SERVICES = ("ingest", "recall", "dream", "staleness")


def _tables() -> list[Route]:
    """The routes of all services; who answers them is not asked."""
    registry = CollectorRegistry()
    found = [*health_routes("recall", {}, registry, PolledGauges(registry, ()), "x")]
    found += [
        *openapi_routes.build_openapi_routes(),
        *mcp_routes.build_mcp_routes(mcp_routes.McpGateway(1.0, CallMetrics(registry, "mcp")), 1),
    ]
    found += engine_routes.routes.bind(MagicMock())
    found += engine_routes.message_routes.bind(MagicMock())
    for service in SERVICES:
        package = f"reverie_services.{service}.routes"
        for module in iter_modules(import_module(package).__path__, f"{package}."):
            if module.name not in _OTHERS:
                for name, value in vars(import_module(module.name)).items():
                    if isinstance(value, RouteTable):
                        found += value.bind(MagicMock())
                    elif name.startswith("build_") and name.endswith("_routes"):
                        found += value(MagicMock())
    return found


_OTHERS = (mcp_routes.__name__, openapi_routes.__name__)
ROUTES = _tables()


def made() -> str:
    """The document as the routes give it now."""
    return (
        json.dumps(build_openapi(ROUTES, version("reverie")), indent=1, ensure_ascii=False) + "\n"
    )


def _operations(whole: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in whole["paths"].items()
        for method, operation in methods.items()
    }


def test_the_document_is_current() -> None:
    assert PATH.read_text() == made(), "run: python -m tests.interfaces.test_openapi_document"


def test_every_route_has_one_operation_with_a_summary_of_its_own() -> None:
    whole = json.loads(made())
    operations = _operations(whole)
    assert sorted(operations) == sorted(route.name for route in ROUTES)
    ids = [one["operationId"] for one in operations.values()]
    assert len(set(ids)) == len(ids)
    assert [name for name, one in operations.items() if not one["summary"]] == []


def test_every_call_has_examples_that_its_models_take() -> None:
    for route in ROUTES:
        if route.body:
            route.body.model_validate_json(json.dumps(REQUEST_EXAMPLES[route.name]))
        if route.query and route.name in QUERY_EXAMPLES:
            route.query.model_validate(QUERY_EXAMPLES[route.name])
    names = {route.name for route in ROUTES}
    assert not ({*REQUEST_EXAMPLES, *QUERY_EXAMPLES} - names)


def test_every_answer_has_an_example_that_its_model_takes() -> None:
    operations = _operations(json.loads(made()))
    for route in ROUTES:
        content = operations[route.name]["responses"][str(route.status)]["content"]
        assert content, route.name
        assert all(one["examples"] for one in content.values())
        if route.response:
            value = content["application/json"]["examples"]["usual"]["value"]
            TypeAdapter[BaseModel](route.response).validate_json(json.dumps(value))


NO_LISTS = {
    "GET /v1/events/page": "goes on from its `place`, now or later",
    "GET /v1/agents": "those of a tenant, which a person made one by one",
    "GET /v1/groups/{id}/messages": "goes on after the number of a message",
    "GET /v1/admin/keys/{id}": "the grants of one key, at most a hundred",
    "GET /v1/context": "a block within a budget of tokens",
    "GET /v1/memories/{id}": "neighbours: those that weigh most; the subgraph has all",
    "GET /v1/memories/{id}/provenance": "the turns that one memory cites",
    "GET /v1/memories/{id}/replay": "the steps of one skill",
    "GET /v1/skills/{id}/replay": "the steps of one skill",
    "GET /v1/memories/{id}/subgraph": "a picture, bounded by depth, fan-out and limit",
    "GET /v1/models": "those that the settings name",
    "GET /v1/traces/{id}": "the reasons of one recall",
}


def test_every_list_is_paged() -> None:
    whole = json.loads(made())
    models = whole["components"]["schemas"]
    lacking = []
    for name, one in _operations(whole).items():
        content = one["responses"].get("200", {}).get("content", {})
        model = content.get("application/json", {}).get("schema", {}).get("$ref", "")
        fields = models.get(model.rpartition("/")[2], {}).get("properties", {})
        lists = [field for field, schema in fields.items() if schema.get("type") == "array"]
        if not name.startswith("GET") or not lists or name in NO_LISTS:
            continue
        asked = {parameter.get("name") for parameter in one["parameters"]}
        if "next" not in fields or not asked >= {"limit", "cursor"}:
            lacking.append(name)
    assert lacking == []


def test_every_reference_resolves() -> None:
    whole = json.loads(made())
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', made())):
        found = whole
        for part in reference.split("/"):
            found = found[part]
        assert found


def test_the_page_loads_nothing_from_elsewhere() -> None:
    page = openapi_routes.PAGE
    assert set(re.findall(r'(?:src|href|spec-url)="([^"]+)"', page)) == {
        "data:,",
        "/openapi.json",
        "/docs/redoc.js",
    }
    assert "http" not in openapi_routes.CONTENT_SECURITY_POLICY
    script = (files("reverie_services.recall.routes") / "redoc/redoc.standalone.js").read_text()
    assert f'"{openapi_routes.REDOC_VERSION}"' in script


if __name__ == "__main__":
    PATH.write_text(made())
