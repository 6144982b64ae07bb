"""Precision and recall of redaction on three labelled sets.

The credentials are made when the module loads, from parts: no file of the project holds one.
"""

from __future__ import annotations

import base64
import random
import re
import string
from pathlib import Path

from reverie.domain.redaction.redactor import redact
from tests.domain.redaction import third_set as thirds
from tests.domain.redaction.form_sets import FORMS
from tests.domain.redaction.held_out_set import FOUND, KEPT, held_out_found, held_out_kept

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGITS
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"

_dice = random.Random(20_26)


def made(chars: str, length: int) -> str:
    """A run of characters, begun and ended by a letter or digit."""
    edge = [c for c in chars if c.isalnum()]
    inner = "".join(_dice.choice(chars) for _ in range(length - 2))
    return _dice.choice(edge) + inner + _dice.choice(edge)


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def jwt() -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(b'{"sub":"1234567890","iat":1516239022}').decode().rstrip("=")
    return f"{head}.{body}.{made(URLSAFE, 43)}"


def pem(kind: str, lines: int = 6, sep: str = "\n", end: bool = True) -> str:
    body = sep.join(made(ALNUM + "+/", 64) for _ in range(lines))
    dashes = "-" * 5
    tail = f"{sep}{dashes}END {kind}{dashes}" if end else ""
    return f"{dashes}BEGIN {kind}{dashes}{sep}{body}{tail}"


def _prefixed() -> list[str]:
    return [
        "sk-" + made(ALNUM, 48),
        "sk-" + made(HEX, 32),
        "sk-" + "proj-" + made(URLSAFE, 60),
        "sk-" + "svcacct-" + made(URLSAFE, 60),
        "sk-" + "admin-" + made(URLSAFE, 60),
        "sk-" + "ant-api03-" + made(URLSAFE, 90),
        "sk-" + "or-v1-" + made(HEX, 64),
        "AKIA" + made(UPPER + "234567", 16),
        "ASIA" + made(UPPER + "234567", 16),
        "ghp" + "_" + made(ALNUM, 36),
        "gho" + "_" + made(ALNUM, 36),
        "ghu" + "_" + made(ALNUM, 36),
        "ghs" + "_" + made(ALNUM, 36),
        "ghr" + "_" + made(ALNUM, 36),
        "github" + "_pat_" + made(ALNUM, 22) + "_" + made(ALNUM, 59),
        "glpat" + "-" + made(URLSAFE, 20),
        "glptt" + "-" + made(HEX, 40),
        "xoxb" + "-" + made(DIGITS, 12) + "-" + made(DIGITS, 12) + "-" + made(ALNUM, 24),
        "xoxp" + "-" + made(DIGITS, 12) + "-" + made(DIGITS, 12) + "-" + made(HEX, 32),
        "xapp" + "-1-" + made(UPPER + DIGITS, 11) + "-" + made(DIGITS, 13) + "-" + made(HEX, 64),
        "sk_" + "live_" + made(ALNUM, 24),
        "sk_" + "test_" + made(ALNUM, 24),
        "rk_" + "live_" + made(ALNUM, 24),
        "whsec" + "_" + made(ALNUM, 32),
        "AIza" + made(URLSAFE, 35),
        "ya29" + "." + made(URLSAFE, 80),
        "GOCSPX" + "-" + made(URLSAFE, 28),
        "npm" + "_" + made(ALNUM, 36),
        "pypi" + "-AgEIcHlwaS5vcmc" + made(URLSAFE, 120),
        "hf" + "_" + made(LOWER + UPPER, 34),
        "SG" + "." + made(URLSAFE, 22) + "." + made(URLSAFE, 43),
        "SK" + made(HEX, 32),
        "dop" + "_v1_" + made(HEX, 64),
        "doo" + "_v1_" + made(HEX, 64),
        "rv" + "_" + made(URLSAFE, 43),
        "rv" + "_" + made(HEX, 8) + "_" + made(URLSAFE, 32),
        "shpat" + "_" + made(HEX, 32),
        "dapi" + made(HEX, 32),
        "gsk" + "_" + made(ALNUM, 52),
        "dckr" + "_pat_" + made(URLSAFE, 27),
        "hvs" + "." + made(URLSAFE, 90),
        "key-" + made(HEX, 32),
        "lin" + "_api_" + made(ALNUM, 40),
        "AGE-SECRET" + "-KEY-1" + made(UPPER + DIGITS, 58),
        "SU" + "A" + made(UPPER + "234567", 55),
        jwt(),
    ]


def _in_context(secret: str, turn: int) -> str:
    forms = (
        f"please use {secret} for the staging account",
        f'{{"note": "it was {secret}, rotate it"}}',
        f"curl -H 'X: {secret}' https://api.example.org/v1",
        f"line one\n{secret}\nline three",
        f"`{secret}`",
        f'"log\\n{secret}\\nend"',
    )
    return forms[turn % len(forms)]


def _assigned() -> list[tuple[str, str]]:
    """Texts with `@` where the credential stands."""
    word, key, short = "hunter" + "2", made(ALNUM, 32), "s3cr" + "3t!"
    aws = made(ALNUM + "+/", 39) + "9"
    hexed, mixed = made(HEX, 32), made(ALNUM, 20) + "7x"
    return [
        (f"DB_PASSWORD={word}", word),
        (f"export PGPASSWORD='{word}'", word),
        (f"MYSQL_ROOT_PASSWORD={'letme' + 'in'}", "letme" + "in"),
        (f"SMTP_PASS={short}", short),
        (f"REDIS_PASSWORD=p@ss:{key}=x", f"p@ss:{key}=x"),
        (f"password: {word}", word),
        (f"  password: '{'correct' + 'horse'}'", "correct" + "horse"),
        (f'password = "{short}"', short),
        (f'"password": "{word}",', word),
        (f'{{\\"password\\": \\"{word}\\"}}', word),
        (f"passwd={word}", word),
        (f'user="me", pwd="{short}"', short),
        (f"db.connect(user='app', password='{word}')", word),
        (f"const password = `{short}`;", short),
        (f'password: str = "{word}"', word),
        (f'const dbPassword: string = "{word}";', word),
        (f'String password = "{short}";', short),
        (f'password := "{word}"', word),
        (f':password => "{word}"', word),
        (f'if password == "{word}":', word),
        (f'config["password"] = "{word}"', word),
        (f"<password>{word}</password>", word),
        (f"the password is {word}", word),
        (f"the admin password is `{short}`", short),
        (f"deploy --password {word} --verbose", word),
        (f"mysql --password={word} app", word),
        (f'passphrase: "{word}-{word}"', f"{word}-{word}"),
        (f'client.set_password("{word}")', word),
        (f"spring.datasource.password={word}", word),
        (f"ADMIN_PASSWORD_PROD={word}", word),
        (f"password = {word}\nuser = app", word),
        (f"API_KEY={key}", key),
        (f'api_key = "{key}"', key),
        (f'apiKey: "{hexed}",', hexed),
        (f'"api-key": "{key}"', key),
        (f"x-api-key: {mixed}", mixed),
        (f"?api_key={key}&page=2", key),
        (f"https://maps.example.org/js?v=3&key={key}", key),
        (f"SECRET_KEY = '{key}'", key),
        (f'SECRET_KEY_BASE="{made(HEX, 128)}"', ""),
        (f"JWT_SECRET={'s3cr' + '3tvalue9'}", "s3cr" + "3tvalue9"),
        (f"client_secret: {key}", key),
        (f'"clientSecret": "{mixed}"', mixed),
        (f'webhookSecret = "{mixed}"', mixed),
        (f"signing_secret={hexed}", hexed),
        (f"AWS_SECRET_ACCESS_KEY={aws}", aws),
        (f"aws_secret_access_key = {aws}", aws),
        (f'"SecretAccessKey": "{aws}"', aws),
        (f"export AWS_SESSION_TOKEN={made(ALNUM + '+/', 120)}", ""),
        (f"ACCESS_TOKEN={key}", key),
        (f'"access_token":"{key}"', key),
        (f'token = "{mixed}"', mixed),
        (f"auth_token: {key}", key),
        (f'githubToken: "{made(HEX, 40)}"', ""),
        (f"refresh_token={key}&grant_type=refresh_token", key),
        (f'TOKEN="{key}"', key),
        (f"npm config set //registry.example.org/:_authToken={key}", key),
        (f"_authToken={made(HEX, 8)}-{made(HEX, 4)}-{made(HEX, 4)}-{made(HEX, 12)}", ""),
        (f"--token {key}", key),
        (f"gh auth login --with-token {key}", key),
        (f"ENCRYPTION_KEY={b64(key)}", b64(key)),
        (f'encryption_key: "{b64(key)}"', b64(key)),
        (f'private_key = "{hexed}{hexed}"', f"{hexed}{hexed}"),
        (f"AccountName=app;AccountKey={b64(key * 2)};", b64(key * 2)),
        (f"SharedAccessKey={b64(key)}", b64(key)),
        (f'key = "{made(ALNUM, 32)}"', ""),
        (f"AUTH={made(ALNUM, 32)}", ""),
        (f'cookie: "{made(ALNUM, 40)}"', ""),
        (f"Authorization: Bearer {key}", key),
        (f'"Authorization": "Bearer {jwt()}"', ""),
        (f"-H 'authorization: bearer {made(HEX, 40)}'", ""),
        (f"Authorization: Basic {b64('app:' + word)}", b64("app:" + word)),
        (f"authorization: token {made(HEX, 40)}", ""),
        (f"Authorization: {key}", key),
        (f"curl -u admin:{word} https://api.example.org", word),
        (f"curl -s --user 'me:{short}' https://x.example.org", short),
        (f"postgres://app:{word}@db.internal:5432/app", word),
        (f"postgresql+asyncpg://app:{short}@localhost/app", short),
        (f"DATABASE_URL=mysql://root:{word}@127.0.0.1/x", word),
        (f"redis://:{word}@cache:6379/0", word),
        (f"mongodb+srv://u1:{key}@cluster0.example.net/?w=1", key),
        (f"amqp://guest:{'gu' + 'est1'}@mq:5672", "gu" + "est1"),
        (f"git clone https://me:{key}@git.example.org/r.git", key),
        (f"https://oauth2:{mixed}@git.example.org/r.git", mixed),
        (f"nats://svc:{word}@127.0.0.1:4222", word),
        (f"smtp://mailer%40example.org:{'p%40ss' + '9'}@smtp:587", "p%40ss" + "9"),
        (f"ftp://me:{'a@b' + 'c9'}@host/x", "a@b" + "c9"),
        (f"https://hooks.slack.com/services/T{made(UPPER, 8)}/B{made(UPPER, 8)}/{key}", key),
        (f"https://discord.com/api/webhooks/{made(DIGITS, 18)}/{made(URLSAFE, 68)}", ""),
    ]


def _elsewhere() -> list[tuple[str, str]]:
    """Credentials in prose, commands, statements and other languages."""
    word, odd, key = "hunter" + "2", "Tr0ub" + "4dor&3", made(ALNUM, 32)
    phrase = "correct horse " + "battery staple"
    return [
        (f"my api key is {key}", key),
        (f"Password: {odd}", odd),
        (f"password is: {odd}", odd),
        (f"the db password for prod is {odd}", odd),
        (f"pw: {word}", word),
        (f'password="{phrase}"', phrase),
        (f'passphrase = "{phrase}"', phrase),
        (f'os.environ.get("DB_PASSWORD", "{word}")', word),
        (f'localStorage.setItem("token", "{key}")', key),
        (f'headers.set("X-Api-Key", "{key}")', key),
        (f"mysql -u root -p{word} app", word),
        (f"mysqldump -h db -u root -p{word} app > x.sql", word),
        (f"sshpass -p {word} ssh me@host", word),
        (f"redis-cli -h cache -a {word} ping", word),
        (f"docker login -u me -p {word} registry.example.org", word),
        (f"ALTER USER app WITH PASSWORD '{word}'", word),
        (f"CREATE USER 'app' IDENTIFIED BY '{word}'", word),
        (f"machine git.example.org login me password {word}", word),
        (f"FROM x\nENV DB_PASSWORD {word}\nRUN y", word),
        (f"ARG TOKEN={key}", key),
        (f"- name: DB_PASSWORD\n  value: {word}", word),
        (f'{{"name": "API_TOKEN", "value": "{key}"}}', key),
        (f"密码：{word}", word),
        (f"密码是 {word}", word),
        (f"пароль: {word}", word),
        (f"Passwort: {word}", word),
        (f"contraseña: {word}", word),
        (f"パスワード: {word}", word),
        (f"비밀번호: {word}", word),
        (f'userPass: "{word}"', word),
        (f"dbpass={word}", word),
        (f"?sv=2024&sig={key}%3D", key),
        (f"https://{made(HEX, 40)}@git.example.org/r.git", ""),
        (f"jdbc:postgresql://h/db?user=u&password={word}&ssl=true", word),
        (f"Cookie: session={key}", key),
        (f"Set-Cookie: sid={key}; Path=/; HttpOnly", key),
    ]


def _keys() -> list[tuple[str, str]]:
    kinds = ["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "]
    texts = [pem(f"{kind}PRIVATE KEY") for kind in kinds]
    texts += [pem("PGP PRIVATE KEY BLOCK"), pem("PRIVATE KEY", sep="\\n")]
    texts += [pem("RSA PRIVATE KEY", end=False), pem("PRIVATE KEY", sep="\\n", end=False)]
    return [(f"before\n{text}\nafter, all the same", text[40:120]) for text in texts]


def positives() -> list[tuple[str, str]]:
    """(text, what must not be left in it)."""
    shaped = [(_in_context(secret, i), secret) for i, secret in enumerate(_prefixed())]
    rest = [
        (text, secret or max(text.replace('"', " ").split(), key=len).split("=")[-1])
        for text, secret in _assigned() + _elsewhere()
    ]
    return shaped + rest + _keys()


def _hashes() -> list[str]:
    sha1, sha2, md5 = made(HEX, 40), made(HEX, 64), made(HEX, 32)
    uuid = "-".join(made(HEX, n) for n in (8, 4, 4, 4, 12))
    return [
        f"commit {sha1}",
        f"git checkout {sha1[:7]}",
        f"Merge {sha1[:7]} into {made(HEX, 7)}",
        f"index {sha1[:7]}..{made(HEX, 7)} 100644",
        f"sha256:{sha2}",
        f'"sha256": "{sha2}"',
        f'{{ hash = "sha256:{sha2}", size = 1024 }}',
        f"content_hash={sha2}",
        f"md5: {md5}",
        f"etag: {md5}",
        f'"integrity": "sha512-{made(ALNUM + "+/", 86)}=="',
        f"id: {uuid}",
        f'"session_id": "{uuid}"',
        f"session/{uuid}",
        f'key: "{uuid}"',
        f'cache_key = "{sha2}"',
        f"key: {sha1}",
        f"uses: actions/checkout@{sha1}",
        f"image: app@sha256:{sha2}",
        f"trace_id={md5} span_id={made(HEX, 16)}",
        f"![logo](data:image/png;base64,{made(ALNUM + '+/', 300)})",
        f'"data": "{made(ALNUM + "+/", 400)}"',
        f"src='data:font/woff2;base64,{made(ALNUM + '+/', 200)}'",
        f"//# sourceMappingURL=data:application/json;base64,eyJ{made(ALNUM, 200)}",
        f'"tool_use_id": "toolu_{made(ALNUM, 24)}"',
        f"request id req_{made(ALNUM, 24)}",
        f"h1:{made(ALNUM + '+/', 43)}=",
        f"ssh-rsa AAAAB3NzaC1yc2E{made(ALNUM + '+/', 200)} me@host",
        f"Public key SHA256:{made(ALNUM + '+/', 43)}",
        pem("CERTIFICATE"),
        pem("PUBLIC KEY"),
        f"0x{sha1}",
        f'ETag: W/"{made(HEX, 24)}"',
    ]


def negatives() -> list[str]:
    """Texts in which nothing is to be redacted."""
    kept = Path(__file__).with_name("harmless_texts.txt")
    return _hashes() + kept.read_text("utf-8").splitlines()


def measured() -> tuple[list[str], list[str], float, float]:
    """Missed positives, disturbed negatives, precision and recall."""
    hits = positives()
    missed = [text for text, secret in hits if secret in redact(text).text]
    wrong = [text for text in negatives() if redact(text).text != text]
    found = len(hits) - len(missed)
    return missed, wrong, found / (found + len(wrong)), found / len(hits)


def held_out() -> tuple[list[str], list[str], float, float]:
    """The same of the held-out half."""
    hits = held_out_found()
    missed = [text for text, values in hits if any(v in redact(text).text for v in values)]
    wrong = [text for text in held_out_kept() if redact(text).text != text]
    found = len(hits) - len(missed)
    return missed, wrong, found / (found + len(wrong)), found / len(hits)


def test_the_labelled_set_is_large_enough_on_both_sides() -> None:
    assert len(positives()) >= 120
    assert len(negatives()) >= 120


def test_every_positive_example_contains_its_credential() -> None:
    assert [text for text, secret in positives() if len(secret) < 5 or secret not in text] == []


def test_recall_and_precision_hold_on_the_labelled_set() -> None:
    missed, wrong, precision, recall = measured()
    assert recall >= 0.95, missed
    assert precision >= 0.9, wrong


def test_recall_and_precision_hold_on_the_held_out_half() -> None:
    missed, wrong, precision, recall = held_out()
    assert len(held_out_found()) + len(held_out_kept()) >= 300
    assert recall >= 0.95, missed
    assert precision >= 0.95, wrong


def test_recall_and_precision_hold_on_the_third_set() -> None:
    missed, wrong, precision, recall = thirds.third()
    assert min(len(thirds.third_found()), len(thirds.third_kept())) >= 200
    assert recall >= 0.95, missed
    assert precision >= 0.95, wrong


def test_no_template_file_contains_a_credential() -> None:
    for path in (FOUND, KEPT, thirds.FOUND, thirds.KEPT, *FORMS.glob("*.txt")):
        assert [v for line in path.read_text("utf-8").splitlines() for v in _whole(line)] == []


def _whole(line: str) -> list[str]:
    """Runs that look made in a line of templates."""
    return re.findall(r"[A-Za-z0-9+/]{40,}", line)


def test_redacting_twice_changes_nothing_more() -> None:
    for text, _ in (*positives(), *held_out_found(), *thirds.third_found()):
        once = redact(text)
        twice = redact(once.text)
        assert (twice.text, twice.count) == (once.text, 0), text
