"""What a clone tells at the start of a session: what was committed since the last one, and where in
the code memories belong that know no more than their files."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reverie.agent.anchoring import place_then, told_of
from reverie.agent.git_follow import announce_new
from reverie.agent.git_repo import Repo, open_repo
from reverie.agent.hook_gateway import Away, Gateway, Refused
from reverie.domain.errors import ReverieError, Unavailable
from reverie.domain.scopes import slug

MOST_ANCHORED = 50
"""The newest memories of which places are looked for at the start of a session."""


@dataclass(eq=False)
class _Refusal(ReverieError):
    """{detail}"""

    detail: str
    status: int


def announce(gateway: Gateway, root: str, project: str) -> None:
    """Tells both of a clone; where it is none, or the key may not, nothing."""
    with suppress(ReverieError):
        clone, name = open_repo(Path(root)), slug(project)
        asyncio.run(announce_new(clone, name, lambda document: _send(gateway, document)))
        _anchor(gateway, clone, name)


async def _send(gateway: Gateway, document: dict[str, Any]) -> bool:
    try:
        answer = gateway.ask("POST", "/v1/git/changes", document)
    except Away as away:
        raise Unavailable("the gateway", str(away)) from away
    except Refused as refused:
        raise _Refusal(str(refused), refused.status) from refused
    return bool(answer["duplicate"])


def _anchor(gateway: Gateway, clone: Repo, project: str) -> None:
    query = f"project={quote(project)}&limit={MOST_ANCHORED}"
    with suppress(Away, Refused):
        lacking = gateway.ask("GET", f"/v1/git/anchors?{query}")["items"]
        sent = told_of((one, place_then(clone, one)) for one in lacking)
        if sent:
            gateway.ask("POST", "/v1/git/anchors", {"project": project, "anchors": sent})
