"""What was committed since the last session, told at the start of one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from reverie.agent.git_follow import announce_new
from reverie.agent.git_repo import open_repo
from reverie.agent.hook_gateway import Away, Gateway
from reverie.domain.errors import ReverieError, Unavailable
from reverie.domain.scopes import slug


def announce(gateway: Gateway, root: str, project: str) -> None:
    """Announces the commits of a clone that were not told yet; where it is none, nothing."""

    async def send(document: dict[str, Any]) -> bool:
        try:
            answer = gateway.ask("POST", "/v1/git/changes", document)
        except Away as away:
            raise Unavailable("the gateway", str(away)) from away
        return bool(answer["duplicate"])

    with suppress(ReverieError):
        asyncio.run(announce_new(open_repo(Path(root)), slug(project), send))
