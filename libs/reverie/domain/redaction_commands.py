"""Credentials told by the command, statement or pair they stand in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.domain.redaction_assignments import named_values
from reverie.domain.redaction_patterns import Span, letters_of, near
from reverie.domain.redaction_values import Form, words_of

_BARE = r"(?P<value>[^\s\"'`;|<>]{4,256}+)"
_WORD = rf"[\"']?{_BARE}"
_HAS_DIGIT = r"(?=[^\s\d]{0,256}+\d)"
_BEFORE = r"[^\n|;]{0,80}?[ ]"


def _of(command: str, *given: str) -> str:
    """What a command is given within 80 characters, and before it stands again."""
    return rf"{command}(?:(?!{command})[^\n|;]){{0,80}}?" + "".join(given)


# Each with the literal it needs, in lower case; the value is judged as one in a shell line.
_COMMANDS = tuple(
    (literal, re.compile(pattern))
    for literal, pattern in (
        ("curl", _of("curl[ ]", rf"(?:-u|--user)[ =][\"']?[^\s:\"'`$]{{1,64}}+:{_BARE}")),
        ("sshpass", rf"sshpass[ ]+-p[ ]{{0,4}}{_WORD}"),
        ("redis-cli", _of("redis-cli", rf"[ ]-a[ ]{{1,4}}{_WORD}")),
        ("mysql", _of("mysql", rf"[ ]-p{_HAS_DIGIT}{_WORD}")),
        ("docker login", _of("docker login", rf"[ ]-p[ ]{{1,4}}{_WORD}")),
        *(
            (name, _of(rf"{name}\b", rf"[ ]-[pw][ ]{{1,4}}{_HAS_DIGIT}{_WORD}"))
            for name in (
                "mongo",
                "mongosh",
                "mongodump",
                "sqlcmd",
                "ldapsearch",
                "ldapmodify",
                "useradd",
                "usermod",
                "az login",
                "helm registry login",
                "podman login",
            )
        ),
        ("http", _of("https?[ ]", rf"-a[ ]{{1,4}}[^\s:\"'`$]{{1,64}}+:{_BARE}")),
        ("pass:", _of("openssl", rf"[ ]pass:{_BARE}")),
        ("openssl enc", _of("openssl enc", rf"[ ]-k[ ]{{1,4}}{_WORD}")),
        ("smbclient", _of("smbclient", rf"[ ]-u[ ]{{1,4}}[^\s%]{{1,64}}+%{_BARE}")),
        ("/p:", _of("freerdp", rf"[ ]/p:{_WORD}")),
        ("/user:", _of("net use", rf"[ ]/user:[^\s]{{1,64}}+[ ]{{1,4}}{_WORD}")),
        ("sudo", rf"echo[ ]{{1,4}}{_WORD}[\"']?[ ]{{0,4}}\|[ ]{{0,4}}sudo[ ]-s"),
        (
            "chpasswd",
            r":(?<=[\w.\-]:)(?P<value>[^\s\"'`;|<>]{4,64}+)[\"']?[ ]{0,4}\|[ ]{0,4}(?:sudo[ ])?"
            r"chpasswd",
        ),
        ("secret_access_key", rf"secret_access_key[ ]{{1,4}}{_HAS_DIGIT}{_WORD}"),
        *(
            (flag, rf"{flag}[ ]{{1,4}}{_WORD}")
            for flag in ("-storepass", "-keypass", "-srcstorepass", "-deststorepass")
        ),
        (
            "htpasswd",
            rf"htpasswd[ ]-\w{{0,4}}b\w{{0,4}}[ ][^\s]{{1,80}}+[ ][^\s]{{1,64}}+[ ]{_WORD}",
        ),
        ("--password-stdin", rf"echo[ ](?:-n[ ])?{_WORD}[\"']?[ ]?\|{_BEFORE}--password-stdin"),
        ("--stdin", rf"echo[ ](?:-n[ ])?{_WORD}[\"']?[ ]?\|{_BEFORE}passwd[ ]--stdin"),
        *(
            (
                literal,
                rf"[\"'][\w.\-]{{1,32}}+:(?P<value>[^\s@\"':/]{{4,128}}+){re.escape(literal)}",
            )
            for literal in ("@tcp(", "@unix(", "@/")
        ),
        (
            ":",
            r":(?:\d{4,5}|\*):[\w.\-*]{1,64}+:[\w.\-]{1,64}+:"
            rf"{_HAS_DIGIT}(?P<value>[^\s:/]{{6,128}}+)(?=\s|$)",
        ),
        (
            "credentials",
            r"credentials?[ ](?:is|are)[ ](?:for[ ])?[`\"']?[\w.@\-]{1,40}+[ ]?[/:][ ]?"
            rf"{_HAS_DIGIT}{_BARE}",
        ),
        (
            "token",
            rf"token[ ](?<=[a-z][ ]token[ ])(?=[\w\-]{{20}}){_HAS_DIGIT}"
            r"(?P<value>[\w\-]{20,256}+)",
        ),
        (
            "secret",
            rf"secret[ ](?=[\w\-]{{20}}){_HAS_DIGIT}(?P<value>[\w\-]{{20,256}}+)(?![\w./:=(])",
        ),
        *(
            (word, rf"{word}[ ][05-9][ ]{_HAS_DIGIT}(?P<value>[\w$./]{{8,256}}+)(?=\s|$)")
            for word in ("password", "secret")
        ),
        (
            "login",
            r"login[ ](?:is|was)[ ][`\"']?[\w.@\-]{1,40}+[`\"']?[ ]?[/:][ ]?[`\"']?"
            rf"{_HAS_DIGIT}(?P<value>[^\s\"'`;,|<>]{{6,64}}+)",
        ),
        ("/rp", rf"[ ]/rp[ ]{{1,4}}{_WORD}"),
        ("net use", rf"net use[ ](?:[a-z]:|\*)[ ]\\\\[^\s]{{1,200}}+[ ]{_HAS_DIGIT}{_BARE}"),
        ("7z", rf"7za?[ ][a-z][ ](?:[^\s]{{1,80}}+[ ]){{0,6}}?-p{_WORD}"),
        ("zip", rf"zip[ ](?<![a-z]zip[ ])(?:-[a-z0-9]{{1,9}}+[ ]){{0,4}}?-p[ ]{_HAS_DIGIT}{_WORD}"),
        ("sonar.login", r"sonar\.login=(?P<value>[0-9a-f]{40})"),
        ("requirepass", rf"requirepass[ ]{{1,4}}{_WORD}"),
        ("masterauth", rf"masterauth[ ]{{1,4}}{_WORD}"),
        (
            "password",
            rf"password(?:(?<=storepassword)|(?<=keypassword))[ ]{{1,4}}{_HAS_DIGIT}{_WORD}",
        ),
        ("securestring", rf"convertto-securestring[ ](?:-string[ ])?{_WORD}"),
        (":thin:", r":thin:[^\s/:@]{1,64}+/(?P<value>[^\s@\"']{4,128}+)@"),
        ("auth", rf"auth[ ]?=[ ]?\([\"'][^\"'\n]{{1,64}}+[\"'],[ ]?[\"']{_BARE}[\"']"),
        ("identified", rf"identified[ ](?:with[ ]\w{{1,40}}[ ])?by[ ]{{1,4}}(?=[\"']){_WORD}"),
        ("password", r"password[ ]{1,4}'(?P<value>[^'\n$:%]{4,128}+)'"),
        *(
            ("password", rf"{name}[ ][^\s]{{1,64}}+\s{{1,8}}+password[ ]{{1,4}}{_HAS_DIGIT}{_WORD}")
            for name in ("login", "user(?:name)?")
        ),
    )
)
_NAMED = (
    (
        "fastcgi_param",
        re.compile(r"fastcgi_param[ ]{1,8}(?P<name>\w{1,64}+)[ ]{1,8}" + _WORD),
    ),
    (
        "env ",
        re.compile(r"(?:^|\n)[ \t]{0,8}(?:set)?env[ ]{1,4}(?P<name>\w{1,64}+)[ ]{1,4}" + _WORD),
    ),
    (
        "#define",
        re.compile(
            r"#define[ \t]{1,8}(?P<name>\w{1,64}+)[ \t]{1,40}[l@]?\"(?P<value>[^\"\n]{4,256}+)"
        ),
    ),
    (
        "variable",
        re.compile(
            r"variable[ ]\"(?P<name>[\w\-]{1,64}+)\"[^{}]{0,8}\{"
            r"[^{}]{0,400}?default[ ]{0,24}=[ ]{0,8}\"(?P<value>[^\"\n]{4,256}+)"
        ),
    ),
    *(
        (
            "value",
            re.compile(
                rf"{named}\\?[\"']?[ ]{{0,4}}[:=][ ]{{0,4}}\\?[\"']?"
                r"(?P<name>[a-z0-9_.\-]{1,64}+)\\?[\"']?"
                r"[\s,]{1,60}\\?[\"']?value\\?[\"']?[ ]{0,4}[:=][ ]{0,4}\\?[\"']?"
                r"(?P<value>[^\s\"'`<>\\,}]{4,512}+)"
            ),
        )
        for named in ("name", "key")
    ),
)


_SOUGHT = _COMMANDS + _NAMED
_LETTERS = frozenset("".join(literal for literal, _ in _SOUGHT))
_PLAIN = words_of(
    "/p: /user: : :thin: @/ @tcp( @unix( auth chpasswd credentials identified masterauth password "
    "requirepass secret_access_key securestring sonar.login token secret login /rp fastcgi_param "
    "#define variable value"
) | {"net use", "env "}
"""Those that need no option: the others are not sought where a text holds none."""


def commanded(text: str, lower: str) -> Iterator[Span]:
    """Credentials of shell commands, SQL, netrc, Dockerfiles and name/value pairs.

    `lower` is the text in lower case, of the same length.
    """
    options, letters = " -" in lower, letters_of(lower, _LETTERS)
    for literal, pattern in _SOUGHT:
        if letters.issuperset(literal) and (options or literal in _PLAIN):
            yield from named_values(text, lower, pattern, near(literal, lower), Form.ENV)
