"""Terms of texts and questions for the full-text index."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.domain.text.index_terms import (
    MAX_JOINED_NAMES,
    MAX_TEXT_BYTES,
    MAX_WORD_BYTES,
    expand_query_text,
    index_text,
    memory_index_text,
    query_text,
    searched_text,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("getUserById", "get user by id getuserbyid"),
        ("HTTPServerError", "http server error httpservererror"),
        ("max_retry_count", "max retry count maxretrycount"),
        ("src/middleware/auth.ts", "src middleware auth ts srcmiddlewareauthts authts"),
        ("well-known", "well known wellknown"),
        ("v1.25.6", "v1 25 6 v1x25x6"),
        ("bob@example.com", "bob example com bobexamplecom"),
        ("Done. Next!", "done next"),
        ("数据库连接池", "数据 据库 库连 连接 接池 数 据 库 连 接 池"),
        ("什么是缓存", "是缓 缓存 缓 存"),
        ("커넥션 풀", "커넥 넥션 풀"),
        ("キャッシュを消す", "キャ ャッ ッシ シュ ュを を消 消す 消"),
        ("池", "池"),
        ("用户ID不存在", "用户 用 户 id 不存 存在 存"),
        ("ＦＵＬＬ width", "full width"),
        ("a\x00b", "a b"),
        ("", ""),
    ],
)
def test_a_text_is_indexed_by_words_their_parts_and_compounds(text: str, words: str) -> None:
    assert index_text(text) == words


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("get user by id", "the function getUserById"),
        ("auth middleware", "see src/middleware/auth.ts"),
        ("auth.ts", "see src/middleware/auth.ts"),
        ("连接池", "关于数据库连接池的配置"),
        ("max retry", "MAX_RETRY = 3"),
        ("GETUSERBYID", "getUserById"),
        ("資料庫連線", "数据库的连接 数据库连接"),
        ("数据库", "資料庫連線池的上限"),
    ],
)
def test_every_query_word_is_in_the_index_text(question: str, text: str) -> None:
    assert set(query_text(question).split()) <= set(index_text(text).split())


def test_a_query_names_each_word_once() -> None:
    assert query_text("auth auth Auth") == "auth"


def test_a_query_includes_compound_names_of_adjacent_words() -> None:
    asked = expand_query_text("where is get user by id?").split()
    assert set(index_text("getUserById").split()) <= set(asked)
    assert {"whereis", "userbyid", "byid"} <= set(asked)
    assert "whereisgetuserby" not in asked
    assert expand_query_text("src/auth.ts 连接池") == query_text("src/auth.ts 连接池")


def test_a_long_query_adds_a_bounded_number_of_compounds() -> None:
    query = " ".join(f"w{n}" for n in range(5000))
    assert len(expand_query_text(query).split()) == 5000 + MAX_JOINED_NAMES


def test_a_blob_is_dropped_and_the_rest_kept() -> None:
    assert index_text("before " + "a" * 65536 + " after") == "before after"


@pytest.mark.parametrize("unit", ["aB", "a_", "a/", "池", "é.", "9.", "x y-z "])
def test_the_largest_texts_stay_bounded(unit: str) -> None:
    words = index_text(unit * (65536 // len(unit)))
    assert len(words.encode()) <= MAX_TEXT_BYTES


@given(st.text(max_size=300))
def test_index_words_are_plain_bounded_and_stable(text: str) -> None:
    words = index_text(text)
    assert re.search(r"[\x00_./\\:@#+~-]", words) is None
    assert all(len(word.encode()) <= MAX_WORD_BYTES for word in words.split())
    assert words == words.strip()
    assert set(query_text(text).split()) == set(words.split())


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
