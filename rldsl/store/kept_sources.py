"""`runs/.sources`: the text of every source file that a session depended on, once per content, for `diff`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rldsl.store.code_version import CodeVersion
from rldsl.store.errors import writing
from rldsl.store.files import PRIVATE, replace_text
from rldsl.store.scrub import scrub_text

SOURCES = ".sources"
_NAME = re.compile(r"[0-9a-f]{8,64}")


def save_sources(runs: Path, version: CodeVersion) -> None:
    """Keeps the files of a version; those that are there already are left alone."""
    folder = runs / SOURCES
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for file in version.files.values():
        path = folder / file.source.text_digest
        if not path.exists():
            replace_text(path, scrub_text(file.source.text), durable=False, mode=PRIVATE)


def read_kept(runs: Path, digest: object) -> str | None:
    """The text with this digest; None if it was not kept."""
    if not isinstance(digest, str) or not _NAME.fullmatch(digest):
        return None
    try:
        return (runs / SOURCES / digest).read_text(errors="replace")
    except OSError:
        return None


def recorded_files(code: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """The files in the provenance of a session: by name, the digest of what counts and that of the text."""
    files = code.get("files")
    if not isinstance(files, dict):
        return {}
    pairs = {str(name): pair for name, pair in files.items() if isinstance(pair, list) and len(pair) == 2}
    return {name: (str(pair[0]), str(pair[1])) for name, pair in pairs.items()}
