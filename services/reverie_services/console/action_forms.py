"""Shows the form of an action, and performs the posted form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from yarl import URL

from reverie.contracts.base import Problem
from reverie.mcp.rest_calls import RestCallError, invalid_argument
from reverie.runtime.http.exchange import OutgoingResponse
from reverie_services.console.action import Action, ActionField
from reverie_services.console.page_request import PageRequest, PageValues, memory_path, page_path
from reverie_services.console.requests import HOME, add_query, local_path, redirect

MOST_AT_ONCE = 200
"""The most memories that one form changes."""
_SHOWN_AT_ONCE = 20


async def show_action(request: PageRequest, action: Action) -> PageValues:
    """The values of an action's form."""
    ids = request.query.getall("id", [""])[:MOST_AT_ONCE]
    items = []
    for item in ids[:_SHOWN_AT_ONCE] if action.subject == "memory" else ():
        # A forgotten memory cannot be read, but it can be restored or erased by its id.
        load = request.try_get if action.name in {"restore", "erase"} else request.get
        if (memory := await load(memory_path(item))) is not None:
            items.append(memory)
    first = items[0] if items else {}
    return {
        "action": action,
        "ids": ids,
        "items": items,
        "version": first.get("version") if len(ids) == 1 else None,
        "fields": [_prefill(request, field, first) for field in action.fields],
        "next": local_path(request.ask("next")),
        "current": None,
    }


def _prefill(request: PageRequest, field: ActionField, memory: Mapping[str, Any]) -> ActionField:
    value = request.query.get(field.name, memory.get(field.name) or "")
    return replace(field, value=", ".join(value) if isinstance(value, list) else str(value))


async def perform(request: PageRequest, action: Action) -> OutgoingResponse | PageValues:
    """Performs an action for each id of the form, then redirects to the page it names.

    An action whose answer is shown once returns the values of that page; one that begins something
    leads to its page.

    Of several, those that fail do not keep the others from being done; the first problem is shown
    if none succeeded.
    """
    ids = request.form.getall("id", []) or request.form.getall("relevant", [""])
    if len(ids) > MOST_AT_ONCE:
        raise invalid_argument("id", f"at most {MOST_AT_ONCE} at once")
    failed: list[Problem] = []
    for item in ids:
        try:
            result = await action.send(request, item)
        except RestCallError as error:
            failed.append(error.problem)
            continue
        if isinstance(result, OutgoingResponse):
            return result
        if action.result_template:
            return {"result": result, "next": local_path(request.form.get("next"))}
    if len(failed) == len(ids):
        raise RestCallError(failed[0])
    return redirect(_build_target(request, action, ids, len(ids) - len(failed)))


def _build_target(request: PageRequest, action: Action, ids: Sequence[str], count: int) -> str:
    """The next page, which says what was done and offers to undo it."""
    target = local_path(request.form.get("next"), HOME)
    if action.name in {"forget", "erase"} and any(URL(target).name == item for item in ids):
        target = page_path("memories")
    values: dict[str, str] = {"done": action.name, "count": str(count)}
    if action.undone_by and len(ids) == 1:
        values["undo"] = ids[0]
    return add_query(target, **values)
