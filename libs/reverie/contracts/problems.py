"""Problem documents (RFC 9457), and the HTTP and gRPC status of each error code."""

from __future__ import annotations

from reverie.contracts.base import Problem
from reverie.domain.core.errors import ReverieError
from reverie.domain.redaction.redactor import CREDENTIAL_REDACTOR, Redactor

HTTP_STATUS: dict[str, int] = {
    "invalid": 422,
    "malformed": 400,
    "too_large": 413,
    "unauthenticated": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "precondition_failed": 412,
    "idempotency_mismatch": 422,
    "too_many": 429,
    "full": 409,
    "unavailable": 503,
    "misconfigured": 500,
    "internal": 500,
}

GRPC_STATUS: dict[str, str] = {
    "invalid": "INVALID_ARGUMENT",
    "malformed": "INVALID_ARGUMENT",
    "too_large": "INVALID_ARGUMENT",
    "unauthenticated": "UNAUTHENTICATED",
    "forbidden": "PERMISSION_DENIED",
    "not_found": "NOT_FOUND",
    "method_not_allowed": "UNIMPLEMENTED",
    "conflict": "ABORTED",
    "precondition_failed": "FAILED_PRECONDITION",
    "idempotency_mismatch": "INVALID_ARGUMENT",
    "too_many": "RESOURCE_EXHAUSTED",
    "full": "RESOURCE_EXHAUSTED",
    "unavailable": "UNAVAILABLE",
    "misconfigured": "INTERNAL",
    "internal": "INTERNAL",
}

PROBLEM_TITLES: dict[str, str] = {
    "invalid": "A field is not valid",
    "malformed": "The request cannot be read",
    "too_large": "Too large",
    "unauthenticated": "No valid key",
    "forbidden": "Not permitted",
    "not_found": "Not found",
    "method_not_allowed": "Method not allowed",
    "conflict": "Conflict",
    "precondition_failed": "Changed meanwhile",
    "idempotency_mismatch": "Idempotency key used with another body",
    "too_many": "Too many requests",
    "full": "The tenant is full",
    "unavailable": "Not available now",
    "misconfigured": "Misconfigured",
    "internal": "Internal error",
}


def build_problem(
    code: str, detail: str, redactor: Redactor = CREDENTIAL_REDACTOR, **fields: object
) -> Problem:
    """A problem document of a known code. Credentials in quoted request data are redacted."""
    clean = {name: redactor.redact_value(value).value for name, value in fields.items()}
    return Problem.model_validate(
        {
            "type": f"urn:reverie:problem:{code}",
            "title": PROBLEM_TITLES[code],
            "status": HTTP_STATUS[code],
            "detail": redactor.redact(detail).text,
            "code": code,
            **clean,
        }
    )


def problem_from_error(error: ReverieError, redactor: Redactor = CREDENTIAL_REDACTOR) -> Problem:
    """The problem document of an error. An internal error (500) reveals no details."""
    if HTTP_STATUS[error.code] == 500:
        return build_problem(
            "internal", "something failed inside; the trace id finds it in the logs"
        )
    facts = error.details()
    return build_problem(
        error.code,
        str(error),
        redactor,
        field=facts.get("field"),
        errors=facts.get("errors"),
        current=facts.get("current"),
    )
