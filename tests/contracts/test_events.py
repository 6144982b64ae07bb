"""Bus event bodies, headers and subjects."""

from __future__ import annotations

import json
import re
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from reverie.contracts.events import (
    BULK_HEADERS,
    MEMORY_EVENTS,
    BusEvent,
    GitEvent,
    MemoryEvent,
    build_outgoing_event,
    dream_subject,
    git_subject,
    memory_subject,
)

EVENTS: list[tuple[type[BusEvent], dict[str, object]]] = [
    (MemoryEvent, {"id": str(uuid4()), "version": 3}),
    (GitEvent, {"id": str(uuid4()), "project": "p", "memory": None}),
]


@pytest.mark.parametrize(("event", "body"), EVENTS)
def test_an_event_is_read_as_it_was_sent_and_by_its_version_and_tenant(
    event: type[BusEvent], body: dict[str, object]
) -> None:
    sent = build_outgoing_event(7, "memory.t.remembered", body, {"traceparent": "x"})
    read = event.model_validate_json(sent.payload)
    assert read.model_dump(mode="json") == {**body, "v": 1, "tenant": 7}
    assert sent.headers == {"traceparent": "x"}
    of_a_later_release = {**body, "v": 1, "tenant": 7, "new_field": [1]}
    assert event.model_validate(of_a_later_release).tenant == 7
    for wrong in ({**body, "v": 2, "tenant": 7}, body, {"tenant": 7}):
        with pytest.raises(ValidationError):
            event.model_validate(wrong)


def test_a_body_cannot_name_another_tenant() -> None:
    sent = build_outgoing_event(7, "s", {"tenant": 8, "v": 2, "scope": "global"}, {})
    assert json.loads(sent.payload) == {"tenant": 7, "v": 1, "scope": "global"}


def test_an_event_keeps_the_id_of_its_row_or_gets_a_new_one() -> None:
    row = uuid4()
    assert build_outgoing_event(1, "s", {}, {}, row).id == row
    assert build_outgoing_event(1, "s", {}, {}).id != build_outgoing_event(1, "s", {}, {}).id


def test_the_tenant_is_the_second_token_of_a_subject() -> None:
    assert memory_subject("acme", "remembered") == "memory.acme.remembered"
    assert memory_subject("acme", "remembered", BULK_HEADERS) == "memory.acme.bulk.remembered"
    assert memory_subject("acme", "edited", BULK_HEADERS) == "memory.acme.edited"
    assert git_subject("acme", "shop") == "git.acme.shop.changed"
    assert dream_subject("acme", "global").split(".")[1] == "acme"


@given(st.text(max_size=60), st.text(max_size=60))
def test_scopes_have_distinct_subjects(one: str, other: str) -> None:
    assert (dream_subject("t", one) == dream_subject("t", other)) == (one == other)


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=4))
def test_changing_a_copy_of_the_headers_changes_nothing(headers: dict[str, str]) -> None:
    sent = build_outgoing_event(1, "s", {}, headers)
    before = dict(headers)
    headers["late"] = "x"
    assert sent.headers == before


def test_every_published_event_has_a_name_that_clients_may_filter_by() -> None:
    root = Path(__file__).parents[2]
    files = [*root.glob("libs/reverie/store/**/*"), *root.glob("services/reverie_services/**/*.py")]
    text = "\n".join(one.read_text() for one in files if one.suffix in {".py", ".sql"})
    told = set(re.findall(r"p_tenant_name \|\| '\.(\w+)'", text))
    told |= set(re.findall(r"memory_subject\([\w.\[\]]+, \"(\w+)\"\)", text))
    told |= set(re.findall(r"self\._(?:change|edit)\(call, [^()]*, \"(\w+)\"\)", text))
    assert len(told) > 8
    assert told <= set(MEMORY_EVENTS)
