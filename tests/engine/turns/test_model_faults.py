"""What a turn does when a model fails, is too slow, says too much, or asks for nonsense."""

from __future__ import annotations

from reverie.testing.chat_server import ChatAnswer, ToolUse
from tests.engine.conftest import Engine


async def test_a_refusal_for_now_is_asked_again_up_to_three_times(engine: Engine) -> None:
    engine.play([ChatAnswer(fault="429"), ChatAnswer(fault="429"), ChatAnswer("At last.")])
    group = await engine.group("beck")
    turns = await engine.say(group, "Hello.")
    assert turns["beck"]["status"] == "done"
    assert await engine.answers(group) == ["At last."]
    assert len(engine.requests) == 3
    engine.play(lambda _: ChatAnswer(fault="500"))
    turns = await engine.say(group, "Hello again.")
    assert (turns["beck"]["status"], turns["beck"]["outcome"]) == ("failed", "error")
    assert "500" in turns["beck"]["error"]
    assert len(engine.requests) == 3
    assert await engine.answers(group) == ["At last."]


async def test_another_model_answers_for_one_that_fails(engine: Engine) -> None:
    await engine.agent("careful", models=["default", "second"])
    engine.play(lambda asked: ChatAnswer("Hi.", fault="401" if asked.model == "stub" else ""))
    group = await engine.group("careful")
    posted = await engine.post(group, "Hello.")
    seen = await engine.watch(group, posted["after"])
    assert seen[-1]["data"]["content"] == "Hi."
    assert [request.model for request in engine.requests] == ["stub", "stub-2"]


async def test_a_stream_that_breaks_ends_the_turn_and_keeps_what_was_said(engine: Engine) -> None:
    await engine.agent("careful", models=["default", "second"])
    engine.play(lambda _: ChatAnswer("The answer is forty-two.", fault="cut"))
    group = await engine.group("careful")
    turns = await engine.say(group, "What is it?")
    assert (turns["careful"]["status"], turns["careful"]["outcome"]) == ("failed", "interrupted")
    assert await engine.answers(group) == ["The "]
    assert len(engine.requests) == 1


async def test_an_answer_that_meets_max_tokens_goes_on_three_times(engine: Engine) -> None:
    engine.play([ChatAnswer("one ", fault="length"), ChatAnswer("two.")])
    group = await engine.group("beck")
    turns = await engine.say(group, "Count.")
    assert turns["beck"]["outcome"] == "end_turn"
    assert await engine.answers(group) == ["one two."]
    engine.play(lambda _: ChatAnswer("more ", fault="length"))
    turns = await engine.say(group, "Count on.")
    assert turns["beck"]["outcome"] == "max_tokens"
    assert (await engine.answers(group))[-1] == "more more more more "


async def test_a_context_that_is_too_long_is_cut_and_at_last_summarised(engine: Engine) -> None:
    group = await engine.group("beck")
    engine.play([ChatAnswer(fault="overflow"), ChatAnswer("Fits.")])
    posted = await engine.post(group, "Hello.")
    seen = await engine.watch(group, posted["after"])
    assert [e["data"]["what"] for e in seen if e["type"] == "notice"] == ["context_reduced"]
    assert seen[-1]["data"]["content"] == "Fits."
    overflows = [ChatAnswer(fault="overflow")] * 3
    engine.play([*overflows, ChatAnswer("They greeted."), ChatAnswer("Fits now.")])
    await engine.say(group, "And now?")
    assert engine.requests[-1].texts[0] == "They greeted."
    assert (await engine.answers(group))[-1] == "Fits now."


async def test_malformed_arguments_are_told_to_the_model(engine: Engine) -> None:
    bad = ToolUse("read_file", '{"path": 7, ')
    engine.play([ChatAnswer(calls=(bad,)), ChatAnswer("I will not.")])
    group = await engine.group("beck")
    turns = await engine.say(group, "Read it.")
    assert turns["beck"]["status"] == "done"
    assert len(engine.requests) == 2
    engine.play(lambda _: ChatAnswer(calls=(bad,)))
    turns = await engine.say(group, "Read it.")
    assert (turns["beck"]["status"], turns["beck"]["outcome"]) == ("failed", "error")
    assert len(engine.requests) == 3


async def test_the_same_calls_again_and_again_end_the_turn(engine: Engine) -> None:
    calls = [ToolUse("list_files", {"pattern": name}) for name in ("*.a", "*.b", "*.c")]
    engine.play(lambda _: ChatAnswer(calls=(calls[len(engine.requests) % 3],)))
    group = await engine.group("beck")
    posted = await engine.post(group, "Look.")
    seen = await engine.watch(group, posted["after"])
    assert [e["data"]["reason"] for e in seen if e["type"] == "stop"] == ["loop"]
    assert len(engine.requests) == 9


async def _allow_next(engine: Engine, group: str) -> None:
    turn = await engine.turn(group, "beck", "waiting")
    [call] = [id for id, entry in turn["waits"].items() if entry.get("approved") is None]
    verdict = {"turn": turn["id"], "call": call, "approved": True}
    reply = await engine.call("POST", f"/v1/groups/{group}/approvals", verdict)
    assert reply.status == 200


async def test_calls_that_a_person_allowed_are_found_when_they_repeat(engine: Engine) -> None:
    call = ToolUse("write_file", {"path": "again.txt", "content": "x"})
    engine.play(lambda _: ChatAnswer(calls=(call,)))
    group = await engine.group("beck")
    posted = await engine.post(group, "Write it.")
    for _ in range(3):
        await _allow_next(engine, group)
    turns = await engine.ended(group, posted)
    assert (turns["beck"]["status"], turns["beck"]["outcome"]) == ("failed", "loop")


async def test_requests_before_an_approval_are_counted_for_the_turn(engine: Engine) -> None:
    await engine.agent("beck", ask=["write_file"], budget={"requests_per_turn": 2})
    calls = [ToolUse("write_file", {"path": f"n{n}.txt", "content": "x"}) for n in range(4)]
    engine.play([ChatAnswer(calls=(call,)) for call in calls])
    group = await engine.group("beck")
    posted = await engine.post(group, "Write them.")
    for _ in range(2):
        await _allow_next(engine, group)
    turns = await engine.ended(group, posted)
    assert (turns["beck"]["status"], turns["beck"]["outcome"]) == ("failed", "limit")
    assert len(engine.requests) == 2


async def test_a_request_that_fails_or_is_stopped_keeps_nothing_reserved(engine: Engine) -> None:
    engine.play(lambda _: ChatAnswer(fault="401"))
    group = await engine.group("beck")
    turns = await engine.say(group, "Hello.")
    assert turns["beck"]["tokens"] == 0
    released: list[bool] = []
    engine.play([ChatAnswer("well, well ...", hold=lambda: bool(released))])
    posted = await engine.post(group, "Hello again.")
    await engine.watch(group, posted["after"], until="text_delta")
    await engine.call("POST", f"/v1/groups/{group}/stop", {})
    turns = await engine.ended(group, posted)
    released.append(True)
    assert turns["beck"]["status"] == "stopped"
    # What it was asked and had said is counted, and no longer the whole answer.
    used = turns["beck"]["tokens"]
    assert 0 < used < 4096
    spent = await engine.call("GET", "/v1/agents/spend")
    assert spent.body["agents"] == {"beck": {"tokens": used, "micro_usd": 0}}
