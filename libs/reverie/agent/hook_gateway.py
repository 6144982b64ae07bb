"""The gateway as a hook reaches it: where it is, and one call with nothing but sockets.

A hook is a process of its own, started many times a turn, so that what it imports is what the
agent waits for: of the standard library only what takes a few milliseconds.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ADDRESS = "http://127.0.0.1:3456"
MOST_BYTES = 8_000_000
"""An answer that is larger is none of ours."""
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"


class Away(Exception):
    """No gateway answers, or it cannot now; the same call may be made later."""


class Refused(Exception):
    """The gateway refused the call; `status` says how, `code` why."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


class Gateway:
    """A gateway, its key, how many seconds a call may take, and a file of authorities to trust."""

    def __init__(self, url: str, key: str, seconds: float, ca: str = "") -> None:
        self.ca = ca
        self.url = url.rstrip("/")
        self.key = key
        self.seconds = seconds

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The decoded answer. Raises `Away` and `Refused`."""
        data = b"" if body is None else json.dumps(body).encode()
        sent = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "reverie-hook",
            **(headers or {}),
        }
        try:
            status, answer = self._exchange(method, path, data, sent)
            found = json.loads(answer) if answer else None
        except (OSError, ValueError) as error:
            raise Away(str(error)) from error
        if status in {429, 500, 502, 503, 504}:
            raise Away(f"the gateway answered {status}")
        if status >= 300:
            code = found.get("code") if isinstance(found, dict) else None
            raise Refused(status, str(code))
        return found

    def _exchange(
        self, method: str, path: str, data: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        scheme, _, rest = self.url.partition("://")
        where, slash, prefix = rest.partition("/")
        if scheme != "http":
            return _by_tls(self, method, f"{slash}{prefix}{path}", data, headers)
        host, port = _host_and_port(where)
        lines = [f"{method} {slash}{prefix}{path} HTTP/1.0", f"Host: {where}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""])
        with socket.create_connection(_plain(host, port), timeout=self.seconds) as wire:
            wire.sendall(head.encode("latin-1") + data)
            return _read(wire)


def _host_and_port(where: str) -> tuple[str, int]:
    host, colon, port = where.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = where, "80"
    return host.strip("[]"), int(port)


def _plain(host: str, port: int) -> Any:
    """As bytes: of a text that could be an international name, half as much again is loaded."""
    return (host.encode() if host.isascii() else host), port


def quoted(text: str) -> str:
    """A text as a query takes it, without `urllib`."""
    return "".join(
        chr(one) if one in _PLAIN else f"%{one:02X}" for one in text.encode("utf-8", "replace")
    )


def _read(wire: socket.socket) -> tuple[int, bytes]:
    """Status and body; the end of the connection ends the body."""
    got = bytearray()
    while chunk := wire.recv(65536):
        got += chunk
        if len(got) > MOST_BYTES:
            raise ValueError("the answer is too long")
    head, _, body = bytes(got).partition(b"\r\n\r\n")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/"):
        raise ValueError("that is no HTTP")
    lengths = [
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    if lengths and len(body) < lengths[0]:
        raise ValueError("the answer was cut off")
    return int(words[1]), body


def _by_tls(
    gateway: Gateway, method: str, path: str, data: bytes, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    import ssl
    from http.client import HTTPException, HTTPSConnection

    where = gateway.url.partition("://")[2].partition("/")[0]
    context = ssl.create_default_context()
    if gateway.ca:
        context.load_verify_locations(gateway.ca)
    wire = HTTPSConnection(where, timeout=gateway.seconds, context=context)
    try:
        wire.request(method, path, data or None, dict(headers))
        answer = wire.getresponse()
        return answer.status, answer.read(MOST_BYTES)
    except HTTPException as error:
        raise ValueError(str(error)) from error
    finally:
        wire.close()


def home_of(environ: Mapping[str, str]) -> str:
    """The folder that holds all data."""
    return os.path.abspath(os.path.expanduser(environ.get("REVERIE_HOME") or "~/.reverie"))


def find_gateway(environ: Mapping[str, str], seconds: float) -> Gateway | None:
    """The gateway that is set with its key, else the one that runs on the home folder; None where
    none is.

    What is set stands in the environment or in the home folder's `config.toml`. A file of the
    folder that an agent works in does not say where keys are sent: hooks run by themselves.
    """
    home = home_of(environ)
    kept = _user_file(os.path.join(home, "config.toml"))
    named = str(environ.get("REVERIE_GATEWAY_URL") or kept.get("gateway_url") or "").rstrip("/")
    own = str(environ.get("REVERIE_API_KEY") or kept.get("api_key") or "")
    url, key = _place(home, named if "://" in named or not named else f"http://{named}", own)
    if not url or not key:
        return None
    return Gateway(url, key, seconds, _authority(environ, kept, home))


def _place(home: str, named: str, own: str) -> tuple[str, str]:
    """The gateway and the key to it, as commands find them: the key that the home folder keeps
    opens the Reverie that runs on it alone."""
    if named and own:
        return named, own
    if not _runs(home):
        return ADDRESS, own
    url = str(_json_of(os.path.join(home, "run", "up.json")).get("gateway") or "")
    if named and named != url:
        return named, ""
    return url, own or _text_of(os.path.join(home, "secrets", "api_key"))


def _authority(environ: Mapping[str, str], kept: Mapping[str, Any], home: str) -> str:
    """The file of authorities that is set, else the one that the home folder holds, if any."""
    given = environ.get("REVERIE_CA") or kept.get("ca")
    own = os.path.join(home, "tls", "ca.pem")
    if given:
        return os.path.join(home, os.path.expanduser(str(given)))
    return own if os.path.exists(own) else ""


def _runs(home: str) -> bool:
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


def _user_file(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    import tomllib

    try:
        return tomllib.loads(_text_of(path))
    except tomllib.TOMLDecodeError:
        return {}


def _json_of(path: str) -> dict[str, Any]:
    try:
        found = json.loads(_text_of(path))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""
