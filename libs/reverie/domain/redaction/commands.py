"""Detection of credentials in shell commands, SQL statements and name/value pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.domain.redaction.assignments import find_named_values
from reverie.domain.redaction.patterns import SecretSpan, present_letters, ranges_around
from reverie.domain.redaction.value_checks import ValueForm, word_set

_BARE_VALUE = r"(?P<value>[^\s\"'`;|<>]{4,256}+)"
_QUOTABLE_VALUE = rf"[\"']?{_BARE_VALUE}"
_HAS_DIGIT = r"(?=[^\s\d]{0,256}+\d)"
_ANY_BEFORE = r"[^\n|;]{0,80}?[ ]"


def _command_pattern(command: str, *arguments: str) -> str:
    """What a command is given within 80 characters, and before it stands again."""
    return rf"{command}(?:(?!{command})[^\n|;]){{0,80}}?" + "".join(arguments)


# Each with the literal it needs, in lower case; the value is judged as one in a shell line.
_COMMAND_PATTERNS = tuple(
    (literal, re.compile(pattern))
    for literal, pattern in (
        (
            "curl",
            _command_pattern(
                "curl[ ]", rf"(?:-u|--user)[ =][\"']?[^\s:\"'`$]{{1,64}}+:{_BARE_VALUE}"
            ),
        ),
        ("sshpass", rf"sshpass[ ]+-p[ ]{{0,4}}{_QUOTABLE_VALUE}"),
        ("redis-cli", _command_pattern("redis-cli", rf"[ ]-a[ ]{{1,4}}{_QUOTABLE_VALUE}")),
        ("mysql", _command_pattern("mysql", rf"[ ]-p{_HAS_DIGIT}{_QUOTABLE_VALUE}")),
        ("docker login", _command_pattern("docker login", rf"[ ]-p[ ]{{1,4}}{_QUOTABLE_VALUE}")),
        *(
            (
                name,
                _command_pattern(rf"{name}\b", rf"[ ]-[pw][ ]{{1,4}}{_HAS_DIGIT}{_QUOTABLE_VALUE}"),
            )
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
        ("http", _command_pattern("https?[ ]", rf"-a[ ]{{1,4}}[^\s:\"'`$]{{1,64}}+:{_BARE_VALUE}")),
        ("pass:", _command_pattern("openssl", rf"[ ]pass:{_BARE_VALUE}")),
        ("openssl enc", _command_pattern("openssl enc", rf"[ ]-k[ ]{{1,4}}{_QUOTABLE_VALUE}")),
        (
            "smbclient",
            _command_pattern("smbclient", rf"[ ]-u[ ]{{1,4}}[^\s%]{{1,64}}+%{_BARE_VALUE}"),
        ),
        ("/p:", _command_pattern("freerdp", rf"[ ]/p:{_QUOTABLE_VALUE}")),
        (
            "/user:",
            _command_pattern("net use", rf"[ ]/user:[^\s]{{1,64}}+[ ]{{1,4}}{_QUOTABLE_VALUE}"),
        ),
        ("sudo", rf"echo[ ]{{1,4}}{_QUOTABLE_VALUE}[\"']?[ ]{{0,4}}\|[ ]{{0,4}}sudo[ ]-s"),
        (
            "chpasswd",
            r":(?<=[\w.\-]:)(?P<value>[^\s\"'`;|<>]{4,64}+)[\"']?[ ]{0,4}\|[ ]{0,4}(?:sudo[ ])?"
            r"chpasswd",
        ),
        ("secret_access_key", rf"secret_access_key[ ]{{1,4}}{_HAS_DIGIT}{_QUOTABLE_VALUE}"),
        *(
            (flag, rf"{flag}[ ]{{1,4}}{_QUOTABLE_VALUE}")
            for flag in ("-storepass", "-keypass", "-srcstorepass", "-deststorepass")
        ),
        (
            "htpasswd",
            (
                rf"htpasswd[ ]-\w{{0,4}}b\w{{0,4}}[ ][^\s]{{1,80}}+[ ][^\s]{{1,64}}+[ "
                rf"]{_QUOTABLE_VALUE}"
            ),
        ),
        (
            "--password-stdin",
            rf"echo[ ](?:-n[ ])?{_QUOTABLE_VALUE}[\"']?[ ]?\|{_ANY_BEFORE}--password-stdin",
        ),
        (
            "--stdin",
            rf"echo[ ](?:-n[ ])?{_QUOTABLE_VALUE}[\"']?[ ]?\|{_ANY_BEFORE}passwd[ ]--stdin",
        ),
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
            rf"{_HAS_DIGIT}{_BARE_VALUE}",
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
        ("/rp", rf"[ ]/rp[ ]{{1,4}}{_QUOTABLE_VALUE}"),
        ("net use", rf"net use[ ](?:[a-z]:|\*)[ ]\\\\[^\s]{{1,200}}+[ ]{_HAS_DIGIT}{_BARE_VALUE}"),
        ("7z", rf"7za?[ ][a-z][ ](?:[^\s]{{1,80}}+[ ]){{0,6}}?-p{_QUOTABLE_VALUE}"),
        (
            "zip",
            (
                rf"zip[ ](?<![a-z]zip[ ])(?:-[a-z0-9]{{1,9}}+[ ]){{0,4}}?-p[ "
                rf"]{_HAS_DIGIT}{_QUOTABLE_VALUE}"
            ),
        ),
        ("sonar.login", r"sonar\.login=(?P<value>[0-9a-f]{40})"),
        ("requirepass", rf"requirepass[ ]{{1,4}}{_QUOTABLE_VALUE}"),
        ("masterauth", rf"masterauth[ ]{{1,4}}{_QUOTABLE_VALUE}"),
        (
            "password",
            (
                rf"password(?:(?<=storepassword)|(?<=keypassword))[ "
                rf"]{{1,4}}{_HAS_DIGIT}{_QUOTABLE_VALUE}"
            ),
        ),
        ("securestring", rf"convertto-securestring[ ](?:-string[ ])?{_QUOTABLE_VALUE}"),
        (":thin:", r":thin:[^\s/:@]{1,64}+/(?P<value>[^\s@\"']{4,128}+)@"),
        ("auth", rf"auth[ ]?=[ ]?\([\"'][^\"'\n]{{1,64}}+[\"'],[ ]?[\"']{_BARE_VALUE}[\"']"),
        (
            "identified",
            rf"identified[ ](?:with[ ]\w{{1,40}}[ ])?by[ ]{{1,4}}(?=[\"']){_QUOTABLE_VALUE}",
        ),
        ("password", r"password[ ]{1,4}'(?P<value>[^'\n$:%]{4,128}+)'"),
        *(
            (
                "password",
                (
                    rf"{name}[ ][^\s]{{1,64}}+\s{{1,8}}+password[ "
                    rf"]{{1,4}}{_HAS_DIGIT}{_QUOTABLE_VALUE}"
                ),
            )
            for name in ("login", "user(?:name)?")
        ),
    )
)
_NAMED_PATTERNS = (
    (
        "fastcgi_param",
        re.compile(r"fastcgi_param[ ]{1,8}(?P<name>\w{1,64}+)[ ]{1,8}" + _QUOTABLE_VALUE),
    ),
    (
        "env ",
        re.compile(
            r"(?:^|\n)[ \t]{0,8}(?:set)?env[ ]{1,4}(?P<name>\w{1,64}+)[ ]{1,4}" + _QUOTABLE_VALUE
        ),
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


_ALL_PATTERNS = _COMMAND_PATTERNS + _NAMED_PATTERNS
_LETTERS = frozenset("".join(literal for literal, _ in _ALL_PATTERNS))
_LITERALS_WITHOUT_OPTIONS = word_set(
    "/p: /user: : :thin: @/ @tcp( @unix( auth chpasswd credentials identified masterauth password "
    "requirepass secret_access_key securestring sonar.login token secret login /rp fastcgi_param "
    "#define variable value"
) | {"net use", "env "}
"""Those that need no option: the others are not sought where a text holds none."""


def find_command_secrets(text: str, lower: str) -> Iterator[SecretSpan]:
    """Credentials of shell commands, SQL, netrc, Dockerfiles and name/value pairs.

    `lower` is the text in lower case, of the same length.
    """
    has_options, letters = " -" in lower, present_letters(lower, _LETTERS)
    for literal, pattern in _ALL_PATTERNS:
        if letters.issuperset(literal) and (has_options or literal in _LITERALS_WITHOUT_OPTIONS):
            yield from find_named_values(
                text, lower, pattern, ranges_around(literal, lower), ValueForm.ENV
            )
