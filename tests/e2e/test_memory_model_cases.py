"""The numbered cases of the memory model: an index of their tests, and those kept here.

Held elsewhere: the number of the case, then the file and the test. What is not listed is below.

1 e2e/test_main_scenario.py::test_repeated_content_is_one_memory_with_more_confidence
2 recall/test_graph_routes.py::test_a_causal_link_that_closes_a_circle_is_refused_with_the_path
3 recall/test_graph_routes.py::test_a_causal_link_that_closes_a_circle_is_refused_with_the_path
4 ingest/enrich/test_duplicates.py::test_a_later_decision_contradicts_the_earlier_one_which_becomes_doubtful
5 recall/test_graph_routes.py::test_a_new_bug_may_be_caused_by_an_older_decision_of_its_session
7 store/memories/test_memories_and_edits.py::test_a_key_in_use_is_a_conflict_that_shows_the_current_memory
8 store/memories/test_memories_and_edits.py::test_a_reason_supersedes_the_memory_of_a_key
8 e2e/test_main_scenario.py::test_a_key_is_superseded_with_a_reason_and_refused_without
10 interfaces/test_invalid_fields.py::test_an_invalid_field_of_a_memory_is_named
10 interfaces/test_invalid_requests.py::test_content_may_be_as_long_as_the_limit_and_not_one_byte_longer
11 ingest/test_memory_changes.py::test_a_forgotten_memory_is_in_no_answer_and_can_be_said_again
11 ingest/export_import/test_jsonl_files.py::test_forgotten_memories_are_in_no_export
12 ingest/test_memory_changes.py::test_an_edit_is_versioned_and_a_rollback_restores_content_hash_and_words
13 ingest/test_memory_changes.py::test_feedback_approves_edits_and_discards
14 dream/test_confidence_lifecycle.py::test_after_two_half_lives_a_memory_has_a_quarter_of_its_confidence_and_a_lesson_all
15 dream/test_confidence_lifecycle.py::test_fresh_and_pinned_memories_survive_and_archived_ones_are_returned_on_request
16 recall/test_recall_answers.py::test_16_a_500_token_budget_gives_an_answer_of_at_most_500_counted_tokens
17 recall/test_recall_answers.py::test_17_the_intent_of_a_question_is_named_in_the_trace
18 recall/test_graph_routes.py::test_an_invalid_link_is_refused_by_its_field
18 interfaces/test_invalid_requests.py::test_a_body_over_the_limit_is_too_large
19 recall/test_graph_routes.py::test_a_new_bug_may_be_caused_by_an_older_decision_of_its_session
20 store/memories/test_causal_edges.py::test_forty_concurrent_opposite_pairs_are_never_both_stored
21 recall/test_graph_routes.py::test_a_superseding_memory_is_linked_and_all_services_stay_ready
22 security/test_permissions.py::test_memories_outside_the_grants_appear_in_no_answer
22 security/test_scope_visibility.py::test_a_feature_of_one_project_is_separate_from_that_of_another
23 recall/test_recall_answers.py::test_23_the_same_recall_ten_times_gives_the_same_order
25 recall/test_graph_routes.py::test_statistics_count_eleven_hundred_memories_exactly
25 ingest/export_import/test_jsonl_files.py::test_an_import_that_broke_off_is_completed_by_the_same_file
26 ingest/test_memory_changes.py::test_a_secret_in_an_edit_is_redacted_everywhere
26 ingest/export_import/test_jsonl_files.py::test_a_secret_in_a_file_is_redacted_as_in_a_write
26 e2e/test_main_scenario.py::test_secrets_are_redacted_in_every_text_field
27 interfaces/test_invalid_requests.py::test_a_first_field_of_a_wrong_type_is_named
28 interfaces/test_invalid_requests.py::test_a_missing_resource_is_not_found
30 recall/test_recall_answers.py::test_30_a_chinese_memory_is_found_by_part_of_its_words
31 recall/test_recall_answers.py::test_31_an_identifier_is_found_by_its_words_and_a_path_by_its_parts
32 security/test_scope_visibility.py::test_a_private_memory_is_invisible_to_another_agent_and_visible_in_the_next_session
33 security/test_scope_visibility.py::test_a_sub_agents_memory_is_hidden_from_its_sibling_and_shown_to_its_parent_if_granted
34 security/test_tenant_isolation.py::test_no_route_shows_changes_or_reveals_anything_of_another_tenant
34 security/test_permissions.py::test_two_tenants_with_the_same_words_see_nothing_of_each_other
35 recall/test_recall_answers.py::test_35_a_superseded_memory_is_found_marked_and_ranked_below_its_successor
36 ingest/test_administration.py::test_deleting_a_tenant_leaves_nothing_of_it_in_any_table_or_stream
37 recall/test_graph_routes.py::test_a_link_stated_from_both_ends_is_one_and_its_opposite_is_refused
38 ingest/test_memory_changes.py::test_a_forgotten_memory_is_in_no_answer_and_can_be_said_again
38 ingest/test_memory_changes.py::test_a_rollback_to_the_content_of_another_active_memory_names_it
38 store/memories/test_memories_and_edits.py::test_one_content_may_be_stored_under_several_keys
38 store/memories/test_duplicate_merging.py::test_pairs_with_other_scopes_keys_periods_or_pins_are_not_merged
39 ingest/enrich/test_duplicates.py::test_the_id_of_a_merged_memory_resolves_to_the_surviving_one
41 ingest/test_tasks_skills_and_facts.py::test_of_two_agents_claiming_a_task_one_holds_it_until_its_lease_ends
42 ingest/test_memory_changes.py::test_as_of_answers_with_the_knowledge_of_that_moment
42 recall/test_time_travel.py::test_42_edited_unlinked_and_replaced_memories_are_known_as_they_were_without_forgotten
42 recall/test_graph_routes.py::test_a_removed_link_is_gone_now_and_visible_as_of_then
"""  # noqa: E501

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from reverie.bus.erasure import tenant_subjects
from reverie.bus.nats_bus import connect
from tests.support.stack import Stack, eventually
from tests.support.tables import rows, value

HERE = "project/shop"


async def _told(stack: Stack, content: str, key: str | None = None, **fields: Any) -> str:
    body = {"content": content, "scope": HERE, **fields}
    return str((await stack.post("/v1/remember", body, key=key))["id"])


async def _found(stack: Stack, query: str, key: str | None = None, **fields: Any) -> set[str]:
    answer = await stack.post("/v1/recall", {"query": query, **fields}, key=key)
    return {hit["id"] for hit in answer["memories"]}


async def _published(stack: Stack) -> bool:
    late = "select count(*) from memory where enriched_version < version and tenant = %s"
    return bool(value(stack.admin_url, late, stack.number()) == 0)


def test_every_test_cited_for_a_case_exists() -> None:
    held = re.findall(r"^\d+ ([\w/]+\.py)::(\w+)$", __doc__ or "", re.MULTILINE)
    assert len(held) > 30
    here = Path(__file__).parents[1]
    missing = [
        f"{file}::{name}" for file, name in held if f"def {name}(" not in (here / file).read_text()
    ]
    assert missing == []


async def test_6_credentials_in_a_content_are_redacted_in_reply_row_event_and_log(
    alone: Stack, nats_url: str, capfd: pytest.CaptureFixture[str], caplog: Any
) -> None:
    secrets = ("sk-proj-" + "a1B2c3D4e5F6g7H8" * 3, "AKIA" + "IOSFODNN7ABCDEFG")
    body = {"content": f"deploy with {secrets[0]} and {secrets[1]}", "scope": HERE}
    with caplog.at_level("DEBUG"):
        made = await alone.call("POST", "/v1/remember", body)
        read = await alone.get(f"/v1/memories/{made.body['id']}")
        events = [row[0] for row in rows(alone.admin_url, "select t::text from outbox t")]
        await eventually(lambda: _published(alone))
    async with connect(nats_url, "test") as bus:
        await bus.wait_connected(30)
        for stream, subject in tenant_subjects("default"):
            message = await bus.read(stream, 1, subject)
            events += [] if message is None else [repr(message)]
    row = rows(alone.admin_url, "select t::text from memory t")
    log = (*capfd.readouterr(), caplog.text)
    assert read["content"].count("[REDACTED_") == 2
    assert made.body["id"] in str(events)
    for secret in secrets:
        assert secret not in str((made, read, row, events, log))


async def test_11_a_forgotten_memory_is_in_no_subgraph(stack: Stack) -> None:
    near = await _told(stack, "Kafka was replaced by NATS")
    gone = await _told(stack, "NATS keeps streams", edges=[{"to": near, "type": "relates_to"}])
    picture = await stack.get(f"/v1/memories/{near}/subgraph?depth=5")
    assert {near, gone} <= {one["id"] for one in picture["nodes"]}
    assert (await stack.call("DELETE", f"/v1/memories/{gone}")).status == 200
    left = await stack.get(f"/v1/memories/{near}/subgraph?depth=5")
    assert near in {one["id"] for one in left["nodes"]}
    assert gone not in str(left)
    assert (await stack.call("GET", f"/v1/memories/{gone}/subgraph")).status == 404


async def test_29_five_writers_of_ten_memories_beside_readers_leave_fifty(stack: Stack) -> None:
    async def write(writer: int) -> list[str]:
        return [await _told(stack, f"writer {writer} says fact {n}") for n in range(10)]

    async def read() -> None:
        for _ in range(5):
            await _found(stack, "fact of a writer")
            await stack.get("/v1/memories")

    told = await asyncio.gather(*(write(n) for n in range(5)), read(), read())
    ids = {one for found in told if found for one in found}
    listed = await stack.get("/v1/memories?limit=200")
    assert len(ids) == 50
    assert {one["id"] for one in listed["items"]} == ids


async def test_40_branches_of_one_name_in_two_projects_are_separate_and_any_name_works(
    stack: Stack,
) -> None:
    scopes = []
    for project in ("a", "b"):
        start = {"agent": "x", "project": project, "branch": "feature/login"}
        scopes.append((await stack.post("/v1/sessions/start", start))["scope"])
    a, b = [await _told(stack, f"login by wombat in {one}", scope=one) for one in scopes]
    assert scopes[0] != scopes[1]
    assert await _found(stack, "wombat login", scopes=scopes[:1]) == {a}
    assert await _found(stack, "wombat login", scopes=scopes[1:]) == {b}
    start = {"agent": "x", "project": "a", "branch": "feat/login.v2"}
    odd = await stack.post("/v1/sessions/start", start)
    scope, session = odd["scope"], odd["session"]
    assert scope.startswith("project/a/feature/feat-login-v2-")
    one = await _told(stack, "the numbat form", scope=scope, session=session)
    listed = await stack.get("/v1/memories", params={"scope": scope})
    assert [memory["id"] for memory in listed["items"]] == [one]
    assert one in await _found(stack, "numbat form", session=session)
    assert "numbat" in (await stack.get("/v1/context", params={"session": session}))["markdown"]
    await _named_at_every_door(stack, scope, "project/a/feature/feat/login.v2", one)
    await _name_goes_where_its_scope_goes(stack, scope)


async def _named_at_every_door(stack: Stack, scope: str, named: str, one: str) -> None:
    same = {"content": "the numbat form", "scope": named}
    assert (await stack.post("/v1/remember", same))["id"] == one
    assert (await stack.post("/v1/remember/batch", {"items": [same]}))["items"][0]["id"] == one
    assert await _found(stack, "numbat form", scopes=[named]) == {one}
    for door in ("/v1/memories", "/v1/tasks", "/v1/facts", "/v1/stale"):
        await stack.get(door, params={"scope": named})
    assert [m["id"] for m in (await stack.get("/v1/memories", params={"scope": named}))["items"]]
    assert "numbat" in (await stack.get("/v1/context", params={"scopes": named}))["markdown"]
    assert (await stack.get("/v1/graph/stats", params={"scope": named}))["memories"] == 1
    claim = {"topic": "t", "statement": "c", "confidence": "high", "verified": "2026-01-01"}
    claimed = await stack.post("/v1/facts", {**claim, "scope": named})
    assert (await stack.get(f"/v1/memories/{claimed['id']}"))["scope"] == scope
    put = await stack.call("PUT", "/v1/vault/port", {"value": 1}, params={"scope": named})
    assert put.body["scope"] == scope
    assert (await stack.post("/v1/dream", {"scope": named}))["scope"] == scope
    made = await stack.post(
        "/v1/admin/keys", {"label": "k", "reads": [named, "topic/Ä/*"], "project": "My Shop"}
    )
    assert made["reads"][0] == scope
    assert one in await _found(stack, "numbat form", made["key"])
    for wrong in (
        "project/a/feature/feat/*",
        "project/a/feat/login.v2",
        "user/a/b",
        "feature/a//b",
    ):
        refused = await stack.call("POST", "/v1/remember", {"content": "x", "scope": wrong})
        assert (refused.status, refused.body["field"]) == (422, "scope"), wrong


async def _name_goes_where_its_scope_goes(stack: Stack, scope: str) -> None:
    listed = (await stack.get("/v1/admin/scopes"))["items"]
    assert (scope, "feat/login.v2") in {(one["scope"], one["name"]) for one in listed}
    await _told(stack, "the shop", scope="project/My Shop")
    projects = (await stack.get("/v1/admin/projects"))["items"]
    assert "My Shop" in {one["name"] for one in projects}
    other = stack.apart().key
    auth = {"Authorization": f"Bearer {other}"}
    for form, kind in (("jsonl", "application/x-ndjson"), ("markdown", "application/x-tar")):
        url, mine = f"{stack.url}/v1/export?format={form}", f"Bearer {stack.key}"
        async with stack.http.get(url, headers={"Authorization": mine}) as answer:
            data = await answer.read()
        assert b"feat/login.v2" in data
        head = {**auth, "Content-Type": kind}
        async with stack.http.post(f"{stack.url}/v1/import", data=data, headers=head) as answer:
            assert (await answer.json())["rejected"] == 0, await answer.text()
        carried = (await stack.get("/v1/admin/scopes", key=other))["items"]
        assert (scope, "feat/login.v2") in {(one["scope"], one["name"]) for one in carried}
        gone = await stack.call(
            "DELETE",
            "/v1/admin/scopes",
            key=other,
            params={"scope": "project/a/feature/feat/login.v2"},
        )
        assert gone.body["rows"]["scope_name"] == 1, gone
    kept = "select count(*) from scope_name where name = 'feat/login.v2' and tenant = %s"
    assert value(stack.admin_url, kept, stack.number()) == 1
