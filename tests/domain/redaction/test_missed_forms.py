"""Forms of credentials that were missed or cut short, and texts that were taken for them."""

from __future__ import annotations

import base64
import random
import string

import pytest

from reverie.domain.redaction.redactor import redact

_dice = random.Random(93)


def run(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    """A run of random letters that begins with one, and has one of each kind."""
    kinds = (string.ascii_lowercase, string.digits, string.ascii_uppercase)
    needed = [_dice.choice(own) for kind in kinds if (own := sorted({*kind} & {*letters}))]
    rest = [_dice.choice(letters) for _ in range(length - len(needed))]
    inner = [*needed[1:], *rest]
    _dice.shuffle(inner)
    return str(needed[0]) + "".join(inner)


LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
WORD = "sunshine" + "1207"
AWS = run(40)
PEM = "-----BEGIN RSA PRIVATE " + "KEY-----\n" + run(64) + "\n-----END RSA PRIVATE " + "KEY-----\n"
PEM_BASE64 = base64.b64encode(PEM.encode()).decode()
GITHUB = "ghp_" + run(36)
UUID = "3f2b8c1e-77aa-4c1e-9d3f-2f1a6c3be8d0"
HEX32, HEX40, HEX64 = run(32, HEX), run(40, HEX), run(64, HEX)
PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow"
ONE_PASSWORD = "A3-" + "ASWXYZ-8B3K2P-7CXQM-4JD9R-ZT6VN-2HWLF"
FULL_WIDTH = "".join(chr(ord(letter) + 0xFEE0) for letter in "password:")


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"The key of the bucket is {AWS} for now.", AWS),
        (f"tls.key: {PEM_BASE64}", PEM_BASE64[20:60]),
        (f"https://h.example/x?u=1%26t%3D{GITHUB}", GITHUB),
        (f"q=%22{GITHUB}%22", GITHUB),
        (f"vault login s.{run(24)}", ""),
        (f"grafana glc_{run(48)}=", ""),
        (f"okta uses 00{run(40)} here", ""),
        (f"the private key is 0x{HEX64}", HEX64),
        (f"private_key=0x{HEX64}", HEX64),
        (f"mnemonic: {PHRASE}", PHRASE),
        (f"Her seed phrase is {PHRASE}.", PHRASE),
        (f"la contraseña es {WORD} desde ayer", WORD),
        (f"le mot de passe est {WORD}", WORD),
        (f"das Passwort ist {WORD}", WORD),
        (f"sudo -S apt update <<< {WORD}", WORD),
        ("tool --password=qzkvbtnwxf run", "qzkvbtnwxf"),
        ("mot de passe : QzkVbTnwXf", "QzkVbTnwXf"),
        (f"aws_secret_access_key=\\\n    {AWS}", AWS),
        (f"gh\u200bp_{GITHUB[4:]}", GITHUB[8:]),
        (f"{FULL_WIDTH} {WORD}", WORD),
        ("postgres://app:p@ss/w0rd!@host/db", "ss/w0rd!"),
        (f"curl -u :{HEX32} https://h.example", HEX32),
        (f'curl -u "{run(32, LOWER)}:" https://h.example', ""),
        (f"curl https://h.example \\\n  --user 'ann:{WORD}'", WORD),
        (f'curl --user="ann:{WORD}" https://h.example', WORD),
        (f"BUNDLE_GEMS__EXAMPLE__COM={run(8, HEX)}:{run(8, HEX)}", ""),
        (f"HUBSPOT_KEY={UUID}", UUID),
        (f'API_TOKEN ?= "{UUID}"', UUID),
        (f"API_TOKEN ::= {HEX32}", HEX32),
        (f"SONAR_LOGIN={HEX40}", HEX40),
        (f"sonar-login: '{HEX40}'", HEX40),
        ("hub api_org_" + "qzkvbtnwxfjqzkvbtnwxfjqzkvbtnwxfjq", "api_org_"),
        (f"fb 1234567890123456|{run(27)}", ""),
        (f"EAAM{run(90, LOWER)}", "EAAM"),
        (ONE_PASSWORD, ONE_PASSWORD),
        (f"s-s4t2ud-{HEX64}", HEX64),
        (f"Api-Token: {HEX32}", HEX32),
        (f"Authorization: Api-Token {HEX32}", HEX32),
        (f"sntrys_eyJ{run(60)}==_{run(43)}", "=="),
        (f"FlyV1 fm2_{run(60)},fm2_{run(60)}", ",fm2"),
        (f"pscale_pw_{run(20)}.{run(12)}=", ""),
        (f"ops_eyJ{run(80)}/{run(40)}", ""),
        (f"{{'cookie': '_gitlab_session={run(32, LOWER)}'}}", ""),
        (f"xoxe.xoxp-1-{run(120)}", ""),
        (f"mail by re_{run(33)}", ""),
        (f"pay by live_{run(30)}", ""),
        (f"RGAPI-{UUID}", UUID),
        (f"ck_{HEX40}", HEX40),
        (f"sid 00D{run(12)}!{run(90)}", ""),
        (f"sk.eyJ{run(60)}.{run(22)}", ""),
        (f"tokens fm2_{run(60)} and fm1r_{run(60)}", "fm1r"),
        (f"USER / PASSWORD | ann / {WORD}", WORD),
        (f'CLIENT_SECRET_TOO = "{run(24)}"', ""),
        (f'SECRET_VALUES = "{run(24)}", "{run(24)}"', ""),
        (f"  password: !!binary {run(24)}=", ""),
        (f"db_password:\n    {WORD}x", WORD),
        (f"client_secret: |\n    {run(32)}", ""),
        (f"<apiToken>\n    {HEX32}\n</apiToken>", HEX32),
        (f"use {WORD} as the password", WORD),
        (f"set the db password to {WORD} please", WORD),
        (f"what is the pass? ann: {WORD}", WORD),
        (f"logging in with ann@example.com / {WORD}", WORD),
        (f"das Root-Passwort wurde auf {WORD} geändert", WORD),
        (f"密码改为 {WORD}", WORD),
        (f"<td>password</td><td>{WORD}</td>", WORD),
        (f"| user | password |\n|---|---|\n| ann | {WORD} |", WORD),
        (f"api key (prod): {HEX32}", HEX32),
        (f"tool -U ann -P {WORD} run", WORD),
        (f"tool -Password {WORD}", WORD),
        (f"args: ['--db-pass', '{WORD}']", WORD),
        (f"https://h.example/x?a=1&appid={HEX32}", HEX32),
        (f"set -gx NPM_TOKEN {run(36)}", ""),
        (f'process.env.SECRET || "{WORD}"', WORD),
        (f"Cookie: laravel_session={run(60)}", ""),
        (f"newservice_live_{run(40)}", ""),
        (f'"redis_auth_token": {{\n  "value": "{run(32)}"\n}}', ""),
        (f'{{"ParameterKey":"DBPassword","ParameterValue":"{WORD}"}}', WORD),
        (f"define('AUTH_KEY',         '{run(64)}');", ""),
        (f'create_user("ann", "ann@h.example", "{WORD}x!")', WORD),
        (f"pbkdf2_sha256$600000${run(22)}${run(43)}=", ""),
        (f'"app" "md5{HEX32}"', HEX32),
        ("Your backup codes: 73910284, 11920485, 99120385.", "11920485"),
        ("Backup codes\n1. 7731 0492\n2. 2284 9150\n", "2284 9150"),
        (f"recovery code: {HEX64}", HEX64),
        ("Scan it, or enter this setup key by hand: JBSWY3DPEHPK3PXP", "JBSWY3DPEHPK3PXP"),
        (f"what's the pw for grafana?\nit's {WORD}, user admin", WORD),
        ("邮箱授权码：wqkzpfmrtxbvnhjd（smtp 用的）", "wqkzpfmrtxbvnhjd"),
        ('{"stdout":"DB_HOST=db\\nDB_PASSWORD=sunflower\\nDB_PORT=1\\n"}', "sunflower"),
        (f"https://mainnet.infura.io/v3/{HEX32}", HEX32),
        (f"access_key_id = {run(20, LOWER)}", ""),
        ('smtp.login("ann", "wqkz pfmr txbv nhjd")', "wqkz pfmr"),
        (f"the old key (`{HEX32}`) was still deployed", HEX32),
    ],
)
def test_a_missed_form_is_redacted_whole(text: str, secret: str) -> None:
    found = redact(text).text
    assert "[REDACTED_" in found
    if secret:
        assert secret not in found
    values = [part for part in text.replace("\u200b", "").split() if len(part) > 23]
    assert not [value for value in values if value[-20:] in found]


@pytest.mark.parametrize(
    "text",
    [
        "class hf_transformersmodelconfigurationbuilder(Base):",
        "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",
        "images/xoxo-valentines-day-2024-banner.png",
        f"assets/key-{HEX32}.png",
        f"checkout scm: [credentialsId: '{UUID}', url: 'https://h.example']",
        "withCredentials([string(credentialsId: 'sonar-scanner-42', variable: 'X')])",
        "PASS: 'md:grid-cols-5'",
        "usage: acme login [-h] [--username USERNAME] [--password PASSWORD]",
        "{{ .Values.auth.password | b64enc | quote }}",
        f"STRIPE_PUBLISHABLE_KEY=pk_live_{run(40)}",
        "0x00007ffd8a4c in check_password (pw=0x7ff6dabbe581) at auth.c:41",
        "wrote 10 recovery codes: see docs 12345",
        "7z x -p[REDACTED_PASSWORD] backup.7z",
        "the `--py3-plus` pass (`675afd8`) cleaned up",
        "the password test fails on python3.12, see form2.tsx and ABC-123",
        "password hashing uses argon2id with 64MB in v2.3.1",
        "we keep the password in 1Password",
        f"https://docs.google.com/document/d/1{run(43)}/edit",
        "password.translate(_trans_36)",
        "def open(name, pwd=None, *, force_zip64=False):",
        f'"hashed_secret": "{HEX40}"',
        f"the transaction 0x{HEX64} was mined",
        f"commit {HEX40} is the last one",
        "services/reverie_services/ingest/write/jsonl",
        "postgres://app@host/db and mail@example.org",
        f"digest: sha256:{HEX64}",
        "def test_the_reader_of_a_long_name_like_this_is_found(live_migration_of_tables):",
    ],
)
def test_what_only_looks_like_a_credential_is_left_alone(text: str) -> None:
    assert redact(text).text == text
