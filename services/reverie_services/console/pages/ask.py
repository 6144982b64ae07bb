"""The page that asks a question: the answer of a recall, and how each candidate was ranked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from reverie.domain.context.text_rendering import render_memories
from reverie.domain.core.kinds import Kind
from reverie.mcp.rest_calls import RestCallError, call_rest, invalid_argument
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.page_request import (
    PageRequest,
    PageValues,
    memory_path,
    read_time,
    split_list,
)
from reverie_services.console.pages.registry import PAGES
from reverie_services.console.requests import file_response

LISTS = ("scopes", "kinds", "tags", "files")
NUMBERS = {"limit": 50, "depth": 3, "budget_tokens": 100_000}
"""The whole numbers of the form, with the largest value of each."""
TIMES = ("since", "until", "as_of", "valid_at")
INCLUDED = ("turns", "archived")
_Trace = Mapping[str, Any]


@PAGES.add("ask", "ask.html", "Ask")
async def ask_question(request: PageRequest) -> PageValues:
    """The form; with a question in the URL also its answer, compared with an earlier trace."""
    values: PageValues = {
        "kinds": [kind.value for kind in Kind],
        "answer": None,
        "trace": None,
        "problem": None,
        "asked": {name: request.query.getall(name, []) for name in (*LISTS, "include")},
    }
    if request.ask("q") is None:
        return values
    try:
        answer = await call_rest(request.rest, "POST", "/v1/recall", body=build_question(request))
    except RestCallError as error:
        return values | {"problem": error.problem}
    trace = await _load_trace(request, answer.get("trace_id"))
    before = await _load_trace(request, request.ask("before"))
    return values | {
        "answer": answer,
        "rendered": render_memories(answer["memories"], "(nothing)"),
        "trace": trace,
        "arms": list_arms(trace),
        "before": before,
        "comparison": compare_traces(before, trace) if before and trace else [],
        "changed": list_changes(before, trace) if before and trace else [],
    }


async def _load_trace(request: PageRequest, trace_id: str | None) -> _Trace | None:
    """A trace; None where none is stored, or no longer."""
    return await request.try_get(f"/v1/traces/{quote(trace_id, safe='')}") if trace_id else None


def build_question(request: PageRequest) -> dict[str, Any]:
    """The body of `POST /v1/recall` from the query of the page."""
    body: dict[str, Any] = {"query": request.ask("q"), "project": request.ask("project")}
    for name in LISTS:
        body[name] = split_list(",".join(request.query.getall(name, [])))
    for name, most in NUMBERS.items():
        if request.ask(name):
            body[name] = request.number(name, 1, most)
    for name in TIMES:
        body[name] = read_time(request.ask(name))
    body["include"] = [name for name in INCLUDED if name in request.query.getall("include", [])]
    if confidence := request.ask("min_confidence"):
        body["min_confidence"] = _read_share(confidence)
    return {name: value for name, value in body.items() if value not in (None, [])}


def _read_share(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def list_arms(trace: _Trace | None) -> list[str]:
    """The arms that found any candidate of a trace."""
    candidates = (trace or {}).get("candidates", [])
    return sorted({arm for candidate in candidates for arm in candidate.get("arms", {})})


def compare_traces(before: _Trace, after: _Trace) -> list[dict[str, Any]]:
    """All candidates of two traces, each with its place and score in both."""
    sides = [{each["id"]: each for each in trace["candidates"]} for trace in (before, after)]
    ids = list(dict.fromkeys([*sides[1], *sides[0]]))
    rows = [{"id": each, "before": sides[0].get(each), "after": sides[1].get(each)} for each in ids]
    for row in rows:
        row["label"] = (row["after"] or row["before"])["label"]
    return sorted(rows, key=lambda row: [_place(row["after"]), _place(row["before"])])


def _place(candidate: Mapping[str, Any] | None) -> int:
    position = (candidate or {}).get("position")
    return 1_000_000 if position is None else int(position)


_SETTINGS: Sequence[str] = (
    *("query", "scopes", "limit", "depth", "min_confidence", "budget_tokens", "turns", "as_of"),
    *("valid_at", "statuses", "kinds", "tiers", "tags", "files", "since", "until", "fusion"),
)


def list_changes(before: _Trace, after: _Trace) -> list[tuple[str, Any, Any]]:
    """The settings in which two traces differ."""
    return [
        (name, before.get(name), after.get(name))
        for name in _SETTINGS
        if before.get(name) != after.get(name)
    ]


_MAX_DOCUMENTS = 100


async def save_golden_set(request: PageRequest) -> OutgoingResponse:
    """A file with one question; the documents are all the memories that were compared for it."""
    question = request.form.get("question", "").strip()
    shown = request.form.getall("shown", [])[:_MAX_DOCUMENTS]
    relevant = [item for item in request.form.getall("relevant", []) if item in shown]
    if not question or not relevant:
        raise invalid_argument("relevant", "mark at least one memory as relevant")
    documents = {item: (await request.get(memory_path(item)))["content"] for item in shown}
    golden = {"documents": documents, "questions": {"own": [[question, relevant, "marked"]]}}
    content = json.dumps(golden, ensure_ascii=False, indent=2)
    return file_response("golden.json", "application/json", content)
