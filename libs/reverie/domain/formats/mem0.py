"""The entities of mem0 as scopes and tags, for its clients and for imports of its exports."""

from __future__ import annotations

from collections.abc import Mapping

MEM0_SCOPES = {"user_id": "user", "agent_id": "agent", "app_id": "project", "run_id": "topic"}
MAX_TAG_LENGTH = 64


def place_entities(entities: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """The scope of the first entity, None without one, and a tag for each as it was given.

    The tag of the first one says how mem0 writes it, which the scope's slug does not. It is left
    out where it is too long for a tag.
    """
    given = [(name, entities[name]) for name in MEM0_SCOPES if entities.get(name)]
    if not given:
        return None, []
    scope = f"{MEM0_SCOPES[given[0][0]]}/{given[0][1]}"
    first, *others = (f"{name}:{value}" for name, value in given)
    return scope, [first, *others] if len(first) <= MAX_TAG_LENGTH else others
