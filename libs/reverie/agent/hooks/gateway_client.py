"""A minimal gateway client for hooks, built on sockets so that it imports quickly."""

from __future__ import annotations

import fcntl
import json
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

DEFAULT_URL = "http://127.0.0.1:3456"
MAX_RESPONSE_BYTES = 8_000_000
"""An answer that is larger is none of ours."""
_UNRESERVED_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


class HookGatewayUnavailable(Exception):
    """No gateway answers, or it cannot now; the same call may be made later."""


class HookCallRefused(Exception):
    """The gateway refused the call; `status` says how, `code` why."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


class HookGateway:
    """A gateway, its key, how many seconds a call may take, and a file of authorities to trust."""

    def __init__(self, url: str, key: str, timeout: float, ca: str = "") -> None:
        self.ca = ca
        self.url = url.rstrip("/")
        self.key = key
        self.timeout = timeout

    def request(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The decoded answer. Raises `HookGatewayUnavailable` and `HookCallRefused`."""
        data = b"" if body is None else json.dumps(body).encode()
        request_headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "reverie-hook",
            **(headers or {}),
        }
        try:
            status, response_body = self._send_request(method, path, data, request_headers)
            decoded = json.loads(response_body) if response_body else None
        except (OSError, ValueError) as error:
            raise HookGatewayUnavailable(str(error)) from error
        if status in {429, 500, 502, 503, 504}:
            raise HookGatewayUnavailable(f"the gateway answered {status}")
        if status >= 300:
            code = decoded.get("code") if isinstance(decoded, dict) else None
            raise HookCallRefused(status, str(code))
        return decoded

    def _send_request(
        self, method: str, path: str, data: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        scheme, _, address = self.url.partition("://")
        authority, slash, prefix = address.partition("/")
        if scheme != "http":
            return _send_tls_request(self, method, f"{slash}{prefix}{path}", data, headers)
        host, port = _split_host_and_port(authority)
        lines = [f"{method} {slash}{prefix}{path} HTTP/1.0", f"Host: {authority}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""])
        with socket.create_connection(
            _socket_address(host, port), timeout=self.timeout
        ) as connection:
            connection.sendall(head.encode("latin-1") + data)
            return _read_response(connection)


def _split_host_and_port(authority: str) -> tuple[str, int]:
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = authority, "80"
    return host.strip("[]"), int(port)


def _socket_address(host: str, port: int) -> Any:
    """As bytes: of a text that could be an international name, half as much again is loaded."""
    return (host.encode() if host.isascii() else host), port


def quote_query(text: str) -> str:
    """A text as a query takes it, without `urllib`."""
    return "".join(
        chr(byte) if byte in _UNRESERVED_BYTES else f"%{byte:02X}"
        for byte in text.encode("utf-8", "replace")
    )


def _read_response(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body; the end of the connection ends the body."""
    received = bytearray()
    while chunk := connection.recv(65536):
        received += chunk
        if len(received) > MAX_RESPONSE_BYTES:
            raise ValueError("the answer is too long")
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    status_parts = head.split(None, 2)
    if len(status_parts) < 2 or not status_parts[0].startswith(b"HTTP/"):
        raise ValueError("that is no HTTP")
    lengths = [
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    if lengths and len(body) < lengths[0]:
        raise ValueError("the answer was cut off")
    return int(status_parts[1]), body


def _send_tls_request(
    gateway: HookGateway, method: str, path: str, data: bytes, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    import ssl
    from http.client import HTTPException, HTTPSConnection

    authority = gateway.url.partition("://")[2].partition("/")[0]
    context = ssl.create_default_context()
    if gateway.ca:
        context.load_verify_locations(gateway.ca)
    connection = HTTPSConnection(authority, timeout=gateway.timeout, context=context)
    try:
        connection.request(method, path, data or None, dict(headers))
        response = connection.getresponse()
        return response.status, response.read(MAX_RESPONSE_BYTES)
    except HTTPException as error:
        raise ValueError(str(error)) from error
    finally:
        connection.close()


def resolve_home(environ: Mapping[str, str]) -> str:
    """The folder that holds all data."""
    return os.path.abspath(os.path.expanduser(environ.get("REVERIE_HOME") or "~/.reverie"))


def find_gateway(environ: Mapping[str, str], timeout: float) -> HookGateway | None:
    """The gateway that is set with its key, else the one that runs on the home folder; None where
    none is.

    What is set stands in the environment or in the home folder's `config.toml`. A file of the
    folder that an agent works in does not say where keys are sent: hooks run by themselves.
    """
    home = resolve_home(environ)
    config = _read_config(os.path.join(home, "config.toml"))
    configured_url = str(
        environ.get("REVERIE_GATEWAY_URL") or config.get("gateway_url") or ""
    ).rstrip("/")
    configured_key = str(environ.get("REVERIE_API_KEY") or config.get("api_key") or "")
    url, key = _locate_gateway(
        home,
        configured_url
        if "://" in configured_url or not configured_url
        else f"http://{configured_url}",
        configured_key,
    )
    if not url or not key:
        return None
    return HookGateway(url, key, timeout, _find_ca_file(environ, config, home))


def _locate_gateway(home: str, configured_url: str, configured_key: str) -> tuple[str, str]:
    """The gateway and the key to it, as commands find them: the key that the home folder keeps
    opens the Reverie that runs on it alone."""
    if configured_url and configured_key:
        return configured_url, configured_key
    if not _is_running(home):
        return DEFAULT_URL, configured_key
    url = str(_read_json(os.path.join(home, "run", "up.json")).get("gateway") or "")
    if configured_url and configured_url != url:
        return configured_url, ""
    return url, configured_key or _read_text(os.path.join(home, "secrets", "api_key"))


def _find_ca_file(environ: Mapping[str, str], config: Mapping[str, Any], home: str) -> str:
    """The file of authorities that is set, else the one that the home folder holds, if any."""
    configured = environ.get("REVERIE_CA_FILE") or config.get("ca_file")
    local_ca = os.path.join(home, "tls", "ca.pem")
    if configured:
        return os.path.join(home, os.path.expanduser(str(configured)))
    return local_ca if os.path.exists(local_ca) else ""


def _is_running(home: str) -> bool:
    """Whether a supervisor holds the home folder: another may answer at the port it had."""
    try:
        fd = os.open(os.path.join(home, "run", "up.lock"), os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _read_config(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    import tomllib

    try:
        return tomllib.loads(_read_text(path))
    except tomllib.TOMLDecodeError:
        return {}


def _read_json(path: str) -> dict[str, Any]:
    try:
        value = json.loads(_read_text(path))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
