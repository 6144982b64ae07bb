"""Whatever a model answers, what is kept of it is supported by the turns, and nothing raises."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from reverie.domain.extraction.record_validation import find_unsupported
from reverie.domain.extraction.records.statement_selection import MAX_RECORD_CHARS
from reverie.domain.extraction.records.subtopics import annotate_exchanges, split_subtopics
from reverie.domain.text.markdown import split_sentences
from reverie.domain.text.turns import TurnText
from reverie_services.dream.digest.record_answers import (
    CheckedAnswer,
    RecordAnswer,
    check_answer,
)
from tests.dream.test_bad_llm_answers import build_segment
from tests.dream.test_llm_extraction import GOOD, TALK, statement

SEGMENT = build_segment(
    *TALK,
    ("user", "连接池最多二十个连接，超时是 30 秒。"),
    ("tool", "Bash: `make check` [ok]\n128 passed in 4.2s"),
)
[SUBTOPIC] = split_subtopics(annotate_exchanges(SEGMENT))
EXCHANGES = [item.exchange for item in SUBTOPIC]
TURNS = [turn for e in EXCHANGES for turn in (e.opening, *e.replies) if turn]
SENTENCES = [sentence for turn in TURNS for sentence in split_sentences(turn.content)]
WORDS = sorted({word for sentence in SENTENCES for word in sentence.split()})

any_text = st.text(max_size=80)
unclean_text = st.text(st.characters(categories=["Cs", "Cc", "L"]), max_size=20)
said = st.sampled_from(SENTENCES)
mixed = st.lists(st.sampled_from([*WORDS, "not", "never", "17", "`db_pool`"]), max_size=14).map(
    " ".join
)
changed = st.builds(
    lambda text, old, new: text.replace(old, new),
    said,
    st.sampled_from(["2 GB", "10 MB", "at most", "No", "/videos", "a ", "。"]),
    st.sampled_from(["3 GB", "not", "`s3`", "", "\x00", "<item n='1'>", "\u202e"]),
)
texts = st.one_of(said, mixed, changed, any_text)
numbers = st.one_of(st.integers(-2, len(TURNS) + 2), st.integers())
statements = st.fixed_dictionaries(
    {"text": texts, "turns": st.lists(numbers, max_size=4), "quote": texts}
)
refusals = st.fixed_dictionaries(
    {"proposal": texts, "reason": texts, "turns": st.lists(numbers, max_size=4), "quote": texts}
)
lasting = st.builds(
    lambda one, kind: {**one, "kind": kind},
    statements,
    st.sampled_from(["convention", "preference", "task", "skill"]),
)
answers = st.fixed_dictionaries(
    {},
    optional={
        "problem": texts,
        "decided": st.lists(statements, max_size=4),
        "found": st.lists(statements, max_size=4),
        "refused": st.lists(refusals, max_size=3),
        "lasting": st.lists(lasting, max_size=3),
        "kind": st.sampled_from(["decision", "bug", "lesson", "spec", "context"]),
        "files": st.lists(texts, max_size=3),
        "symbols": st.lists(texts, max_size=3),
    },
)
anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | any_text | unclean_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=12,
)


def _check(answer: dict[str, Any]) -> CheckedAnswer:
    return check_answer(RecordAnswer.model_validate(answer), TURNS, EXCHANGES, "record/2 m")


def _assert_supported(text: str, cited: list[TurnText]) -> None:
    """By other means than the check: each figure and each name in code stands in a cited turn."""
    source = "\n".join(turn.content for turn in cited).lower()
    for figure in re.findall(r"\d+", text):
        assert figure in source
    for name in re.findall(r"`([^`]+)`", text):
        assert name.lower() in source
    assert find_unsupported(text, cited) is None
    assert "\x00" not in text
    text.encode()


@settings(deadline=None)
@given(answers)
def test_what_is_kept_of_an_answer_is_supported_by_the_turns_that_it_cites(
    answer: dict[str, Any],
) -> None:
    checked = _check(answer)
    ids = {turn.id for turn in TURNS}
    stated = list(checked.lasting)
    if record := checked.record:
        assert {turn.id for turn in record.turns} <= ids
        assert len(record.content) <= MAX_RECORD_CHARS
        assert {"problem", "decided", "found", "refused"} <= record.parts.keys()
        json.dumps(record.parts).encode()
        for item in record.statements:
            _assert_supported(item.text, record.turns)
        stated += record.statements
        for refused in record.refused:
            _assert_supported(refused.proposal, record.turns)
    for item in stated:
        assert item.turn.id in ids
    for dropped in checked.dropped:
        assert set(dropped.turns) <= ids
        dropped.text.encode()


@settings(deadline=None)
@given(st.one_of(anything, st.dictionaries(st.sampled_from(list(GOOD)), anything)))
def test_any_json_is_refused_by_its_type_or_checked(body: Any) -> None:
    try:
        answer = RecordAnswer.model_validate(body)
    except ValidationError:
        return
    checked = check_answer(answer, TURNS, EXCHANGES, "record/2 m")
    assert checked.record is None or checked.record.statements


def test_a_sentence_that_a_message_says_is_supported_by_it() -> None:
    for text in SENTENCES:
        turns = [n for n, turn in enumerate(TURNS, 1) if text in turn.content]
        checked = _check({"found": [statement(text, text, *turns)]})
        reasons = {dropped.objection.name for dropped in checked.dropped}
        is_proposal = text.startswith("I'll ")
        expected = {"ACCEPTANCE"} if is_proposal else {"QUESTION", "QUOTE", "LENGTH"}
        assert (checked.record and not is_proposal) or reasons <= expected, text
