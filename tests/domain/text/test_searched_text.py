"""A record is found by the request that it does not show."""

from __future__ import annotations

from reverie.domain.text.index_terms import memory_index_text, searched_text

RECORD = {"record": {"problem": "Exports lose rows.", "decided": ["`write()` flushes twice."]}}


def test_a_record_is_found_by_a_request_that_it_does_not_show() -> None:
    content = "`write()` flushes twice."
    assert searched_text(content, RECORD) == "Exports lose rows.\n`write()` flushes twice."
    assert "rows" in memory_index_text(None, content, (), RECORD).split()


def test_a_request_that_is_shown_counts_once() -> None:
    content = "Exports lose rows.\nDecided: `write()` flushes twice."
    assert searched_text(content, RECORD) == content


def test_what_is_no_record_is_found_by_its_text_alone() -> None:
    others: list[dict[str, object]] = [{}, {"record": None}, {"record": {"problem": 4}}]
    for metadata in others:
        assert searched_text("Rows stay.", metadata) == "Rows stay."
