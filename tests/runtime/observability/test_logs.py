"""Format, context and redaction of log lines."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from aiohttp.http_exceptions import BadHttpMessage
from opentelemetry import trace

from reverie.domain.redaction.vault_secrets import SecretMatcher, VaultSecret
from reverie.runtime.observability.logs import configure_logs, hide_secrets, mask_credentials
from reverie.runtime.observability.tracing import install_provider
from reverie.runtime.settings.settings import Settings
from tests.support.log_capture import restored_logging

log = structlog.get_logger("reverie.sample")


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """A stream that takes the log, with the loggers put back afterwards."""
    with restored_logging() as taken:
        yield taken


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_json_line_has_event_level_time_service_and_data(out: io.StringIO) -> None:
    configure_logs(Settings(), "ingest", stream=out)
    log.info("memory_written", count=2, scope="global")
    (line,) = lines(out)
    assert line["event"] == "memory_written"
    assert (line["level"], line["service"], line["logger"]) == ("info", "ingest", "reverie.sample")
    assert (line["count"], line["scope"]) == (2, "global")
    assert line["timestamp"].endswith("Z")


def test_lines_of_the_standard_library_use_the_same_format(out: io.StringIO) -> None:
    configure_logs(Settings(), "ingest", stream=out)
    logging.getLogger("elsewhere").warning("%s is %d", "it", 3)
    (line,) = lines(out)
    assert (line["event"], line["logger"], line["service"]) == ("it is 3", "elsewhere", "ingest")


def test_an_invalid_http_request_is_no_error_and_is_not_quoted(out: io.StringIO) -> None:
    configure_logs(Settings(), "ingest", stream=out)
    server = logging.getLogger("aiohttp.server")
    server.error("Error from %s", "::1", exc_info=BadHttpMessage("Cookie: my-own-secret"))
    server.error("Error from %s", "::1", exc_info=ValueError("a bug"))
    no_http, bug = lines(out)
    assert no_http["level"] == "info"
    assert "my-own-secret" not in json.dumps(no_http)
    assert bug["level"] == "error"
    assert "a bug" in bug["exception"]


def test_a_line_has_its_trace_and_bound_values(out: io.StringIO) -> None:
    install_provider("test")
    configure_logs(Settings(), "ingest", stream=out)
    structlog.contextvars.bind_contextvars(tenant="acme")
    with trace.get_tracer("test").start_as_current_span("work") as span:
        log.info("inside")
    log.info("outside")
    inside, outside = lines(out)
    assert inside["trace_id"] == trace.format_trace_id(span.get_span_context().trace_id)
    assert inside["span_id"] == trace.format_span_id(span.get_span_context().span_id)
    assert (inside["tenant"], "trace_id" in outside) == ("acme", False)


@pytest.mark.parametrize("form", ["json", "console"])
def test_every_string_is_redacted(out: io.StringIO, form: Any) -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2", "[gone]")

    configure_logs(Settings(log_format=form), "ingest", redact, out)
    password = "hunter2"
    try:
        raise ValueError(f"no {password}")
    except ValueError:
        log.exception(
            "broke", text=password, inner={"a": [password, {password}]}, thing=ValueError(password)
        )
    logging.getLogger("elsewhere").error("also %s", password)
    text = out.getvalue()
    assert "hunter2" not in text
    assert text.count("[gone]") >= 6
    assert "ValueError" in text


def test_a_traceback_shows_no_local_variables(out: io.StringIO) -> None:
    configure_logs(Settings(log_format="console"), "ingest", stream=out)
    local_value = "local" * 3
    try:
        raise ValueError(len(local_value))
    except ValueError:
        log.exception("broke")
    assert "Traceback" in out.getvalue()
    assert "locallocallocal" not in out.getvalue()


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgres://u:pass@h/d", "postgres://u:***@h/d"),
        ("nats://:pass@h", "nats://:***@h"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("{'authorization': 'bearer abc'}", "{'authorization': 'bearer ***'}"),
        ("http://h:3456/path@x", "http://h:3456/path@x"),
        ("nothing here", "nothing here"),
    ],
)
def test_a_value_under_a_credential_name_is_always_masked(text: str, masked: str) -> None:
    assert mask_credentials(text) == masked


def test_secrets_of_the_vault_are_redacted_until_they_leave_the_vault(out: io.StringIO) -> None:
    configure_logs(Settings(), "ingest", stream=out)
    log.info("s3ven tul1ps")
    before = len(out.getvalue())
    hide_secrets(7, SecretMatcher([VaultSecret("global", "gate", "s3ven tul1ps")]))
    hide_secrets(8, SecretMatcher([VaultSecret("global", "pin", "81502736419")]))
    try:
        log.info("s3ven tul1ps")
        log.info(
            "opened by s3ven tul1ps",
            body={"s3ven tul1ps": ["81502736419"]},
            url="/?q=s3ven%20tul1ps",
        )
        try:
            raise ValueError("not s3ven tul1ps")
        except ValueError:
            log.exception("failed")
        logging.getLogger("elsewhere").warning("said %s", "s3ven tul1ps")
        written = out.getvalue()[before:]
        assert not [
            word for word in ("s3ven tul1ps", "81502736419", "s3ven%20tul1ps") if word in written
        ]
        assert written.count("[REDACTED_VAULT]") >= 6
        hide_secrets(7, SecretMatcher([]))
        log.info("s3ven tul1ps bloom")
        assert lines(out)[-1]["event"] == "s3ven tul1ps bloom"
    finally:
        hide_secrets(7, SecretMatcher([]))
        hide_secrets(8, SecretMatcher([]))


def test_a_line_of_a_tenant_is_searched_for_the_secrets_of_that_tenant_only(
    out: io.StringIO,
) -> None:
    configure_logs(Settings(), "ingest", stream=out)
    secrets = {7: ("tidewater", "s3ven tul1ps"), 8: ("harbour", "n1ne roses-x")}
    try:
        for number, (name, text) in secrets.items():
            with structlog.contextvars.bound_contextvars(tenant=name):
                hide_secrets(number, SecretMatcher([VaultSecret("global", "k", text)]))
        for name in ("tidewater", "harbour"):
            log.info("s3ven tul1ps and n1ne roses-x", tenant=name)
        log.info("s3ven tul1ps and n1ne roses-x")
        assert [line["event"] for line in lines(out)] == [
            "[REDACTED_VAULT] and n1ne roses-x",
            "s3ven tul1ps and [REDACTED_VAULT]",
            "[REDACTED_VAULT] and [REDACTED_VAULT]",
        ]
    finally:
        for number in secrets:
            hide_secrets(number, SecretMatcher([]))
