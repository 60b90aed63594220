"""Files and texts that look like keys or credentials, which must not leave the machine with code or results.

The patterns are those of well-known services, as in detect-secrets and gitleaks: a match is almost never an accident.
detect-secrets itself takes seconds for a project of 30,000 lines, which is too long for every submission.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

HIDDEN = "***"
MOST_BYTES = 2_000_000
"""How much of a file is searched."""
BINARY = frozenset({".safetensors", ".png", ".jpg", ".mp4", ".npz", ".npy", ".pt", ".pth"})

NAMES = (
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx", "*.ppk"),
    *(".env", ".env.*", ".netrc", "_netrc", ".pypirc", ".npmrc", ".git-credentials", ".pgpass", ".htpasswd"),
    *("credentials", "credentials.*", "*credentials.json", "client_secret*.json", "service[_-]account*.json"),
    *("secrets.*", "secret.*", "*.token", "token", "token.txt", "kubeconfig", "wandb_key*", "api_key*", "apikey*"),
)
PUBLIC_NAMES = ("*.pub", "*.py", "*.pyi", "*.example", "*.sample", "*.template", "*.md")
"""Names that are no secrets whatever else they match; their contents are searched nevertheless."""

PATTERNS = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----)?",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{30,}",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "an AWS key": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a Google API key": r"\bAIza[A-Za-z0-9_-]{35}\b",
    "a Slack token": r"\bxox[abpors]-[A-Za-z0-9-]{10,}",
    "an OpenAI or Anthropic key": r"\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{20,}",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}",
    "a PyPI token": r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{40,}",
    "a Weights & Biases key": r"(?:WANDB_API_KEY[\"']?\s*[=:]\s*[\"']?|wandb[ .]login[ (][^\n]{0,40}?)[a-f0-9]{40}\b",
    "a JSON web token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
}
_ANY = re.compile("|".join(f"({pattern})" for pattern in PATTERNS.values()), re.DOTALL)
_ANY_BYTES = re.compile(_ANY.pattern.encode(), re.DOTALL)


def hide_secrets(text: str) -> str:
    """The text with `***` in place of every key and token."""
    return _ANY.sub(HIDDEN, text)


def secret_in(content: bytes) -> str | None:
    """What kind of secret is in a file, or None."""
    match = _ANY_BYTES.search(content)
    return None if match is None else list(PATTERNS)[(match.lastindex or 1) - 1]


def secret_name(path: Path) -> bool:
    """Whether a file of this name usually holds keys or credentials."""
    name = path.name.lower()
    if any(fnmatch(name, one) for one in PUBLIC_NAMES):
        return False
    return any(fnmatch(name, one) for one in NAMES) or bool({".ssh", ".aws", ".gnupg"} & {*path.parts})


def offence(path: Path) -> str | None:
    """Why a file must not be copied elsewhere; None if there is no reason."""
    if path.is_symlink():
        return "is a symbolic link"
    if secret_name(path):
        return "has the name of a file with keys or credentials"
    if path.suffix in BINARY:
        return None
    try:
        with path.open("rb") as file:
            kind = secret_in(file.read(MOST_BYTES))
    except OSError as error:
        return f"cannot be read: {(error.strerror or str(error)).lower()}"
    return kind and f"contains what looks like {kind}"


def offenders(paths: Iterable[Path]) -> dict[Path, str]:
    """The files that must not be published, each with the reason: symbolic links, keys and credentials."""
    return {path: reason for path in paths if (reason := offence(path)) is not None}
