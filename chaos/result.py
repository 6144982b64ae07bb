"""The plan and result of a run, and its notes on disk."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from chaos.clients import Log
from chaos.history import Violation

TENANTS = ["acme", "bolt", "core"]
RECOVERY_LIMIT = 15.0
"""Seconds within which each endpoint is back after a fault."""


@dataclass(frozen=True)
class ChaosPlan:
    """How long and how hard: `clients` of each tenant act until there are `operations`
    acknowledged and `faults` were survived; `calm`: seconds between two strikes, at most.
    `several`: on three NATS servers and a Postgres with a standby, which takes over half way;
    `clock`: the services' can be moved; `minutes`: what all of it may take; `strikes`: by their
    names, joined by +, those to be dealt again and again in place of a shuffled deck of all.
    """

    seed: int = 1
    operations: int = 10_000
    faults: int = 100
    clients: int = 4
    calm: float = 1.5
    several: bool = False
    clock: bool = True
    minutes: float = 40.0
    strikes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Strike:
    """Faults that struck together, so many seconds after the start; how long they lasted, and by
    endpoint the seconds from their end to its next answer."""

    faults: tuple[str, ...]
    at: float
    lasted: float
    back: dict[str, float]

    @property
    def recovery(self) -> float:
        """Seconds until the last of the endpoints was back."""
        return max(self.back.values(), default=0.0)


@dataclass
class ChaosResult:
    """What a run was."""

    plan: ChaosPlan
    log: Log = field(default_factory=Log)
    strikes: list[Strike] = field(default_factory=list)
    longest_gaps: dict[str, float] = field(default_factory=dict)
    """By endpoint, the longest time between two answers, in seconds."""
    refused: dict[str, Counter[str]] = field(default_factory=dict)
    """By endpoint, what came in place of an answer."""
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    settle_seconds: float = 0.0
    """Seconds from the last call until nothing was queued."""
    checked: bool = False
    """Whether it came to its end, and all notes were held against what is there."""
    wrong: list[Violation] = field(default_factory=list)
    unavailable_faults: tuple[str, ...] = ()
    """Faults that could not be done here."""

    @property
    def fault_counts(self) -> Counter[str]:
        """How often each fault came."""
        return Counter(fault for strike in self.strikes for fault in strike.faults)

    def recoveries(self) -> dict[str, float]:
        """By fault, the longest time until the last endpoint was back, in seconds; of the times
        when the fault came alone, if there are any."""
        found = {}
        for fault in sorted(self.fault_counts):
            alone = [strike for strike in self.strikes if strike.faults == (fault,)]
            beside = [strike for strike in self.strikes if fault in strike.faults]
            found[fault] = max(strike.recovery for strike in alone or beside)
        return found

    def failures(self) -> list[str]:
        """All that must not be."""
        late = [
            f"{endpoint} was back {took:.1f} s after {' and '.join(strike.faults)}"
            for strike in self.strikes
            for endpoint, took in strike.back.items()
            if took > RECOVERY_LIMIT
        ]
        unfinished = [] if self.checked else ["the run did not come to its end"]
        return [*map(str, self.wrong), *self.log.unexpected, *late, *unfinished]


class HistoryFile:
    """Writes down what the clients noted and what struck, as it comes: `notes.jsonl`."""

    def __init__(self, folder: Path, result: ChaosResult) -> None:
        self._file = folder / "notes.jsonl"
        self._result = result
        self._written = [0, 0, 0]

    def write(self) -> None:
        """What came since the last time."""
        log = self._result.log
        lists: tuple[list[Any], ...] = (log.calls, log.reads, self._result.strikes)
        with self._file.open("a") as file:
            for at, (kind, all_of) in enumerate(
                zip(("call", "read", "strike"), lists, strict=True)
            ):
                for one in all_of[self._written[at] :]:
                    line = {"what": kind, **asdict(one)}
                    file.write(json.dumps(line, default=sorted) + "\n")
                self._written[at] = len(all_of)
