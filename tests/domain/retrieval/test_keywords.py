"""The keywords that a message is recalled by."""

from __future__ import annotations

from datetime import UTC, datetime

from reverie.domain.retrieval.question_parsing import (
    MAX_KEYWORDS,
    MAX_QUERY_CHARS,
    extract_keywords,
    extract_query,
    parse_question,
)
from reverie.domain.text.memory_fence import CLOSE_TAG, OPEN_TAG

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_names_are_kept_whole_and_common_words_dropped() -> None:
    text = "Why does getUserById in src/auth.ts fail with `no route`, please? 连接池"
    found = extract_keywords(text, parse_question(text, NOW))
    assert found[:3] == ["src/auth.ts", "getUserById", "no route"]
    assert set(found[3:]) == {"fail", "连接", "接池"}
    flood = " ".join(f"word{n}" for n in range(500))
    assert len(extract_keywords(flood, parse_question(flood, NOW))) == MAX_KEYWORDS
    assert extract_keywords("?!", parse_question("?!", NOW)) == []


def test_recalled_memory_and_the_middle_of_a_long_message_are_not_part_of_the_query() -> None:
    block = f"{OPEN_TAG}\nold\n{CLOSE_TAG}"
    assert extract_query(f"{block}\nWhy is it slow?") == "Why is it slow?"
    assert extract_query(block) == ""
    long = extract_query("begin " + "x" * 50_000 + " end")
    assert len(long) == MAX_QUERY_CHARS + 1
    assert (long[:5], long[-3:]) == ("begin", "end")
