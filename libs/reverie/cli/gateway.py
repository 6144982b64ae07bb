"""The gateway of this machine: where it is, and starting it where it does not run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reverie.domain.errors import Unavailable

if TYPE_CHECKING:
    from reverie.client import Caller
    from reverie.embedded.home import Home
    from reverie.runtime.settings import Settings

LOG = "up.log"
_JSON_LINES = "application/x-ndjson"
START_SECONDS = 45.0
"""How long a first start may take until a call says that it is still starting."""
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Place:
    """A gateway and the key to it."""

    url: str
    key: str


def find(settings: Settings) -> Place | None:
    """The gateway that is set, or the one that runs on the home folder; None where none does.

    A key that is set goes with the address that is set; the key that a home folder keeps opens
    the Reverie that runs on it, and no other that may answer at the same port.
    """
    from reverie.embedded.home import existing_home
    from reverie.embedded.lock import is_held
    from reverie.embedded.probe import ask_ready

    url, own = _set_url(settings), settings.api_key
    if settings.gateway_url is not None and own is not None:
        return Place(url, own.get_secret_value())
    home = existing_home(settings.home)
    if home and is_held(home):
        found = _running(settings, home)
        elsewhere = settings.gateway_url is not None and found is not None and found.url != url
        return None if elsewhere else found
    if own is None or settings.gateway_url is not None or ask_ready(url).status is None:
        return None
    return Place(url, own.get_secret_value())


def is_starting(settings: Settings) -> bool:
    """Whether a supervisor holds the home folder, its gateway up or not."""
    from reverie.embedded.home import existing_home
    from reverie.embedded.lock import is_held

    home = existing_home(settings.home)
    return home is not None and is_held(home)


def start(
    settings: Settings, sets: Sequence[str] = (), given: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts `reverie up` on the home folder, beside this process and beyond its end.

    What it says goes to `logs/up.log`. One that is being started already makes this one end.
    `sets`: settings as `--set` takes them; `given`: what it finds in its environment beside ours.
    """
    from reverie.embedded.home import open_home

    home = open_home(settings.home)
    command = [sys.executable, "-P", "-m", "reverie.cli.main", "up", "--json"]
    with (home.logs / LOG).open("ab") as log:
        return subprocess.Popen(
            [*command, "--home", str(home.root), *(f"--set={one}" for one in sets)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **(given or {})},
            cwd=home.root,
            start_new_session=True,
        )


def awaited(
    settings: Settings, up: subprocess.Popen[bytes], seconds: float = 120.0
) -> dict[str, Any]:
    """What a process that was just started notes once all is up. Raises `Unavailable`."""
    from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

    from reverie.embedded.home import open_home, read_note

    home = open_home(settings.home)

    def look() -> dict[str, Any] | None:
        # Read before it is looked whether it ended, which takes the note away.
        note = read_note(home, "up")
        if note.get("pid") == up.pid and note.get("gateway"):
            return note
        return {} if up.poll() is not None else None

    tries = Retrying(
        stop=stop_after_delay(seconds),
        wait=wait_fixed(LOOK_SECONDS),
        retry=retry_if_result(lambda note: note is None),
    )
    try:
        found = tries(look)
    except RetryError:
        found = None
    if not found:
        raise Unavailable("Reverie", why_not(settings, found is None))
    return found


def why_not(settings: Settings, starting: bool) -> str:
    """What `up.log` says of a start that led to nothing, or not yet."""
    log = settings.home / "logs" / LOG
    if starting:
        return f"it is still starting: try again later; {log} may say more"
    said = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return f"`reverie up` ended: {_detail(said[-1]) if said else 'it said nothing'} ({log})"


def _running(settings: Settings, home: Home) -> Place | None:
    """The gateway of the supervisor on this home; None while it is still starting."""
    from reverie.embedded.backing import API_KEY
    from reverie.embedded.home import read_note, read_secret

    url = read_note(home, "up").get("gateway")
    own = settings.api_key.get_secret_value() if settings.api_key else None
    key = own or read_secret(home, API_KEY)
    return Place(str(url), key) if url and key else None


def _set_url(settings: Settings) -> str:
    from reverie.runtime.settings import base_url

    if settings.gateway_url:
        return str(settings.gateway_url).rstrip("/")
    return base_url(settings.host, settings.recall_port, settings.tls_cert is not None)


class LocalGateway:
    """Carries out REST calls on the gateway that there is, once there is one."""

    def __init__(self, settings: Settings, sets: Sequence[str] = ()) -> None:
        self.profile = settings.mcp_profile
        self.project = settings.project
        self._settings = settings
        self._sets = sets
        self._caller: Caller | None = None
        self._looking = asyncio.Lock()
        self._up: subprocess.Popen[bytes] | None = None

    async def look(self) -> None:
        """Looks for the gateway and starts it where it may; what is wrong, a call will say."""
        try:
            await self._ready()
        except Unavailable:
            return

    async def __call__(
        self, method: str, path: str, query: Any = None, body: Any = None, headers: Any = None
    ) -> tuple[int, Any]:
        """The status and the body of the answer. Raises `Unavailable`."""
        from reverie.client.errors import Refused

        caller = await self._ready()
        try:
            if isinstance(body, str):
                seconds = self._settings.request_timeout
                data = body.encode()
                answer = await caller.upload(path, query or {}, data, _JSON_LINES, seconds)
            else:
                answer = await caller.call(method, path, query, body, headers)
        except Unavailable:
            await self.close()
            raise
        except Refused as refused:
            return refused.status, refused.problem.model_dump(mode="json", exclude_none=True)
        return answer.status, answer.body

    async def close(self) -> None:
        """Forgets the gateway; the next call looks for it anew."""
        caller, self._caller = self._caller, None
        if caller is not None:
            await caller.close()

    async def _ready(self) -> Caller:
        async with self._looking:
            if self._caller is None:
                place = await self._place()
                self._caller = await asyncio.to_thread(_caller, place, self._settings)
            return self._caller

    async def _place(self) -> Place:
        """Where the gateway is. Raises `Unavailable` where none is, and none may be started."""
        found = await asyncio.to_thread(find, self._settings)
        if found is not None:
            return found
        if self._settings.gateway_url is not None:
            raise Unavailable("Reverie", "set the key to gateway_url: REVERIE_API_KEY")
        if await asyncio.to_thread(is_starting, self._settings):
            return await self._awaited()
        if not self._settings.mcp_start:
            raise Unavailable("Reverie", "it does not run here: ask the user to run `reverie up`")
        self._up = await asyncio.to_thread(start, self._settings, self._sets)
        return await self._awaited()

    async def _awaited(self) -> Place:
        """The gateway, once it is up; whoever started it."""
        from tenacity import AsyncRetrying, retry_if_result, stop_after_delay, wait_fixed

        tries = AsyncRetrying(
            stop=stop_after_delay(START_SECONDS),
            wait=wait_fixed(LOOK_SECONDS),
            retry=retry_if_result(lambda look: look == (None, True)),
            retry_error_callback=lambda _: (None, True),
        )
        look: tuple[Place | None, bool] = await tries(asyncio.to_thread, self._look)
        found, starting = look
        if found is None:
            raise Unavailable("Reverie", why_not(self._settings, starting))
        return found

    def _look(self) -> tuple[Place | None, bool]:
        """The gateway, and whether it is still being started."""
        ours = self._up is not None and self._up.poll() is None
        starting = ours or is_starting(self._settings)
        return find(self._settings), starting


def _detail(line: str) -> str:
    """What went wrong, of an error as `--json` prints it."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(line)["detail"])
    return line


def _caller(place: Place, settings: Settings) -> Caller:
    """Imports the HTTP client away from the event loop."""
    from reverie.client import Caller

    seconds, ca = settings.request_timeout, settings.authority
    return Caller(place.url, place.key, timeout=seconds, agent="reverie-mcp", ca=ca)
