"""The error of a refused gateway call. A gateway that does not answer raises `Unavailable`."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from reverie.contracts.base import Problem
from reverie.contracts.problems import PROBLEM_TITLES
from reverie.domain.core.errors import ReverieError


@dataclass(eq=False)
class ApiError(ReverieError):
    """A refusal by the gateway; the problem describes the error, its place, and a remedy."""

    problem: Problem

    def __str__(self) -> str:
        return self.problem.detail

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def problem_code(self) -> str:
        """The stable code of the problem, as `not_found` or `conflict`."""
        return self.problem.code


def parse_problem(status: int, body: object) -> Problem:
    """Parses the problem document of an answer; converts other content to one."""
    try:
        return Problem.model_validate(body)
    except ValidationError:
        code = "unavailable" if status in {502, 503, 504} else "malformed"
        detail = f"the gateway's address answered {status} without a problem document"
        if 300 <= status < 400:
            detail = f"the gateway's address redirects ({status}): give the address it leads to"
        # Not by `build_problem`: it redacts, which needs rules that the client does not have.
        return Problem(
            type=f"urn:reverie:problem:{code}",
            title=PROBLEM_TITLES[code],
            status=status,
            detail=detail,
            code=code,
        )


def build_api_error(status: int, body: object, call: str) -> ApiError:
    """The refusal; a route that the gateway does not have is named, for it may be older."""
    document = parse_problem(status, body)
    if document.code == "not_found" and document.detail.startswith("no route "):
        detail = f"this gateway has no {call}: it may be older than this client"
        document = document.model_copy(update={"detail": detail})
    return ApiError(document)
