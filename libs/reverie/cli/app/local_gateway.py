"""Finds the gateway of this machine, and starts `reverie up` where none runs."""

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

from reverie.domain.core.errors import Unavailable

if TYPE_CHECKING:
    from reverie.client import HttpTransport
    from reverie.embedded.home import Home
    from reverie.runtime.settings.settings import Settings

UP_LOG = "up.log"
_JSON_LINES = "application/x-ndjson"
START_TIMEOUT = 45.0
"""How long a first start may take until a call says that it is still starting."""
POLL_INTERVAL = 0.1


@dataclass(frozen=True)
class GatewayEndpoint:
    """A gateway and the key to it."""

    url: str
    key: str


def find_gateway(settings: Settings) -> GatewayEndpoint | None:
    """The gateway that is set, or the one that runs on the home folder; None where none does.

    A key that is set goes with the address that is set; the key that a home folder keeps opens
    the Reverie that runs on it, and no other that may answer at the same port.
    """
    from reverie.embedded.home import existing_home
    from reverie.embedded.lock import is_home_locked
    from reverie.embedded.probe import fetch_health

    url, api_key = _configured_url(settings), settings.api_key
    if settings.gateway_url is not None and api_key is not None:
        return GatewayEndpoint(url, api_key.get_secret_value())
    home = existing_home(settings.home)
    if home and is_home_locked(home):
        endpoint = _find_running(settings, home)
        is_other_gateway = (
            settings.gateway_url is not None and endpoint is not None and endpoint.url != url
        )
        return None if is_other_gateway else endpoint
    if api_key is None or settings.gateway_url is not None or fetch_health(url).status is None:
        return None
    return GatewayEndpoint(url, api_key.get_secret_value())


def has_supervisor(settings: Settings) -> bool:
    """Whether a supervisor holds the home folder, its gateway up or not."""
    from reverie.embedded.home import existing_home
    from reverie.embedded.lock import is_home_locked

    home = existing_home(settings.home)
    return home is not None and is_home_locked(home)


def start_in_background(
    settings: Settings, sets: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts `reverie up` on the home folder, beside this process and beyond its end.

    What it says goes to `logs/up.log`. One that is being started already makes this one end.
    `sets`: settings as `--set` takes them; `environment`: what it finds in its environment beside
    ours.
    """
    from reverie.embedded.home import open_home

    home = open_home(settings.home)
    command = [sys.executable, "-P", "-m", "reverie.cli.app.main", "up", "--json"]
    with (home.logs / UP_LOG).open("ab") as log:
        return subprocess.Popen(
            [*command, "--home", str(home.root), *(f"--set={override}" for override in sets)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **(environment or {})},
            cwd=home.root,
            start_new_session=True,
        )


def wait_until_up(
    settings: Settings, process: subprocess.Popen[bytes], timeout: float = 120.0
) -> dict[str, Any]:
    """What a process that was just started notes once all is up. Raises `Unavailable`."""
    from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

    from reverie.embedded.home import open_home, read_run_file

    home = open_home(settings.home)

    def look() -> dict[str, Any] | None:
        # Read before it is looked whether it ended, which takes the note away.
        note = read_run_file(home, "up")
        if note.get("pid") == process.pid and note.get("gateway"):
            return note
        return {} if process.poll() is not None else None

    retrying = Retrying(
        stop=stop_after_delay(timeout),
        wait=wait_fixed(POLL_INTERVAL),
        retry=retry_if_result(lambda note: note is None),
    )
    try:
        result = retrying(look)
    except RetryError:
        result = None
    if not result:
        raise Unavailable("Reverie", explain_failure(settings, result is None))
    return result


def explain_failure(settings: Settings, starting: bool) -> str:
    """What `up.log` says of a start that led to nothing, or not yet."""
    log = settings.home / "logs" / UP_LOG
    if starting:
        return f"it is still starting: try again later; {log} may say more"
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return f"`reverie up` ended: {_error_detail(lines[-1]) if lines else 'it said nothing'} ({log})"


def _find_running(settings: Settings, home: Home) -> GatewayEndpoint | None:
    """The gateway of the supervisor on this home; None while it is still starting."""
    from reverie.embedded.backends import API_KEY_SECRET
    from reverie.embedded.home import read_run_file, read_secret

    url = read_run_file(home, "up").get("gateway")
    api_key = settings.api_key.get_secret_value() if settings.api_key else None
    key = api_key or read_secret(home, API_KEY_SECRET)
    return GatewayEndpoint(str(url), key) if url and key else None


def _configured_url(settings: Settings) -> str:
    from reverie.runtime.settings.settings import base_url

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
        self._caller: HttpTransport | None = None
        self._lock = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    async def prepare(self) -> None:
        """Looks for the gateway and starts it where it may; what is wrong, a call will say."""
        try:
            await self._get_caller()
        except Unavailable:
            return

    async def __call__(
        self, method: str, path: str, query: Any = None, body: Any = None, headers: Any = None
    ) -> tuple[int, Any]:
        """The status and the body of the answer. Raises `Unavailable`."""
        from reverie.client.errors import ApiError

        caller = await self._get_caller()
        try:
            if isinstance(body, str):
                timeout = self._settings.request_timeout
                data = body.encode()
                response = await caller.upload(path, query or {}, data, _JSON_LINES, timeout)
            else:
                response = await caller.call(method, path, query, body, headers)
        except Unavailable:
            await self.close()
            raise
        except ApiError as error:
            return error.status, error.problem.model_dump(mode="json", exclude_none=True)
        return response.status, response.body

    async def close(self) -> None:
        """Forgets the gateway; the next call looks for it anew."""
        caller, self._caller = self._caller, None
        if caller is not None:
            await caller.close()

    async def _get_caller(self) -> HttpTransport:
        async with self._lock:
            if self._caller is None:
                endpoint = await self._find_or_start()
                self._caller = await asyncio.to_thread(_create_caller, endpoint, self._settings)
            return self._caller

    async def _find_or_start(self) -> GatewayEndpoint:
        """Where the gateway is. Raises `Unavailable` where none is, and none may be started."""
        endpoint = await asyncio.to_thread(find_gateway, self._settings)
        if endpoint is not None:
            return endpoint
        if self._settings.gateway_url is not None:
            raise Unavailable("Reverie", "set the key to gateway_url: REVERIE_API_KEY")
        if await asyncio.to_thread(has_supervisor, self._settings):
            return await self._wait_until_up()
        if not self._settings.mcp_autostart:
            raise Unavailable("Reverie", "it does not run here: ask the user to run `reverie up`")
        self._process = await asyncio.to_thread(start_in_background, self._settings, self._sets)
        return await self._wait_until_up()

    async def _wait_until_up(self) -> GatewayEndpoint:
        """The gateway, once it is up; whoever started it."""
        from tenacity import AsyncRetrying, retry_if_result, stop_after_delay, wait_fixed

        retrying = AsyncRetrying(
            stop=stop_after_delay(START_TIMEOUT),
            wait=wait_fixed(POLL_INTERVAL),
            retry=retry_if_result(lambda state: state == (None, True)),
            retry_error_callback=lambda _: (None, True),
        )
        state: tuple[GatewayEndpoint | None, bool] = await retrying(asyncio.to_thread, self._poll)
        endpoint, starting = state
        if endpoint is None:
            raise Unavailable("Reverie", explain_failure(self._settings, starting))
        return endpoint

    def _poll(self) -> tuple[GatewayEndpoint | None, bool]:
        """The gateway, and whether it is still being started."""
        is_own_start = self._process is not None and self._process.poll() is None
        starting = is_own_start or has_supervisor(self._settings)
        return find_gateway(self._settings), starting


def _error_detail(line: str) -> str:
    """What went wrong, of an error as `--json` prints it."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(line)["detail"])
    return line


def _create_caller(endpoint: GatewayEndpoint, settings: Settings) -> HttpTransport:
    """Imports the HTTP client away from the event loop."""
    from reverie.client import HttpTransport

    timeout, ca = settings.request_timeout, settings.trusted_ca_file
    return HttpTransport(endpoint.url, endpoint.key, timeout=timeout, agent="reverie-mcp", ca=ca)
