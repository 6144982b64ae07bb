"""The words that say a secret is meant, in some languages, and the kind of secret each means."""

from __future__ import annotations

from reverie.domain.redaction_patterns import API_KEY, PASSWORD, SECRET, TOKEN

WEAK = "WEAK"
"""The word alone promises little: its value must look like a secret too."""

# Each begins with a literal of its own, so that the search skips from one to the next.
KEYWORDS = (
    (PASSWORD, r"passwor[dt]s?|passwd|passphrase|passcode"),
    (PASSWORD, r"pass(?!w|phrase|code)"),
    (PASSWORD, r"pwd"),
    (PASSWORD, r"pw(?<![a-z0-9]pw)(?!d)"),
    (PASSWORD, r"kennwort"),
    (PASSWORD, r"contraseña"),
    (PASSWORD, r"mot de passe"),
    (PASSWORD, r"senha(?<![a-z]senha)"),
    (PASSWORD, r"пароль"),
    (PASSWORD, r"密[码碼]"),
    (PASSWORD, r"パスワード"),
    (PASSWORD, r"비밀번호"),
    (SECRET, r"secret"),
    (TOKEN, r"token"),
    (TOKEN, r"credentials?"),
    (TOKEN, r"jwt"),
    (TOKEN, r"bearer"),
    (TOKEN, r"dockerconfigjson"),
    (API_KEY, r"key"),
    (WEAK, r"auth"),
    (WEAK, r"cookie"),
    (WEAK, r"sig(?<![a-z0-9]sig)"),
    (WEAK, r"signature"),
    (SECRET, r"salt"),
    (SECRET, r"pepper"),
    (SECRET, r"mnemonic"),
    (SECRET, r"psk(?<![a-z0-9]psk)"),
    (TOKEN, r"nonce"),
    (TOKEN, r"seed"),
)
"""Expressions of words in lower case, each with its kind."""
