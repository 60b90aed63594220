"""Removes secrets from commands and diffs before they are recorded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rldsl.store.secrets import HIDDEN, hide_secrets

_SENSITIVE = r"(?:token|password|passwd|secret|credential|key)"
_NAMED_VALUE = re.compile(rf"({_SENSITIVE}[^=:]*[=:]).*", re.IGNORECASE | re.DOTALL)
_OPTION = re.compile(rf"-[^=]*{_SENSITIVE}[^=]*", re.IGNORECASE)
_HUB_TOKEN = re.compile(r"hf_[A-Za-z0-9]{8,}")
_URL_LOGIN = re.compile(r"(\w://)[^/\s@\"']+@")


def scrub_text(text: str) -> str:
    """Hides keys, tokens of well-known services and credentials in URLs."""
    return _URL_LOGIN.sub(rf"\1{HIDDEN}@", _HUB_TOKEN.sub(HIDDEN, hide_secrets(text)))


def scrub_command(command: Sequence[str]) -> list[str]:
    """Also hides the values of arguments with secret-like names: `--token x`, `--token=x`, `HF_TOKEN=x`."""
    scrubbed: list[str] = []
    after_secret_option = False
    for argument in command:
        hide = after_secret_option and not argument.startswith("--")
        scrubbed.append(HIDDEN if hide else scrub_text(_NAMED_VALUE.sub(rf"\1{HIDDEN}", argument)))
        after_secret_option = _OPTION.fullmatch(argument) is not None
    return scrubbed
