"""The typed Python client of a gateway: `AsyncReverie`."""

from reverie.client.calls import Answered, Caller
from reverie.client.errors import Refused
from reverie.client.reverie import AsyncReverie

__all__ = ["Answered", "AsyncReverie", "Caller", "Refused"]
