"""Benchmarks that the user brings: their files are read, and answers are scored by claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from benchmarks.quality.brought import UnlimitedBudget, score_answer
from benchmarks.quality.brought_sets import ExpectedAnswer, load_brought
from reverie.inference.llm_client import open_language_model
from reverie.inference.llm_endpoint import LanguageEndpoint
from tests.support.stub_llm import LlmRequest, stub_llm

LONGMEMEVAL = {
    "question_id": "q1",
    "question_type": "knowledge-update",
    "question": "Where do I moor?",
    "answer": "at pier seven",
    "haystack_session_ids": ["s1", "s2"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"],
    "haystack_sessions": [
        [{"role": "user", "content": "I moor at pier three."}],
        [{"role": "user", "content": "From now on I moor at pier seven.", "has_answer": True}],
    ],
    "answer_session_ids": ["s2"],
}
CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                {"role": "user", "id": 0, "time_anchor": "March-15-2024", "content": "Hi ->-> 1,1"},
                {"role": "assistant", "id": 1, "content": "The sprint ends on March 29."},
            ]
        ],
    }
]
PROBES = {
    "abstention": [{"question": "Who am I?", "rubric": ["unknown"]}],
    "knowledge_update": [
        {
            "question": "When does the sprint end?",
            "source_chat_ids": {"original_info": [0], "updated_info": [1]},
            "rubric": ["It ends on March 29", "It is 2024"],
        }
    ],
}


def test_longmemeval_is_read_as_sessions_with_their_gold(tmp_path: Path) -> None:
    file = tmp_path / "longmemeval_s.json"
    unanswerable = {**LONGMEMEVAL, "question_id": "q2_abs"}
    file.write_text(json.dumps([LONGMEMEVAL, unanswerable]))
    [brought] = load_brought("longmemeval", file)
    [asked] = brought.questions.questions
    assert (asked.gold, asked.type) == (frozenset({"s2"}), "knowledge-update")
    assert [document.name for document in brought.questions.documents] == ["s1", "s2"]
    assert str(brought.questions.documents[1].at) == "2023-05-21 10:00:00+00:00"
    assert brought.answers[asked.text].claims == ("at pier seven",)


def test_beam_is_read_as_messages_with_the_claims_of_its_rubric(tmp_path: Path) -> None:
    chat = tmp_path / "100K" / "1"
    (chat / "probing_questions").mkdir(parents=True)
    (chat / "chat.json").write_text(json.dumps(CHAT))
    (chat / "probing_questions" / "probing_questions.json").write_text(json.dumps(PROBES))
    [brought] = load_brought("beam", tmp_path)
    assert brought.questions.documents[0].text == "user: Hi"
    [asked] = brought.questions.questions
    assert (asked.gold, asked.type) == (frozenset({"0", "1"}), "knowledge_update")
    assert brought.answers[asked.text].claims == ("It ends on March 29", "It is 2024")


def test_another_benchmark_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none of longmemeval, beam, locomo"):
        list(load_brought("other", tmp_path))


@pytest.mark.parametrize(
    ("made", "faults", "score"),
    [([1, 2], [], 1.0), ([2, 2, 9], [], 0.5), ([], [], 0.0), ([1, 2], ["401"], 0.0)],
)
async def test_an_answer_scores_by_the_claims_that_it_makes(
    made: list[int], faults: list[str], score: float
) -> None:
    def answer(asked: LlmRequest) -> Any:
        return {"made": made} if asked.task == "judge" else {"answer": "On March 29."}

    wanted = ExpectedAnswer("When does it end?", ("March 29", "2024"))
    async with stub_llm() as (stub, url):
        stub.answer, stub.faults = answer, list(faults)
        endpoint = LanguageEndpoint("openai", "stub", f"{url}/v1", retry_delay=0.0)
        registry = CollectorRegistry()
        async with open_language_model(endpoint, UnlimitedBudget(), registry) as model:
            assert model is not None
            assert await score_answer(model, ["The sprint ends on March 29."], wanted) == score
