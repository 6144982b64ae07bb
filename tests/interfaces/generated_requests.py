"""Exercises an address with requests that Schemathesis makes from the OpenAPI document.

A test imports this when it runs: the library takes a second of every process that collects tests.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlencode

import schemathesis

# Else by the first schema, in a thread: pytest parses it, and CPython 3.11 fails where two do so.
import schemathesis.specs.openapi.schemas
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from schemathesis.config import OutputConfig, SanitizationConfig, SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok

APART = {("GET", "/v1/events"), ("GET", "/v1/groups/{id}/events"), ("POST", "/mcp")}
"""The first two never end; the last answers in its own protocol."""
UNSURE = ("positive_data_acceptance", "ignored_auth", "unsupported_method")
"""What a schema cannot say is refused with 422; the others are tested once for all calls."""
EXAMPLES = int(os.environ.get("REVERIE_TEST_EXAMPLES", "1"))
MAX_QUERY_CHARS = 6_000
BARE = SchemathesisConfig(
    output=OutputConfig(sanitization=SanitizationConfig(enabled=False)), color=False
)


def find_wrong_answers(url: str, key: str, at: str, own: set[str] | None = None) -> list[str]:
    """What is wrong with the answers at an address: of all calls, or of those of a service."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=BARE)
    checks = [one for one in CHECKS.get_all() if one.__name__ not in UNSURE]
    wrong: list[str] = []
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        method = operation.method.upper()
        if (method, operation.path) in APART:
            continue
        if own is not None and f"{method} {operation.path}" not in own:
            continue
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            wrong += _failures(operation, mode, at, key, checks)
    return wrong


def _arrives(case: Any) -> bool:
    """Whether all of a query can be sent: no empty list, and no longer than a request line."""
    query = case.query or {}
    short = len(urlencode(query, doseq=True)) < MAX_QUERY_CHARS
    return short and all(value not in ([], {}, None) for value in query.values())


def _failures(operation: Any, mode: GenerationMode, url: str, key: str, checks: Any) -> list[str]:
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case: Any) -> None:
        assume(_arrives(case))
        case.call_and_validate(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, checks=checks, timeout=20
        )

    try:
        holds()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, operation.label  # It takes nothing at all.
    except (Exception, FailureGroup) as error:
        return [f"{operation.label} ({mode.value}): {error!r}\n{error}"]
    return []
