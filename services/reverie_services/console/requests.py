"""Reads forms and cookies of browsers, and builds pages, redirects, cookies and headers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl

from multidict import CIMultiDict, MultiDict
from yarl import URL

from reverie.domain.core.errors import MalformedInput
from reverie.runtime.http.exchange import IncomingRequest, OutgoingResponse
from reverie.runtime.http.streaming import read_body

HOME = "/console"
FORM_LIMIT = 256 * 1024
"""The size limit of a form (bytes): the content of a memory in percent-encoding fits."""
FORM_SECONDS = 30.0
"""Seconds within which a form must arrive."""
_MAX_FIELDS = 2_000
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


async def read_form(request: IncomingRequest) -> MultiDict[str]:
    """The fields of a posted form. Raises `MalformedInput` for a body of another type."""
    media_type = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise MalformedInput("a form must be sent as application/x-www-form-urlencoded")
    try:
        async with asyncio.timeout(FORM_SECONDS):
            body = await read_body(request, FORM_LIMIT)
    except TimeoutError:
        raise MalformedInput(f"the form took longer than {FORM_SECONDS:g} seconds") from None
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        raise MalformedInput("the form cannot be read") from None
    return MultiDict(pairs)


def read_cookies(headers: Mapping[str, str]) -> dict[str, str]:
    """The cookies of a request; none if they cannot be parsed."""
    try:
        cookies = SimpleCookie(headers.get("Cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in cookies.items()}


def build_cookie(
    name: str, value: str, seconds: int, secure: bool, same_site: str = "Strict"
) -> str:
    """A cookie of the console that scripts cannot read and, if Strict, other sites cannot send."""
    text = f"{name}={value}; Path={HOME}; Max-Age={seconds}; HttpOnly; SameSite={same_site}"
    return f"{text}; Secure" if secure else text


def is_same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a form was sent from a page of this host, as far as the browser says."""
    if headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        return False
    origin = headers.get("Origin")
    try:
        return origin is None or URL(origin).authority == URL(f"http://{headers['Host']}").authority
    except (KeyError, ValueError):
        return False


def local_path(text: str | None, default: str = HOME) -> str:
    """A path of the console to redirect to; the default if the address is elsewhere."""
    if not text or not text.startswith(HOME) or "\\" in text or ".." in text.partition("?")[0]:
        return default
    try:
        url = URL(text)
    except ValueError:
        return default
    is_local = not url.absolute and (url.path == HOME or url.path.startswith(f"{HOME}/"))
    return str(url) if is_local else default


def add_query(path: str, **values: str) -> str:
    """The path with further values in its query."""
    return str(URL(path).update_query(values))


def redirect(path: str, *cookies: str) -> OutgoingResponse:
    """A redirect after a form, or to the identity provider."""
    response = OutgoingResponse(303, CIMultiDict({"Location": path, **SECURITY_HEADERS}))
    for cookie in cookies:
        response.headers.add("Set-Cookie", cookie)
    return response


def html_response(status: int, page: str) -> OutgoingResponse:
    """A page."""
    headers = CIMultiDict({"Content-Type": "text/html; charset=utf-8", **SECURITY_HEADERS})
    return OutgoingResponse(status, headers, page.encode(errors="replace"))


def file_response(name: str, media_type: str, content: str) -> OutgoingResponse:
    """A file to save."""
    data = content.encode(errors="replace")
    return data_response(data, f"{media_type}; charset=utf-8", name)


def data_response(data: bytes, content_type: str, save_as: str | None = None) -> OutgoingResponse:
    """Bytes of exactly that type; with a name, a file to save."""
    headers = CIMultiDict(
        {"Content-Type": content_type, "X-Content-Type-Options": "nosniff", **SECURITY_HEADERS}
    )
    if save_as is not None:
        headers["Content-Disposition"] = f'attachment; filename="{save_as}"'
    return OutgoingResponse(200, headers, data)
