"""The asynchronous client of the configured gateway, and a progress display for transfers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from reverie.cli.app.output import err

if TYPE_CHECKING:
    from reverie.client import AsyncReverie
    from reverie.runtime.settings.settings import Settings

_REPORT_EVERY_BYTES = 16 * 1024 * 1024

AdvanceProgress = Callable[[int], None]


def open_client(settings: Settings, agent: str) -> AsyncReverie:
    """A client of the gateway that these settings select. Raises as `resolve_endpoint`."""
    from reverie.cli.app.gateway_discovery import endpoint_from_settings
    from reverie.client import AsyncReverie

    url, key = endpoint_from_settings(settings)
    timeout, ca = settings.request_timeout, settings.trusted_ca_file
    return AsyncReverie(url, key, timeout=timeout, agent=agent, ca=ca)


@contextmanager
def show_progress(label: str, size: int | None) -> Iterator[AdvanceProgress]:
    """Shows a bar on a terminal, and elsewhere a line for every 16 MiB, on standard error."""
    if err().is_terminal:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        with Progress(
            TextColumn(label), BarColumn(), DownloadColumn(), console=err(), transient=True
        ) as bar:
            task = bar.add_task(label, total=size)
            yield lambda count: bar.advance(task, count)
        return
    done = 0

    def report(count: int) -> None:
        nonlocal done
        before, done = done, done + count
        if before // _REPORT_EVERY_BYTES != done // _REPORT_EVERY_BYTES:
            err().print(f"{label}: {done // 1024 // 1024} MiB", markup=False)

    yield report
