"""What a tool answers: short, without what a model has no use for, and fenced as data.

Structured content begins with the opening of the fence and ends with its close, so that what was
recalled is told from what people say, and is cut out where a transcript brings it back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reverie.contracts.base import Problem
from reverie.domain.fence import CLOSE, OPEN, TITLE, harmless
from reverie.domain.told_lines import NOTICE, lines

ADVICE = {
    "unauthenticated": "The key is wrong: tell the user to check REVERIE_API_KEY.",
    "forbidden": "This key may not do that here: use another scope, or tell the user.",
    "not_found": "Find its id with recall or memory_list first.",
    "invalid": "Correct that field and call again.",
    "precondition_failed": "It changed meanwhile: read it again (more get_memory), then decide.",
    "too_large": "Say less: split it, or store the gist.",
    "too_many": "Wait that long, or go on without memory.",
    "conflict": "Read what stands (current), then decide.",
    "unavailable": "Go on without memory and try once more later.",
}
"""What a model can do, by the code of a problem."""

_DROPPED = frozenset(
    {
        *("accessed_at", "access_count", "arms", "base_confidence", "provenance", "short_id"),
        *("snippet", "tier", "updated_at"),
    }
)
_WRAPPED = frozenset({"fence", "end"})
_SHORT_ID = 8


def short(value: Any, inner: bool = False) -> Any:
    """A body without nulls, without what is empty deeper inside, and with its tags harmless."""
    if isinstance(value, Mapping):
        return {
            name: short(one, True)
            for name, one in value.items()
            if one is not None and name not in _DROPPED and not (inner and one in ([], {}, ""))
        }
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [short(one, True) for one in value]
    return harmless(value) if isinstance(value, str) else value


def harmless_in(value: Any) -> Any:
    """A body as it is, without nulls, and with its tags harmless."""
    if isinstance(value, Mapping):
        return {name: harmless_in(one) for name, one in value.items() if one is not None}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [harmless_in(one) for one in value]
    return harmless(value) if isinstance(value, str) else value


def fenced(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body between the two tags of the fence, in one JSON object."""
    inside = {name: one for name, one in body.items() if name not in _WRAPPED}
    return {"fence": f"{OPEN} {TITLE}: {NOTICE}", **inside, "end": CLOSE}


def dumped(body: Any) -> str:
    """JSON without spaces that nobody reads."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def refusal(problem: Problem) -> tuple[str, dict[str, Any]]:
    """A problem in words a model can act on, and as data with the code and words of REST."""
    said = [f"{problem.code}: {problem.detail}"]
    others = [one for one in problem.errors or () if one.get("field") != problem.field]
    said += [f"{one['field']}: {one['reason']}" for one in others]
    if problem.code in ADVICE:
        said.append(ADVICE[problem.code])
    body = problem.model_dump(mode="json", exclude_none=True, exclude={"instance"})
    if problem.current:
        told = {"id", "content"} <= problem.current.keys()
        said.append(lines([problem.current], "") if told else dumped(problem.current))
        body = fenced({**body, "current": short(problem.current)})
    return "\n".join(said), body
