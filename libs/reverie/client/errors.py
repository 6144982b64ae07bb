"""What a gateway refused, as an error. What does not answer at all is `Unavailable`."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from reverie.contracts.base import Problem
from reverie.contracts.problems import TITLES, problem
from reverie.domain.errors import ReverieError


@dataclass(eq=False)
class Refused(ReverieError):
    """The gateway refused the call; `problem` says what was wrong, where, and what to do."""

    problem: Problem

    def __str__(self) -> str:
        return self.problem.detail

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def reason(self) -> str:
        """The stable code of the problem, as `not_found` or `conflict`."""
        return self.problem.code


def problem_in(status: int, body: object) -> Problem:
    """The problem document of an answer; what is none (a proxy's page) becomes one."""
    try:
        return Problem.model_validate(body)
    except ValidationError:
        code = "unavailable" if status in {502, 503, 504} else "malformed"
        made = problem(code, f"the gateway's address answered {status} without a problem document")
        return made.model_copy(update={"status": status, "title": TITLES[code]})


def refused(status: int, body: object, call: str) -> Refused:
    """The refusal; a route that the gateway does not have is named, for it may be older."""
    found = problem_in(status, body)
    if found.code == "not_found" and found.detail.startswith("no route "):
        told = f"this gateway has no {call}: it may be older than this client"
        found = found.model_copy(update={"detail": told})
    return Refused(found)
