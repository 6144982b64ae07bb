"""Announces new commits of the known clones, and sends the turns of followed transcripts.

It asks the file system a few times a minute, and only for the state of single files: a clone that
is deleted, moved or unreadable costs nothing and stops nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from reverie.agent.gateway.http_client import CallRefused, GatewayConnection, GatewayUnavailable
from reverie.agent.git.announcement_log import ChangeReceipt
from reverie.agent.git.announcements import announce_new_commits
from reverie.agent.git.project_detection import head_stamp
from reverie.agent.git.repository import open_repository
from reverie.agent.hooks.delivery import deliver_turns
from reverie.agent.hooks.session_state import HookSessionState
from reverie.agent.transcripts.sources import TranscriptSession
from reverie.agent.transcripts.turns import ParsedTurn
from reverie.agent.watch.followed_files import (
    FollowedAgent,
    FollowedFiles,
    followed_agents,
)
from reverie.agent.watch.known_clones import ALL_CLONES, KnownClone, list_clones
from reverie.domain.access.scopes import slugify
from reverie.domain.core.errors import Conflict, ReverieError, Unavailable
from reverie.domain.text.characters import is_blank

CLONE_INTERVAL_SECONDS: Final = 5.0
FOLLOW_INTERVAL_SECONDS: Final = 15.0
LOCK_INTERVAL_SECONDS: Final = 30.0
"""How often a process looks whether the one that watches has ended."""

log = logging.getLogger("reverie.watch")

Report = Callable[[str], None]
Connect = Callable[[str, str], GatewayConnection | None]
"""The gateway for an agent and a project, with their key; None if none answers."""


class LocalWatcher:
    """Watches what is known in a home folder. Only one process does so at a time.

    `report` takes a line for all that was sent.
    """

    def __init__(
        self, home: Path, user_home: str, connect: Connect, report: Report = lambda _: None
    ) -> None:
        self._home = home
        self._connect = connect
        self._report = report
        self._files = FollowedFiles(home / "clones" / "followed", user_home)
        self._announced: dict[str, str] = {}
        self._followed_at = 0.0

    async def run(self) -> None:
        """Watches until it is cancelled."""
        while True:
            with suppress(Timeout), self.locked():
                while True:
                    with _surviving(str(self._home)):
                        await asyncio.to_thread(self.check_once)
                    await asyncio.sleep(CLONE_INTERVAL_SECONDS)
            await asyncio.sleep(LOCK_INTERVAL_SECONDS)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes out. Raises `Timeout` if another one watches."""
        folder = self._home / "run"
        folder.mkdir(parents=True, exist_ok=True)
        # The process may go on in another thread.
        with FileLock(folder / "watch.lock", timeout=0, mode=0o600, thread_local=False):
            yield

    def check_once(self) -> None:
        """Checks everything once. Failures are tried again at the next check."""
        clones = list_clones(self._home)
        for clone in clones:
            if clone.root != ALL_CLONES:
                with _surviving(clone.root):
                    self._announce(clone)
        if time.monotonic() >= self._followed_at:
            self._followed_at = time.monotonic() + FOLLOW_INTERVAL_SECONDS
            for followed in followed_agents(clones):
                with _surviving(followed.agent):
                    self._follow(followed, clones)

    def _announce(self, clone: KnownClone) -> None:
        """Announces the commits since the last look, if the head moved."""
        stamp = head_stamp(clone.root)
        if not stamp or stamp == self._announced.get(clone.root):
            return
        gateway = self._connect("", clone.project)
        if gateway is None:
            return
        repository, project = open_repository(Path(clone.root)), slugify(clone.project)

        async def send(document: dict[str, Any]) -> ChangeReceipt:
            try:
                response = await asyncio.to_thread(
                    gateway.request, "POST", "/v1/git/changes", document
                )
            except GatewayUnavailable as error:
                raise Unavailable("the gateway", str(error)) from error
            except CallRefused as error:
                raise Conflict(str(error)) from error
            return ChangeReceipt(bool(response["duplicate"]))

        try:
            outcomes = asyncio.run(announce_new_commits(repository, project, send))
        except Conflict:
            # It was refused for good: nothing changes until the head moves again.
            outcomes = []
        for outcome in outcomes:
            if outcome.state == "announced" and outcome.change.commits:
                self._report(f"{project}: {outcome.change.commits[-1].subject}")
        if all(outcome.state != "queued" for outcome in outcomes):
            self._announced[clone.root] = stamp

    def _follow(self, followed: FollowedAgent, clones: list[KnownClone]) -> None:
        """Sends what was added to each transcript. Raises `GatewayUnavailable` if none answers."""
        for path, state in self._files.changed_files(followed, clones):
            with _surviving(str(path), GatewayUnavailable):
                self._follow_file(path, state, followed, clones)

    def _follow_file(
        self, path: Path, state: str, followed: FollowedAgent, clones: list[KnownClone]
    ) -> None:
        added, counts = self._files.read(path, followed)
        refused = []
        for session, turns in added.items():
            try:
                self._deliver(session, turns, followed.agent, clones)
            except CallRefused as error:
                log.warning("the turns of %s were refused: %s", path, error)
                refused.append(session)
        self._files.record(path, state, counts, refused)

    def _deliver(
        self,
        session: TranscriptSession,
        turns: list[ParsedTurn],
        agent: str,
        clones: list[KnownClone],
    ) -> None:
        """Sends what was added to a session. Raises `GatewayUnavailable` if none answers."""
        gateway = self._connect(agent, session.project)
        if gateway is None:
            raise GatewayUnavailable("no gateway answers")
        project = "" if is_blank(session.project) else slugify(session.project)
        root = next((clone.root for clone in clones if clone.project == project), "")
        folder = str(self._home / "hooks")
        state = HookSessionState(folder, session.agent, session.external_id[:200])
        state.save(project=session.project, branch=session.branch, root=root)
        deliver_turns(state, gateway, turns)
        count = f"{len(turns)} turn{'s' * (len(turns) != 1)}"
        self._report(f"{project or 'no project'}: {count} of {agent}")


@contextmanager
def _surviving(place: str, *stops: type[Exception]) -> Iterator[None]:
    """Goes on after each failure, so that one place does not stop the others."""
    try:
        yield
    except stops:
        raise
    except (OSError, ReverieError, GatewayUnavailable, CallRefused):
        return
    except Exception:
        log.warning("cannot watch %s", place, exc_info=True)
