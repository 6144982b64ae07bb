"""What a message is recalled by."""

from __future__ import annotations

from datetime import UTC, datetime

from reverie.domain.fence import CLOSE, OPEN
from reverie.domain.keywords import ASKED_CHARS, MOST, asked, keywords
from reverie.domain.question import read

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_names_come_whole_and_common_words_not_at_all() -> None:
    text = "Why does getUserById in src/auth.ts fail with `no route`, please? 连接池"
    found = keywords(text, read(text, NOW))
    assert found[:3] == ["src/auth.ts", "getUserById", "no route"]
    assert set(found[3:]) == {"fail", "连接", "接池"}
    flood = " ".join(f"word{n}" for n in range(500))
    assert len(keywords(flood, read(flood, NOW))) == MOST
    assert keywords("?!", read("?!", NOW)) == []


def test_recalled_memory_and_the_middle_of_a_long_message_are_not_asked_by() -> None:
    block = f"{OPEN}\nold\n{CLOSE}"
    assert asked(f"{block}\nWhy is it slow?") == "Why is it slow?"
    assert asked(block) == ""
    long = asked("begin " + "x" * 50_000 + " end")
    assert len(long) == ASKED_CHARS + 1
    assert (long[:5], long[-3:]) == ("begin", "end")
