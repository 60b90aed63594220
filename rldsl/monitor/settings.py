"""What the monitor remembers between two starts: theme, columns, filters, colours, the view of each run directory."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from rldsl.store.errors import StoreError
from rldsl.store.files import replace_json

MAX_DIRECTORIES = 50
MAX_SELECTED = 1000


@dataclass
class RunsView:
    """How a run directory was shown last."""

    filter: str = ""
    order: str = "name"
    reverse: bool = False
    folded: dict[str, bool] = field(default_factory=dict)
    selected: list[str] = field(default_factory=list)
    pinned: list[str] = field(default_factory=list)


@dataclass
class Settings:
    """All that is remembered. Values of another type, as in a damaged file, are replaced by the usual ones."""

    theme: str = ""
    safe_colours: bool = False
    columns: list[str] = field(default_factory=list)
    filters: dict[str, str] = field(default_factory=dict)
    colours: dict[str, int] = field(default_factory=dict)
    show_events: bool = False
    curves: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def view(self, runs: Path) -> RunsView:
        """The view of a run directory."""
        return _checked(RunsView(), self.runs.get(str(runs.resolve())))

    def keep_view(self, runs: Path, view: RunsView) -> None:
        """Remembers the view of a run directory; of very many directories, the oldest is forgotten."""
        name = str(runs.resolve())
        self.runs.pop(name, None)
        self.runs[name] = asdict(view)
        while len(self.runs) > MAX_DIRECTORIES:
            self.runs.pop(next(iter(self.runs)))


Kept = TypeVar("Kept", RunsView, Settings)


def settings_path() -> Path:
    """The file of the settings, in the user's state directory."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rldsl" / "watch.json"


def load_settings(path: Path | None) -> Settings:
    """The settings of a file; the usual ones if there is none or it cannot be read."""
    try:
        return _checked(Settings(), json.loads(path.read_bytes()) if path else None)
    except (OSError, ValueError, RecursionError):
        return Settings()


def save_settings(path: Path, settings: Settings) -> None:
    """Replaces the file; a directory that cannot be written is no reason to bother the user."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_json(path, asdict(settings), durable=False)
    except (OSError, StoreError):
        return


def _checked(usual: Kept, data: Any) -> Kept:
    """The object with those values that have the type of their field."""
    known = data if isinstance(data, dict) else {}
    for one in fields(usual):
        before = getattr(usual, one.name)
        if isinstance(value := known.get(one.name), type(before)) and _same_items(value, one.name):
            setattr(usual, one.name, value)
    return usual


ITEMS: dict[str, type] = {
    "columns": str,
    "selected": str,
    "pinned": str,
    "filters": str,
    "colours": int,
    "folded": bool,
    "runs": dict,
}


def _same_items(value: Any, name: str) -> bool:
    """Whether all items of a list or dict have the type that they should have."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(isinstance(item, ITEMS[name]) for item in items) if name in ITEMS else True
