"""Tags and notes that users give to sessions: `notes.json` in the directory of a session, replaced by rename."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from rldsl.store.files import replace_json

NOTES = "notes.json"
MAX_LENGTH = 500


@dataclass(frozen=True, slots=True)
class Notes:
    """What users have noted about a session."""

    tags: tuple[str, ...] = ()
    text: str = ""


def parse_tags(text: str) -> tuple[str, ...]:
    """The words of a text as tags, without `#`, each once."""
    words = (re.sub(r"[^\w.+/-]", "", word) for word in text.replace(",", " ").split())
    return tuple(dict.fromkeys(word[:40] for word in words if word))


def read_notes(directory: Path) -> Notes:
    """The notes of a session; none if there is no file or it is not ours."""
    try:
        data = json.loads((directory / NOTES).read_bytes())
    except (OSError, ValueError):
        return Notes()
    if not isinstance(data, dict):
        return Notes()
    tags, text = data.get("tags"), data.get("note")
    known = [one for one in tags if isinstance(one, str)] if isinstance(tags, list) else []
    return Notes(parse_tags(" ".join(known)), text[:MAX_LENGTH] if isinstance(text, str) else "")


def write_notes(directory: Path, notes: Notes) -> None:
    """Replaces the notes of a session."""
    replace_json(directory / NOTES, {"tags": list(notes.tags), "note": notes.text[:MAX_LENGTH]})
