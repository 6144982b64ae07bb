"""The pages of docs/reference are what the code gives, and lack nothing."""

from __future__ import annotations

import re

import pytest

from reverie.contracts.problems import GRPC_STATUS, HTTP_STATUS, PROBLEM_TITLES
from reverie.domain.core.errors import ReverieError
from reverie.runtime.settings.loading import describe_settings
from tests.docs.reference import FOLDER, ROOT, reference_pages, subclasses_of

HAND_WRITTEN = [
    path for path in sorted(ROOT.glob("docs/**/*.md")) if path.parent.name != "reference"
]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The pages as the code gives them; not read where tests are merely collected."""
    return reference_pages()


def test_every_generated_page_is_current(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        assert (FOLDER / name).read_text() == page, f"{name}: run make generate"


def test_the_folder_holds_generated_pages_alone(pages: dict[str, str]) -> None:
    assert {path.name for path in FOLDER.iterdir()} == pages.keys()


def test_every_error_has_a_code_with_a_status_everywhere() -> None:
    assert {error.code for error in subclasses_of(ReverieError)} <= HTTP_STATUS.keys()
    assert HTTP_STATUS.keys() == PROBLEM_TITLES.keys() == GRPC_STATUS.keys()


def test_every_metric_of_the_dashboards_and_alerts_is_listed(pages: dict[str, str]) -> None:
    boards = [*ROOT.glob("deploy/dashboards/*.json"), ROOT / "deploy" / "alerts" / "reverie.yml"]
    text = " ".join(path.read_text() for path in boards)
    used = {
        re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"reverie_[a-z_]+", text)
    }
    assert {name for name in used if f"`{name}`" not in pages["metrics.md"]} == set()


SETTING_PREFIXES = (
    *("audit", "body", "database", "dream", "embedding", "grpc", "import", "ingest", "key", "llm"),
    *("log", "maintenance", "mcp", "model", "nats", "oidc", "otlp", "outbox", "pool", "postgres"),
    *("query", "rate", "recall", "replica", "request", "rerank", "review", "scheduler"),
    *("shutdown", "tenant", "tls", "trace", "turn", "vault"),
)
OTHER_NAMES = frozenset(
    {
        *("dream_job", "recall_context", "trace_id", "vault_delete", "vault_get", "vault_put"),
        *("llm_call_failed", "model_missing", "request_failed"),
    }
)
"""Names of the same form that belong to tables, prompts, fields, operations and log events."""


def test_every_setting_that_a_page_names_exists() -> None:
    settings = {setting.name for setting in describe_settings()}
    pattern = rf"`((?:{'|'.join(SETTING_PREFIXES)})_[a-z_]+)(?:`|[ =])"
    for page in HAND_WRITTEN:
        named = set(re.findall(pattern, page.read_text()))
        assert named - OTHER_NAMES - settings == set(), page
