"""Credentials recognised by the call, column, element or array that holds them."""

from __future__ import annotations

import pytest

from reverie.domain.redaction.randomness import is_unpronounceable
from reverie.domain.redaction.redactor import redact

WORD = "sunshine" + "1207"
MIXED = "aB3dE5gH7jK9" * 8
RUN = "xbjqtfu" + "tvaa" + "rskeN3"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f'getConnection(url, "root", "{WORD}")', WORD),
        (f'connect("db.example.org", "shop", "{WORD}", "shop")', WORD),
        (f"jwt.sign({{ id: user.id }}, '{RUN}', {{ expiresIn: '1h' }})", RUN),
        (f"INSERT INTO t (id, `password`, age) VALUES (4, '{WORD}', 31)", WORD),
        (f'<password encrypted="false">{WORD}</password>', WORD),
        (f"<key>API_SECRET</key>\n  <string>{RUN}</string>", RUN),
        (f'<property name="password">\n  <value>{WORD}</value>', WORD),
        (f'"kty": "oct", "k": "{RUN * 3}"', RUN * 3),
        (f'driver.by_id("password").send_keys("{WORD}")', WORD),
        (f'password: &\'static str = "{WORD}"', WORD),
        (f'char password[16] = "{WORD}";', WORD),
        (f'{{password, "{WORD}"}}', WORD),
        (f'password <- "{WORD}"', WORD),
        (f'password = QStringLiteral("{WORD}")', WORD),
        (f'new mysqli("localhost", "ann", "{WORD}", "shop")', WORD),
        (f'AES.new(b"{RUN}", AES.MODE_CBC, iv)', RUN),
        (f'Jwts.builder().signWith(HS256, "{RUN}")', RUN),
        (f"Authorization: SSWS 00{RUN}", RUN),
        (f"deploy --auth {RUN}", RUN),
        (f"    client-key-data: {MIXED}", MIXED),
        (f"schtasks /create /tn x /ru ann /rp {WORD}", WORD),
        (f"Her password was changed to {WORD} yesterday.", WORD),
        (f"The staging login is ann / {WORD}, please rotate.", WORD),
        (f"DEBUG connecting with secret {RUN * 2}", RUN),
        ("username admin privilege 15 password 7 83AF4950078F48B6", "83AF4950078F48B6"),
        (f"7z x -p{WORD} a.7z", WORD),
        (f"zip -P {WORD} a.zip b", WORD),
        (f"net use z: \\\\srv\\d {WORD}", WORD),
    ],
)
def test_a_credential_is_redacted_from_a_place_that_takes_one(text: str, secret: str) -> None:
    found = redact(text)
    assert found.count == 1
    assert secret not in found.text
    assert len(found.text) > len(text) - len(secret)


@pytest.mark.parametrize(
    "text",
    [
        'connect("db1.example.org", "user", "password")',
        'connect("localhost:9092", "group-1", "topic-events-v2")',
        'connect(handler, sender=User, dispatch_uid="user_post_save_2")',
        'login("https://host1/path2", callback)',
        'jwt.decode(token, key, algorithms=["HS256"])',
        "createHmac('sha256', secret)",
        "INSERT INTO t (id, name) VALUES (4, 'sunshine1207')",
        "colours = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99}",
        "<key>Label</key><string>org.example.agent1</string>",
        'password = os.getenv("SERVICE_PASSWORD_2")',
        'password = document.querySelector("#password1")',
        "you can pass `strict=True` or `mode=2`",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-Ab1Cd2",
        "private_key: x25519.X25519PrivateKey",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "unzip -p release-12.zip notes.txt",
        "AES.new(key, AES.MODE_CBC, iv=nonce16)",
        "The login is at https://login1.example.org/tenant",
        "The password was changed to meet the rules of 2024",
        "Authorization: required for every route",
        "git clone --auth none2 x",
    ],
)
def test_a_value_that_only_looks_like_a_credential_is_kept(text: str) -> None:
    assert redact(text).text == text


def test_random_strings_are_distinguished_from_words() -> None:
    words = "authentication_backend_settings configuration sunshine keyboardInterrupt"
    assert not any(map(is_unpronounceable, words.split()))
    assert is_unpronounceable(RUN)
