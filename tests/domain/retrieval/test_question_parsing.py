"""Intent, time, names, language and keywords read from a question."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.retrieval.exact_name_match import contains_name
from reverie.domain.retrieval.question_parsing import (
    MAX_KEYWORDS,
    MAX_QUERY_CHARS,
    QuestionIntent,
    detect_intent,
    extract_keywords,
    extract_query,
    parse_question,
)
from reverie.domain.text.memory_fence import CLOSE_TAG, OPEN_TAG
from reverie.domain.text.time_expressions import parse_time_range

NOW = datetime(2026, 11, 21, 15, 30, tzinfo=UTC)  # a Saturday


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Why did we drop Redis?", QuestionIntent.WHY),
        ("What caused the outage in March?", QuestionIntent.WHY),
        ("What was the reason for the rollback", QuestionIntent.WHY),
        ("how come the tests fail on Windows", QuestionIntent.WHY),
        ("为什么放弃 Redis?", QuestionIntent.WHY),
        ("When was the schema split?", QuestionIntent.WHEN),
        ("What time is the release train?", QuestionIntent.WHEN),
        ("Since when do we sign images?", QuestionIntent.WHEN),
        ("连接池什么时候改的", QuestionIntent.WHEN),
        ("Who owns billing?", QuestionIntent.WHO),
        ("Whose idea was the queue?", QuestionIntent.WHO),
        ("谁负责支付", QuestionIntent.WHO),
        ("How do I run the migrations?", QuestionIntent.HOW),
        ("如何部署网关", QuestionIntent.HOW),
        ("Which database did we choose?", QuestionIntent.WHICH),
        ("哪个数据库用于计费", QuestionIntent.WHICH),
        ("What does the retry wrapper do when the upstream is down?", QuestionIntent.WHAT),
        ("How many retries are allowed?", QuestionIntent.WHAT),
        ("连接池的上限是什么", QuestionIntent.WHAT),
        ("Which date library do we use?", QuestionIntent.WHICH),
        ("What time zone do the logs use?", QuestionIntent.WHAT),
        ("What date is the release?", QuestionIntent.WHEN),
        ("On what day did we deploy?", QuestionIntent.WHEN),
        ("Which user table is sharded?", QuestionIntent.WHICH),
        ("Which team owns billing?", QuestionIntent.WHO),
        ("Which agent framework do we use?", QuestionIntent.WHICH),
        ("When the cache is full, what happens?", QuestionIntent.WHAT),
        ("When I deploy, why does it fail?", QuestionIntent.WHY),
        ("When was it, and who did it?", QuestionIntent.WHEN),
        ("部署有几点建议", QuestionIntent.GENERAL),
        ("几点开始部署?", QuestionIntent.WHEN),
        ("retry policy of the payment client", QuestionIntent.GENERAL),
        ("数据库连接池", QuestionIntent.GENERAL),
        ("", QuestionIntent.GENERAL),
    ],
)
def test_the_question_word_or_phrase_determines_the_intent(
    text: str, intent: QuestionIntent
) -> None:
    assert detect_intent(text) is intent


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("what changed yesterday", "2026-11-20", "2026-11-21"),
        ("昨天改了什么", "2026-11-20", "2026-11-21"),
        ("what did we do last week", "2026-11-09", "2026-11-16"),
        ("上周的决定", "2026-11-09", "2026-11-16"),
        ("bugs fixed last month", "2026-10-01", "2026-11-01"),
        ("decisions of last year", "2025-01-01", "2026-01-01"),
        ("where did she go on 7 May 2023", "2023-05-07", "2023-05-08"),
        ("what happened on May 7th, 2023", "2023-05-07", "2023-05-08"),
        ("who joined in December", "2025-12-01", "2026-01-01"),
        ("who joined in March", "2026-03-01", "2026-04-01"),
        ("report of 2023-05", "2023-05-01", "2023-06-01"),
        ("2024年3月5日的事故", "2024-03-05", "2024-03-06"),
        ("incidents in 2024", "2024-01-01", "2025-01-01"),
        ("what was said 3 days ago", "2026-11-18", "2026-11-19"),
        ("三天前的讨论", "2026-11-18", "2026-11-19"),
    ],
)
def test_a_time_expression_is_parsed_as_a_span_of_days(text: str, since: str, until: str) -> None:
    period = parse_time_range(text, NOW)
    assert period is not None
    assert (str(period.since.date()), str(period.until.date())) == (since, until)


@pytest.mark.parametrize(
    "text",
    [
        "may we march on?",
        "version 2.0.1 of the second plan",
        "port 2024-99 is taken",
        "the order of the day",
    ],
)
def test_text_that_only_resembles_a_time_is_no_time(text: str) -> None:
    assert parse_time_range(text, NOW) is None


def test_names_paths_and_phrases_are_extracted_from_a_question() -> None:
    reading = parse_question('Why does getUserById in src/api/users.ts say "no such tenant"?', NOW)
    assert reading.intent is QuestionIntent.WHY
    assert reading.identifiers == ("getUserById",)
    assert reading.paths == ("src/api/users.ts",)
    assert reading.phrases == ("no such tenant",)


@pytest.mark.parametrize(
    ("text", "language"),
    [("retry policy", "en"), ("连接池", "zh"), ("接続プールはどこ", "ja"), ("연결 풀", "ko")],
)
def test_the_script_determines_the_language(text: str, language: str) -> None:
    assert parse_question(text, NOW).language == language


@given(st.text(max_size=300))
def test_any_question_can_be_parsed(text: str) -> None:
    reading = parse_question(text, NOW)
    assert reading.time_range is None or reading.time_range.since < reading.time_range.until


def test_identifiers_and_adjacent_words_are_candidate_names() -> None:
    for question in ("how do we get user by id", "get_user_by_id", "getUserById"):
        names = parse_question(question, NOW).names
        for text in ("call getUserById first", "get_user_by_id(7)", "GetUserByID"):
            assert contains_name(text, names), (question, text)
        for text in ("get user by id", "getUserByIdAndTeam", "the user"):
            assert not contains_name(text, names), (question, text)
    assert parse_question("HTTP timeouts", NOW).names == ()


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
