"""The HTTP client of hooks and commands.

Importing `http.client` takes about 20 ms, which an agent would wait for at every hook. So a plain
HTTP call uses a socket and HTTP/1.0; TLS and event streams use `http.client`.
"""

from __future__ import annotations

import json
import socket

from reverie.contracts.headers import user_header

# Not imported from `typing`, which is slow to import: a hook starts at every turn.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from http.client import HTTPConnection
    from typing import Any

MAX_RESPONSE_BYTES = 64_000_000
_UNAVAILABLE_STATUSES = frozenset({429, 500, 502, 503, 504})


class GatewayUnavailable(Exception):
    """The gateway does not answer, or cannot handle the call now; a later try may succeed."""


class CallRefused(Exception):
    """The gateway refused the call with this HTTP status and problem code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


class GatewayConnection:
    """Calls a gateway with a key, for a user. `timeout` is in seconds, `ca` a PEM file of
    authorities."""

    def __init__(
        self,
        url: str,
        key: str,
        timeout: float,
        ca: str = "",
        agent: str = "reverie-hook",
        user: str = "",
    ) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._ca = ca
        self._scheme, _, address = self.url.partition("://")
        self._authority, slash, prefix = address.partition("/")
        self._prefix = f"{slash}{prefix}"
        self._headers = {
            "Authorization": f"Bearer {key}",
            "User-Agent": agent,
            **user_header(user),
        }

    def request(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The decoded response. Raises `GatewayUnavailable` and `CallRefused`."""
        try:
            status, text = self.send(method, path, body, headers)
            decoded = json.loads(text) if text else None
        except (OSError, ValueError) as error:
            raise GatewayUnavailable(str(error)) from error
        if status in _UNAVAILABLE_STATUSES:
            raise GatewayUnavailable(f"the gateway answered {status}")
        if status >= 300:
            code = decoded.get("code") if isinstance(decoded, dict) else None
            raise CallRefused(status, str(code))
        return decoded

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Status and body of the response. Raises `OSError`, or `ValueError` for invalid HTTP."""
        data = b"" if body is None else json.dumps(body).encode()
        all_headers = {**self._headers, "Accept-Encoding": "identity", **(headers or {})}
        if data:
            all_headers["Content-Type"] = "application/json"
        if self._scheme == "http":
            return self._send_plain(method, path, data, all_headers)
        from http.client import HTTPException

        connection = self._connect()
        try:
            connection.request(method, f"{self._prefix}{path}", data or None, all_headers)
            response = connection.getresponse()
            return response.status, response.read(MAX_RESPONSE_BYTES)
        except HTTPException as error:
            raise ValueError(str(error)) from error
        finally:
            connection.close()

    def stream_lines(self, path: str) -> Iterator[tuple[int, bytes]]:
        """The status with each line of a streamed response, and once with an empty line first.

        Raises `OSError` and `ValueError` if the stream breaks.
        """
        from http.client import HTTPException

        connection = self._connect()
        try:
            headers = {**self._headers, "Accept": "text/event-stream"}
            connection.request("GET", f"{self._prefix}{path}", None, headers)
            response = connection.getresponse()
            yield response.status, b""
            for line in response:
                yield response.status, line
        except HTTPException as error:
            raise ValueError(str(error)) from error
        finally:
            connection.close()

    def _connect(self) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        if self._scheme == "http":
            return HTTPConnection(self._authority, timeout=self.timeout)
        import ssl

        context = ssl.create_default_context()
        if self._ca:
            context.load_verify_locations(self._ca)
        return HTTPSConnection(self._authority, timeout=self.timeout, context=context)

    def _send_plain(
        self, method: str, path: str, data: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        host, colon, port = self._authority.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = self._authority, "80"
        host = host.strip("[]")
        lines = [f"{method} {self._prefix}{path} HTTP/1.0", f"Host: {self._authority}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""])
        # An ASCII host is passed as bytes: for a string, Python would load its IDNA codec.
        address: Any = (host.encode() if host.isascii() else host), int(port)
        with socket.create_connection(address, timeout=self.timeout) as connection:
            connection.sendall(head.encode("latin-1") + data)
            return _read_response(connection)


def _read_response(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body; the body ends with the connection."""
    received = bytearray()
    while chunk := connection.recv(65536):
        received += chunk
        if len(received) > MAX_RESPONSE_BYTES:
            raise ValueError("the response is too large")
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    status_parts = head.split(None, 2)
    if len(status_parts) < 2 or not status_parts[0].startswith(b"HTTP/"):
        raise ValueError("the response is not HTTP")
    lengths = [
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    if lengths and len(body) < lengths[0]:
        raise ValueError("the response is incomplete")
    return int(status_parts[1]), body
