"""The synchronous client has every call of the asynchronous one; importing either is cheap."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import reverie.client
from reverie.client import AsyncReverie, AsyncSession, Reverie, Session
from reverie.domain.core.errors import Unavailable

TYPED_REQUESTS = {"request", "paginate"}
"""Building blocks of the asynchronous client's own calls."""


@pytest.mark.parametrize(("awaits", "blocks"), [(AsyncReverie, Reverie), (AsyncSession, Session)])
def test_each_async_call_has_a_synchronous_counterpart_with_the_same_signature(
    awaits: type, blocks: type
) -> None:
    calls = inspect.getmembers(awaits, inspect.isfunction)
    names = {name for name, _ in calls if not name.startswith("_")} - TYPED_REQUESTS
    for name in names:
        call, twin = getattr(awaits, name), getattr(blocks, name)
        assert not twin.__code__.co_flags & inspect.CO_COROUTINE, name
        assert list(inspect.signature(twin).parameters) == list(inspect.signature(call).parameters)
        assert twin.__doc__, name


def test_importing_the_client_loads_neither_http_nor_the_models() -> None:
    code = (
        "import sys; from reverie.client import AsyncReverie, Reverie; "
        "print([m for m in ('aiohttp', 'pydantic', 'tenacity') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_exported_by_the_client_can_be_imported() -> None:
    for name in reverie.client.__all__:
        assert getattr(reverie.client, name).__name__ == name
    assert reverie.client.Unavailable is Unavailable
