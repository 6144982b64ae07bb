"""The agents of a tenant: five built-in ones and stored ones; which of them answer a message."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reverie.contracts.engine import AgentBody, Mode
from reverie.domain.core.errors import InvalidInput
from reverie_services.engine.prompts import PERSONAS

_MENTION = re.compile(r"(?<![\w@/.])@([a-z0-9][a-z0-9_-]{0,62})", re.IGNORECASE)
ALL = "all"


def resolve_agents(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, AgentBody]:
    """All agents by name; a stored one replaces a built-in one."""
    built_in = {name: AgentBody(persona=name) for name in PERSONAS}
    return built_in | {name: AgentBody.model_validate(spec) for name, spec in stored.items()}


def narrow_mode(own: Mode, requested: str) -> Mode:
    """The mode of a turn: a message may narrow the mode of an agent, and never widen it.

    A plan changes nothing and a dream only memory, so of these two the plan wins.
    """
    modes: tuple[Mode, ...] = ("plan", "dream")
    return next((mode for mode in modes if mode in {own, requested}), "unified")


def choose_answering(
    agents: Sequence[str], answers: str, text: str, mentions: Sequence[str]
) -> list[str]:
    """The agents of a group that answer a user's message, in the order of the group.

    Mentioned agents answer; without a mention, the default agent or everyone does. Raises
    `InvalidInput` if `mentions` names an unknown agent; an unknown `@name` in the text is ignored.
    """
    for name in mentions:
        if name not in agents and name != ALL:
            raise InvalidInput("mentions", f"{name} is not in this group: {', '.join(agents)}")
    named = {*mentions, *(name.lower() for name in _MENTION.findall(text))}
    if ALL in named:
        return list(agents)
    chosen = [name for name in agents if name in named]
    return chosen or (list(agents) if answers == "everyone" else [agents[0]])
