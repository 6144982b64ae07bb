"""Calls the gateway of this machine, and starts `reverie up` if none runs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from reverie.agent.gateway.location import GatewayLocation, is_home_locked
from reverie.agent.gateway.user_detection import detect_user
from reverie.cli.app.gateway_search import find_gateway
from reverie.domain.core.errors import Conflict, Unavailable
from reverie.runtime.settings.settings import Settings

if TYPE_CHECKING:
    from reverie.client import HttpTransport

UP_LOG = "up.log"
_JSON_LINES = "application/x-ndjson"
START_TIMEOUT = 45.0
"""A call that waits longer reports that Reverie is still starting."""
POLL_INTERVAL = 0.1
UP_TIMEOUT = 120.0


def has_supervisor(settings: Settings) -> bool:
    """Returns whether a supervisor runs on the home folder, ready or not."""
    return is_home_locked(os.path.realpath(settings.home))


def start_in_background(
    settings: Settings, sets: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Starts `reverie up` on the home folder, as a process that outlives this one.

    Its output goes to `logs/up.log`. It ends if another one starts already. `sets` are settings as
    in `--set`; `environment` is added to that of this process.
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


def wait_until_up(settings: Settings, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Returns the run file of a started process, once everything is up.

    Raises `Conflict` where another one runs already, else `Unavailable`.
    """
    from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

    from reverie.embedded.home import open_home, read_run_file
    from reverie.embedded.lock import describe_holder

    home = open_home(settings.home)

    def read_start() -> dict[str, Any] | None:
        # The run file is read first, because the process deletes it when it ends.
        note = read_run_file(home, "up")
        if note.get("pid") == process.pid and note.get("gateway"):
            return note
        return {} if process.poll() is not None else None

    retrying = Retrying(
        stop=stop_after_delay(UP_TIMEOUT),
        wait=wait_fixed(POLL_INTERVAL),
        retry=retry_if_result(lambda note: note is None),
    )
    try:
        result = retrying(read_start)
    except RetryError:
        result = None
    if not result:
        if result is not None and has_supervisor(settings):
            raise Conflict(describe_holder(home))
        raise Unavailable("Reverie", explain_failure(settings, result is None, process))
    return result


def explain_failure(
    settings: Settings, starting: bool, process: subprocess.Popen[bytes] | None
) -> str:
    """Why Reverie did not start, or not yet: the reason in `up.log`, unless it was stopped.

    `process`: the `reverie up` that this process started.
    """
    log = settings.home / "logs" / UP_LOG
    if starting:
        return f"it is still starting: try again later; {log} may say more"
    # It says nothing then: the last line is of an earlier start.
    if process is not None and (process.poll() or 0) <= 0:
        return f"`reverie up` was stopped before all was up ({log})"
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return (
        f"`reverie up` ended: {_error_detail(lines[-1]) if lines else 'without a message'} ({log})"
    )


class LocalGateway:
    """Calls the gateway of this machine, and starts it if necessary."""

    def __init__(
        self, settings: Settings, sets: Sequence[str] = (), agent: str = "", key_project: str = ""
    ) -> None:
        self.project = settings.project
        self._key_of = (agent, key_project)
        self.settings = settings
        self._sets = sets
        self._caller: HttpTransport | None = None
        self._lock = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    async def prepare(self) -> None:
        """Finds or starts the gateway; a failure is reported by the next call."""
        try:
            await self._get_caller()
        except Unavailable:
            return

    async def __call__(
        self, method: str, path: str, query: Any = None, body: Any = None, headers: Any = None
    ) -> tuple[int, Any]:
        """Status and body of the response. Raises `Unavailable`."""
        from reverie.client.errors import ApiError

        caller = await self._get_caller()
        try:
            if isinstance(body, str):
                timeout = self.settings.request_timeout
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
        """Closes the connections; the next call finds the gateway again."""
        caller, self._caller = self._caller, None
        if caller is not None:
            await caller.close()

    async def _get_caller(self) -> HttpTransport:
        async with self._lock:
            if self._caller is None:
                endpoint = await self._find_or_start()
                self._caller = await asyncio.to_thread(_create_caller, endpoint, self.settings)
            return self._caller

    async def _find_or_start(self) -> GatewayLocation:
        """The gateway, started if it may be. Raises `Unavailable`."""
        endpoint = await asyncio.to_thread(find_gateway, self.settings, *self._key_of)
        if endpoint is not None:
            return endpoint
        if self.settings.gateway_url is not None:
            raise Unavailable("Reverie", "set REVERIE_API_KEY for gateway_url")
        if await asyncio.to_thread(has_supervisor, self.settings):
            return await self._wait_until_up()
        if not self.settings.mcp_autostart:
            raise Unavailable("Reverie", "it does not run here: ask the user to run `reverie up`")
        self._process = await asyncio.to_thread(start_in_background, self.settings, self._sets)
        return await self._wait_until_up()

    async def _wait_until_up(self) -> GatewayLocation:
        """The gateway, as soon as it is up."""
        from tenacity import AsyncRetrying, retry_if_result, stop_after_delay, wait_fixed

        retrying = AsyncRetrying(
            stop=stop_after_delay(START_TIMEOUT),
            wait=wait_fixed(POLL_INTERVAL),
            retry=retry_if_result(lambda state: state == (None, True)),
            retry_error_callback=lambda _: (None, True),
        )
        state: tuple[GatewayLocation | None, bool] = await retrying(asyncio.to_thread, self._poll)
        endpoint, starting = state
        if endpoint is None:
            raise Unavailable("Reverie", explain_failure(self.settings, starting, self._process))
        return endpoint

    def _poll(self) -> tuple[GatewayLocation | None, bool]:
        """The gateway, and whether it is still starting."""
        is_own_start = self._process is not None and self._process.poll() is None
        starting = is_own_start or has_supervisor(self.settings)
        return find_gateway(self.settings, *self._key_of), starting


def _error_detail(line: str) -> str:
    """The detail of an error that `--json` printed."""
    with suppress(ValueError, KeyError, TypeError):
        return str(json.loads(line)["detail"])
    return line


def _create_caller(endpoint: GatewayLocation, settings: Settings) -> HttpTransport:
    """Creates the HTTP client; it runs in a thread, because its import is slow."""
    from reverie.client import HttpTransport

    return HttpTransport(
        endpoint.url,
        endpoint.key,
        timeout=settings.request_timeout,
        agent="reverie-mcp",
        user=detect_user(settings.user or "", os.environ),
        ca=settings.trusted_ca_file,
    )
