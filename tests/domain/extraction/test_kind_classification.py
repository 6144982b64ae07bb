"""Kind and hints derived from the words of a text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.domain.core.kinds import Kind
from reverie.domain.extraction.content_checks import classify_kind, suggest_improvements


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("We decided to use Postgres because joins matter", Kind.DECISION),
        ("Use jose instead of jsonwebtoken", Kind.DECISION),
        ("我们决定采用 NATS 作为消息总线", Kind.DECISION),
        ("Always run the linter before a commit", Kind.CONVENTION),
        ("Never commit generated files", Kind.CONVENTION),
        ("提交前务必运行测试", Kind.CONVENTION),
        ("I prefer small pull requests", Kind.PREFERENCE),
        ("我喜欢简短的回答", Kind.PREFERENCE),
        ("Root cause: the pool leaked connections on timeout", Kind.BUG),
        ("Fixed the crash in the parser", Kind.BUG),
        ("登录接口报错，已修复空指针异常", Kind.BUG),
        ("Gotcha: the cache key ignores the locale", Kind.LESSON),
        ("TODO: add an index on created_at", Kind.TASK),
        ("To deploy, run `make release` and tag", Kind.SKILL),
        ("My name is Ada and I work on the compiler", Kind.IDENTITY),
        ("See the docs at https://example.com/guide", Kind.REFERENCE),
        ("The frontend lives in the web folder", Kind.CONTEXT),
        ("", Kind.CONTEXT),
    ],
)
def test_a_text_without_a_kind_gets_the_kind_its_words_indicate(content: str, kind: Kind) -> None:
    assert classify_kind(content) is kind


@pytest.mark.parametrize(
    ("content", "kind", "hint"),
    [
        ("Use jose for all the tokens", Kind.DECISION, "why"),
        ("Use jose because jsonwebtoken is unmaintained", Kind.DECISION, ""),
        ("The login page crashes on Safari", Kind.BUG, "caused"),
        ("Login crashed due to a missing cookie in the proxy", Kind.BUG, ""),
        ("It is now much faster than it was", Kind.CONTEXT, "stand alone"),
    ],
)
def test_a_text_that_lacks_its_reason_cause_or_subject_prompts_for_it(
    content: str, kind: Kind, hint: str
) -> None:
    hints = suggest_improvements(content, kind)
    assert any(hint in one for one in hints) if hint else hints == ()


@settings(database=None, deadline=None)
@given(st.text(max_size=300))
def test_any_text_has_a_kind(content: str) -> None:
    assert all(suggest_improvements(content, classify_kind(content)))
