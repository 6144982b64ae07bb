"""One thing that `reverie doctor` looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One thing looked at: what was found, and how to mend it where it is wrong."""

    level: Literal["ok", "note", "error"]
    what: str
    mend: str = ""
