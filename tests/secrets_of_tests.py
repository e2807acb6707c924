"""Made-up secrets and addresses, put together here so that nothing in the repository looks like one."""

from __future__ import annotations

import random
import string

_rng = random.Random(20261130)
_MIXED = string.ascii_letters + string.digits


def _some(length: int, letters: str = _MIXED) -> str:
    return "".join(_rng.choices(letters, k=length))


_JWT = ("eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", _some(43))
SECRETS = {
    "aws key": "AKIA" + _some(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "github pat": "ghp_" + _some(36),
    "stripe access token": "sk_" + "live_" + _some(24),
    "stripe key": "sk_" + "test_" + _some(24),
    "openai api key": "sk-" + _some(20) + "T3Blbk" + "FJ" + _some(20),
    "anthropic api key": "sk-ant-" + "api03-" + _some(93) + "AA",
    "gcp api key": "AIza" + _some(35),
    "slack bot token": "xoxb-" + "-".join((_some(12, string.digits), _some(12, string.digits), _some(24))),
    "gitlab pat": "glpat-" + _some(20),
    "telegram bot token": f"7{_some(9, string.digits)}:AA{_some(33)}",
    "google client secret": "GOCSPX-" + _some(28),
    "jwt": ".".join(_JWT),
}
PEM = "\n".join(
    ["-----BEGIN RSA PRIVATE " + "KEY-----", *(_some(64) for _ in range(12)), "-----END RSA PRIVATE " + "KEY-----"]
)
PERSONAL = {
    "email": "zoe.quartz" + "@" + "mailbox.example.org",
    "card number": "4539 1488 " + "0343 6467",
    "iban": "DE89 3704 " + "0044 0532 0130 00",
    "phone number": "+49 30 " + "901820",
}
