"""What may be stale, in a sentence. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from reverie.domain.fence import harmless
from reverie.domain.kinds import Kind

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_CALLED = {Kind.BUG: "bug pattern", Kind.CONTEXT: "note", Kind.HISTORICAL: "old note"}
_PLURALS = {"memory": "memories", "entity": "entities", "identity": "identities"}
_SPANS = ((86_400 * 60, 86_400 * 30, "months"), (86_400 * 2, 86_400, "days"), (3600, 3600, "h"),
          (60, 60, "min"))  # fmt: skip


def warning(path: str, ago: float, kinds: Mapping[Kind, int]) -> str:
    """`A decision, three conventions and a bug pattern may be stale because src/auth.ts changed
    2 h ago.` `ago` in seconds."""
    ordered = sorted(kinds.items(), key=lambda one: (list(Kind).index(one[0]), one[1]))
    named = [_counted(_CALLED.get(kind, kind.value), many) for kind, many in ordered]
    who = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    return f"{who[0].upper()}{who[1:]} may be stale because {harmless(path)} changed {_ago(ago)}."


def _counted(name: str, many: int) -> str:
    if many == 1:
        return f"an {name}" if name[0] in "aeio" else f"a {name}"
    number = _NUMBERS[many] if many < len(_NUMBERS) else str(many)
    return f"{number} {_PLURALS.get(name, f'{name}s')}"


def _ago(seconds: float) -> str:
    for least, unit, name in _SPANS:
        if seconds >= least:
            return f"{int(seconds // unit)} {name} ago"
    return "just now"
