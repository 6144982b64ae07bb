"""The scripted model's Responses API is the one that OpenAI's own client reads."""

from __future__ import annotations

from reverie.testing.chat_server import ChatAnswer, ChatRequest, ToolUse, chat_server


async def test_a_streamed_answer_and_a_tool_call_are_read_by_the_client_of_openai() -> None:
    from openai import AsyncOpenAI
    from openai.types.responses.response_input_param import FunctionCallOutput

    answers = [ChatAnswer("Two words.", calls=(ToolUse("look", {"at": "x"}),)), ChatAnswer("Done.")]
    seen: list[ChatRequest] = []

    def script(request: ChatRequest) -> ChatAnswer:
        seen.append(request)
        return answers[len(seen) - 1]

    async with (
        chat_server(script) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client,
    ):
        async with client.responses.stream(model="m", instructions="Be brief.", input="Go") as run:
            pieces = [
                event.delta async for event in run if event.type == "response.output_text.delta"
            ]
            first = await run.get_final_response()
        assert "".join(pieces) == first.output_text == "Two words."
        [call] = [item for item in first.output if item.type == "function_call"]
        assert (call.name, call.arguments) == ("look", '{"at": "x"}')
        result: FunctionCallOutput = {
            "type": "function_call_output",
            "call_id": call.call_id,
            "output": "seen",
        }
        async with client.responses.stream(model="m", input=[result]) as run:
            assert (await run.get_final_response()).output_text == "Done."
    assert (seen[0].system, seen[0].texts) == ("Be brief.", ("Go",))
    assert seen[1].is_after_tool
    assert seen[1].results == ("seen",)
