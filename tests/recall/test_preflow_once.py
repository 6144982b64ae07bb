"""What a session was given once is not given again, and what is not needed is not given."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.support.stack import Stack, eventually

LONG = "Orders are exported as Parquet files. " + "Each column of an order keeps its name. " * 25


async def _remember(stack: Stack, content: str, kind: str = "decision") -> str:
    body = {"content": content, "scope": "project/shop", "kind": kind}
    return str((await stack.post("/v1/remember", body))["id"])


async def _start(stack: Stack, **fields: Any) -> Any:
    body = {"agent": "claude", "project": "shop", "context_shown": True, **fields}
    return await stack.post("/v1/sessions/start", body)


async def _preflow(stack: Stack, session: str, query: str, **fields: Any) -> Any:
    return await stack.post("/v1/preflow", {"session": session, "query": query, **fields})


async def test_what_a_session_start_printed_is_not_given_again(stack: Stack) -> None:
    short = await _remember(stack, "Prices are kept in cents, for floats lost money.")
    long = await _remember(stack, LONG)
    await stack.settled()
    started = await _start(stack)
    session = started["session"]
    assert short[-8:] in started["context"]

    asked = "Why are prices kept in cents?"
    answer = await _preflow(stack, session, asked)
    assert (answer["markdown"], answer["items"]) == ("", [])
    assert short in answer["active"]
    whole = await _preflow(stack, session, "How are orders exported, as Parquet files?")
    assert [item["id"] for item in whole["items"]] == [long]
    assert (await _preflow(stack, session, "Are orders exported as Parquet?"))["items"] == []

    unseen = (await _start(stack, context_shown=False))["session"]
    assert short in str((await _preflow(stack, unseen, asked))["items"])
    again = await _start(stack, external_id="one")
    again = await _start(stack, external_id="one", compacted=True)
    assert short[-8:] in again["context"]
    assert (await _preflow(stack, again["session"], asked))["items"] == []


async def test_a_prompt_gets_nothing_unless_something_is_known_of_it(stack: Stack) -> None:
    shown = (await _start(stack))["session"]
    assert (await _preflow(stack, shown, "Good morning"))["markdown"] == ""
    made = await _remember(stack, "Webhook deliveries are retried five times, then dropped.")
    rule = await _remember(stack, "Never log card numbers.", kind="convention")
    await stack.settled()
    unshown = (await _start(stack, context_shown=False))["session"]
    for session, expected in (
        (shown, {made: "on_demand"}),
        (unshown, {made: "on_demand", rule: "recent"}),
    ):
        nothing = await _preflow(stack, session, "How do I bake sourdough bread?")
        assert (nothing["markdown"], nothing["items"], nothing["tokens"]) == ("", [], 0)
        found = await _preflow(stack, session, "How often are webhook deliveries retried?")
        assert {item["id"]: item["layer"] for item in found["items"]} == expected
        assert {item["id"]: item["relevance"] for item in found["items"]}[made] >= 0.6
        assert (await _preflow(stack, session, "How do I bake sourdough bread?"))["items"] == []


async def test_at_most_three_memories_are_given_for_a_prompt(stack: Stack) -> None:
    session = (await _start(stack))["session"]
    await _preflow(stack, session, "Good morning")
    for n in ("users", "orders", "carts", "stocks", "prices"):
        await _remember(stack, f"The nightly import of {n} must not run beside a migration.")
    await stack.settled()
    asked = "May the nightly import run beside a migration?"
    answer = await _preflow(stack, session, asked)
    assert 0 < len(answer["items"]) <= 3
    trace = await stack.get(f"/v1/traces/{answer['trace_id']}")
    outcomes = {item["id"]: item["outcome"] for item in trace["deliveries"]}
    given = [one for one, outcome in outcomes.items() if outcome == "given"]
    assert given == [item["id"] for item in answer["items"]]


async def test_before_an_action_what_names_the_file_or_command_is_given_once(
    stack: Stack,
) -> None:
    file = await _remember(stack, "src/cart/price.py rounds half up, as the bank does.")
    note = await _remember(stack, "src/cart/price.py was moved in May.", kind="context")
    push = await _remember(stack, "`git push --force` to main lost a release.", kind="bug")
    tests = await _remember(stack, "Run pytest with -x: the suite is slow.", kind="convention")
    await _remember(stack, "Make changes small and push often.", kind="convention")
    await stack.settled()
    session = (await _start(stack, context_shown=False))["session"]

    async def given(before: str, query: str) -> list[str]:
        answer = await _preflow(stack, session, query, before=before)
        while answer["degraded"]:
            # On a busy machine it answers in time without them; nothing counts as given then.
            answer = await _preflow(stack, session, query, before=before)
        assert bool(answer["markdown"]) == bool(answer["items"])
        return [item["id"] for item in answer["items"]]

    assert await given("edit", "src/cart/price.py") == [file]
    assert await given("edit", "src/cart/price.py") == []
    assert await given("edit", "src/cart/basket.py") == []
    assert await given("command", "cd api && git push origin main") == [push]
    assert await given("command", "git push") == []
    assert await given("command", "git status") == []
    assert await given("command", "ls -la") == []
    assert await given("command", "make build") == []
    assert await given("command", "CI=1 uv run pytest tests/test_price.py") == [tests]
    assert note not in (await _preflow(stack, session, "prices", before="edit"))["active"]
    first = await _preflow(stack, session, "Which rounding does src/cart/price.py use?")
    assert first["turn"] == 1
    assert file not in [item["id"] for item in first["items"]]
    refused = await stack.call(
        "POST", "/v1/preflow", {"session": session, "query": "x", "before": "lunch"}
    )
    assert (refused.status, refused.body["field"]) == (422, "before")


async def test_a_trace_tells_what_was_given_and_held_back_and_whether_it_was_confirmed(
    stack: Stack,
) -> None:
    made = await _remember(stack, "Webhook deliveries are retried five times, then dropped.")
    other = await _remember(stack, "The colour of webhook icons is green.")
    await stack.settled()
    session = (await _start(stack, context_shown=False))["session"]
    asked = "How often are webhook deliveries retried?"
    await _preflow(stack, session, "Good morning")
    compacted = await _preflow(stack, session, asked, include_seen=True)
    trace_id = compacted["trace_id"]

    trace = await stack.get(f"/v1/traces/{trace_id}")
    given = {item["id"]: item for item in trace["deliveries"] if item["outcome"] == "given"}
    assert made in given
    assert "retried five times" in given[made]["label"]
    assert (trace["given"], trace["delivered_at"]) == (len(given), None)
    receipt = await stack.post(f"/v1/traces/{trace_id}/delivery", {})
    again = await stack.post(f"/v1/traces/{trace_id}/delivery", {})
    assert receipt == again
    [newest, *_] = (await stack.get(f"/v1/traces?session={session}"))["items"]
    assert newest["delivered_at"] == receipt["delivered_at"]

    second = await _preflow(stack, session, asked)
    later = await stack.get(f"/v1/traces/{second['trace_id']}")
    outcomes = {item["id"]: item for item in later["deliveries"]}
    assert (later["given"], outcomes[made]["outcome"]) == (0, "already_given")
    assert outcomes[other]["outcome"] in {"relevance", "score", "already_given"}
    unrelated = await _preflow(stack, session, "How do I bake sourdough bread?")
    held_back = (await stack.get(f"/v1/traces/{unrelated['trace_id']}"))["deliveries"]
    assert {item["outcome"] for item in held_back} == {"relevance"}
    assert all(item["relevance"] < 0.6 for item in held_back)

    recalled = await stack.post("/v1/recall", {"query": asked})
    plain = await stack.get(f"/v1/traces/{recalled['trace_id']}")
    assert (plain["given"], plain["deliveries"]) == (None, [])
    refused = await stack.call("POST", f"/v1/traces/{recalled['trace_id']}/delivery", {})
    assert refused.status == 404


async def test_a_trace_says_what_was_given_before_an_edit_or_a_command(stack: Stack) -> None:
    texts = (
        "`git push` to a release branch needs a signed tag.",
        "At noon the proxy of the bank drops every `git push`.",
        "Migrations alone are never sent by `git push`; they go with their tests.",
        "Its hook formats the handbook, so `git push` takes a minute.",
    )
    rules = [await _remember(stack, text, kind="convention") for text in texts]
    await stack.settled()
    session = (await _start(stack, context_shown=False))["session"]
    body = {"session": session, "query": "git push origin main", "before": "command"}

    async def asked(**fields: bool) -> dict[str, Any]:
        answer: dict[str, Any] = await stack.post("/v1/preflow", body | fields)
        # On a busy machine it answers in time without them.
        return {} if answer["degraded"] else answer

    answer = await eventually(partial(asked, include_seen=True))
    trace = await stack.get(f"/v1/traces/{answer['trace_id']}")
    outcomes = {item["id"]: item["outcome"] for item in trace["deliveries"]}
    given = [item["id"] for item in answer["items"]]
    assert len(given) == 3
    assert {id for id, outcome in outcomes.items() if outcome == "given"} == set(given)
    assert outcomes[next(iter(set(rules) - set(given)))] == "limit"
    assert (trace["before"], trace["query"]) == ("command", "git push origin main")
    assert (trace["found"], trace["returned"], trace["given"]) == (4, 3, 3)
    on_demand = trace["layers"][-1]
    assert (on_demand["name"], on_demand["tokens"] > 0) == ("on_demand", True)
    [listed] = (await stack.get(f"/v1/traces?session={session}&limit=1"))["items"]
    assert (listed["id"], listed["before"]) == (trace["id"], "command")

    again = await eventually(asked)
    later = await stack.get(f"/v1/traces/{again['trace_id']}")
    assert "already_given" in {item["outcome"] for item in later["deliveries"]}


async def test_a_trace_says_what_entered_each_layer_and_what_the_budget_cut(stack: Stack) -> None:
    for n in range(12):
        text = f"Rule {n}: every upload of part {n} is checked twice, by hand and by the scanner."
        await _remember(stack, text, kind="convention")
    asked = await _remember(stack, "The scanner of uploads runs ClamAV with a limit of 20 MB.")
    await stack.settled()
    session = (await _start(stack, context_shown=False))["session"]
    body = {"session": session, "query": "Which limit has the scanner of uploads?"}
    first = await stack.post("/v1/preflow", {**body, "budget_tokens": 400})
    trace = await stack.get(f"/v1/traces/{first['trace_id']}")
    placed = {item["id"]: (item["layer"], item["outcome"]) for item in trace["deliveries"]}
    assert placed[asked] == ("on_demand", "given")
    assert ("recent", "given") in placed.values()
    assert ("recent", "budget") in placed.values()
    shown = {item["id"] for item in first["items"] if item["id"]}
    assert shown == {id for id, (_, outcome) in placed.items() if outcome == "given"}
    assert [layer["name"] for layer in trace["layers"]] == ["resident", "recent", "on_demand"]
    assert all(layer["tokens"] <= layer["budget_tokens"] for layer in trace["layers"])
    again = await stack.post("/v1/preflow", body)
    later = await stack.get(f"/v1/traces/{again['trace_id']}")
    before = {item["id"]: (item["layer"], item["outcome"]) for item in later["deliveries"]}
    assert before[asked] == ("on_demand", "already_given")
