"""SHA256SUMS: the checksums of a session's files, in the format of `sha256sum`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

SHA256SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def checksums_text(digests: Mapping[str, str]) -> str:
    """The file, sorted by name."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))


def parse_checksums(text: str) -> dict[str, str]:
    """The digests by name; lines that are none are ignored, so their files have no checksum and are refused."""
    return {match[2]: match[1] for line in text.splitlines() if (match := _LINE.fullmatch(line))}


def sha256_of(content: Path | bytes) -> str:
    """The digest of a file or of bytes."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
