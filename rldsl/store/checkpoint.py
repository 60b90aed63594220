"""Checkpoints: a nested state as safetensors and JSON. Loading never executes code and detects damaged files.

A checkpoint is a directory named `<frame>`, or by a tag such as `best`. It is written under a temporary name, flushed
and renamed. While it replaces another one of the same name, that one is kept as `<name>.old`. Replay buffers are
stored in segments that checkpoints share (see append_only_ring.py).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.store.append_only_ring import AppendOnlyRing, RingSnapshot, Saved, Segment, link, without_newest
from rldsl.store.errors import CheckpointDamaged, CheckpointOutdated, writing
from rldsl.store.files import replace_json, sync_directory, sync_file
from rldsl.store.states import join_state, split_state

ARRAYS = "arrays.safetensors"
STATE = "state.json"
SEGMENT = ".safetensors"
MANIFEST = "manifest.json"
SCHEMA = 2
"""Increased when the content of agents' states changes. Checkpoints of earlier schemas can be played, not resumed."""

TEMPORARY = ".tmp-"
OLD = ".old"
ASIDE = ".damaged"
FRAME_NAME = re.compile(r"(\d{12,})(\.old)?")


class Checkpoint(NamedTuple):
    """A loaded checkpoint."""

    frame: int
    state: dict[str, Any]
    path: Path
    damaged: list[str]  # one sentence per newer checkpoint that was skipped because it is damaged


class _Damaged(Exception):
    """The reason why a checkpoint cannot be loaded."""


def save_checkpoint(
    directory: Path,
    frame: int,
    state: Mapping[str, Any],
    *,
    tag: str | None = None,
    keep: int = 2,
    verify: Callable[[], None] = lambda: None,
) -> Path:
    """Saves `state` durably: once this returns, the checkpoint survives a power failure.

    The last `keep` untagged checkpoints are kept, including this one. Later frames are removed: they were damaged, or
    training would not have resumed from an earlier one. A tagged checkpoint replaces the one with the same tag and
    must not contain rings, which are too large to be copied. `verify` is called before anything that exists is changed.
    """
    rings: dict[str, AppendOnlyRing] = {}
    tree, arrays = split_state(state, rings if tag is None else None)
    written: dict[str, Saved] = {}

    def fill(temporary: Path) -> None:
        written.update({name: _write_segments(temporary, name, rows) for name, rows in rings.items()})
        _write_content(temporary, {"schema": SCHEMA, "frame": frame, "state": tree}, arrays, written)

    final = put_checkpoint(directory, tag or f"{frame:012d}", fill, verify, keep)
    for name, rows in rings.items():
        rows.saved.clear()
        rows.saved.update(without_newest(_moved(written[name], final)))
    return final


def put_checkpoint(
    directory: Path, name: str, fill: Callable[[Path], None], verify: Callable[[], None], keep: int = 2
) -> Path:
    """Puts a checkpoint into its place once `fill` has written it to a temporary directory; see `save_checkpoint`."""
    final = directory / name
    with writing(final):
        directory.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(directory)
        temporary = directory / f"{TEMPORARY}{name}-{os.getpid()}"
        try:
            temporary.mkdir()
            fill(temporary)
            verify()
            _put(temporary, final)
        except BaseException:
            _remove(temporary)
            raise
        if FRAME_NAME.fullmatch(name):
            _prune(directory, _frame_of(final), keep)
    return final


def load_checkpoint(
    directory: Path, *, tag: str | None = None, at_most: int | None = None, any_schema: bool = False
) -> Checkpoint | None:
    """The newest undamaged checkpoint up to frame `at_most`, or the one with `tag`; None if there is none.

    Raises CheckpointOutdated for a checkpoint that cannot be resumed because of its schema. With `any_schema` it is
    loaded nevertheless, to play its policy.
    """
    candidates = _numbered(directory) if tag is None else _existing(directory / tag, directory / f"{tag}{OLD}")
    if at_most is not None:
        candidates = [path for path in candidates if _frame_of(path) <= at_most]
    damaged: list[str] = []
    for path in candidates:
        try:
            frame, schema, state = _read_content(path)
        except _Damaged as reason:
            damaged.append(f"checkpoint {path.name} is damaged: {reason}")
        else:
            if schema != SCHEMA and not any_schema:
                raise CheckpointOutdated(
                    f"the checkpoint {path} has schema {schema} and this version has {SCHEMA}: it can be played, but "
                    "its training cannot be resumed"
                )
            return Checkpoint(frame, state, path, damaged)
    if damaged:
        raise CheckpointDamaged(f"no checkpoint in {directory} can be loaded: {'; '.join(damaged)}")
    return None


def copy_checkpoint(source: Path, goal: Path, edit: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Copies a checkpoint whose state `edit` changes, given its tree and arrays (states.py); segments are linked."""
    from safetensors.numpy import load_file

    files = json.loads((source / MANIFEST).read_bytes())["files"]
    document, arrays = json.loads((source / STATE).read_bytes()), load_file(source / ARRAYS)
    edit(document["state"], arrays)
    goal.mkdir()
    for name in files.keys() - {ARRAYS, STATE}:
        link(source / name, goal / name)
    _write_arrays(goal / ARRAYS, arrays)
    replace_json(goal / STATE, document)
    changed = {name: _fingerprint(goal / name) for name in (ARRAYS, STATE)}
    replace_json(goal / MANIFEST, {"schema": SCHEMA, "files": files | changed})


def set_aside(directory: Path, tag: str) -> Path:
    """Renames a damaged checkpoint, so that it blocks nothing and can still be looked at; returns its new path."""
    aside = directory / f"{tag}{ASIDE}"
    with writing(aside):
        for path in _existing(directory / tag, directory / f"{tag}{OLD}"):
            _remove(aside)
            path.rename(aside)
    return aside


def checkpoint_path(directory: Path, frame: int) -> Path:
    """The directory of the untagged checkpoint of a frame."""
    found = [path for path in _numbered(directory) if _frame_of(path) == frame]
    return found[0] if found else directory / f"{frame:012d}"


def checkpoint_frames(directory: Path) -> list[int]:
    """The frames of the untagged checkpoints by their names, newest first."""
    return sorted({_frame_of(path) for path in _numbered(directory)}, reverse=True)


def _write_content(
    directory: Path, document: dict[str, Any], arrays: dict[str, Any], written: Mapping[str, Saved]
) -> None:
    _write_arrays(directory / ARRAYS, arrays)
    rings = {name: [[begin, *_named(segment)] for begin, segment in saved.items()] for name, saved in written.items()}
    replace_json(directory / STATE, {**document, "growing": rings} if rings else document)
    files = {name: _fingerprint(directory / name) for name in (ARRAYS, STATE)}
    segments = {segment.path.name: segment.fingerprint for saved in written.values() for segment in saved.values()}
    replace_json(directory / MANIFEST, {"schema": SCHEMA, "files": files | segments})


def _write_segments(directory: Path, name: str, rows: AppendOnlyRing) -> Saved:
    """Writes new segments and links saved ones."""
    saved = {}
    for begin, first, last in rows.parts():
        known = rows.finished(begin, last)
        path = directory / f"{name.replace('/', '.')}-{begin}{SEGMENT}"
        if known is None:
            saved[begin] = write_segment(path, first, last, rows.read(first, last))
        else:
            link(known.path, path)
            saved[begin] = known._replace(path=path)
    return saved


def write_segment(path: Path, first: int, last: int, arrays: Mapping[str, Any]) -> Segment:
    """Writes and fsyncs a segment; its directory entry is not synced."""
    _write_arrays(path, dict(arrays))
    return Segment(path, first, last, _fingerprint(path))


def _named(segment: Segment) -> tuple[str, int, int]:
    return segment.path.name, segment.first, segment.last


def _moved(saved: Saved, directory: Path) -> Saved:
    return {begin: segment._replace(path=directory / segment.path.name) for begin, segment in saved.items()}


def _write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    try:
        save_file(arrays, path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        code = int(number[1])
        raise OSError(code, os.strerror(code)) from error
    sync_file(path)


def _put(temporary: Path, final: Path) -> None:
    """Renames into place. At any time there is a complete checkpoint at `final` or at its `.old` name."""
    old = final.with_name(final.name + OLD)
    if final.exists():
        _remove(old)
        final.rename(old)
    temporary.rename(final)
    sync_directory(final.parent)
    _remove(old)


def _read_content(path: Path) -> tuple[int, int, dict[str, Any]]:
    """Frame, schema and state of a checkpoint."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        _verify(path, manifest["files"])
        document = json.loads((path / STATE).read_bytes())
        snapshots = {
            name: _snapshot(path, rows, manifest["files"]) for name, rows in document.get("growing", {}).items()
        }
        state = join_state(document["state"], load_file(path / ARRAYS), snapshots)
        return document["frame"], document["schema"], state
    except OSError as error:
        raise _Damaged(f"{Path(error.filename or path).name}: {(error.strerror or str(error)).lower()}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
        raise _Damaged(f"its content cannot be read ({type(error).__name__})") from error


def _snapshot(path: Path, segments: list[tuple[int, str, int, int]], files: dict[str, Any]) -> RingSnapshot:
    return RingSnapshot(
        {begin: Segment(path / name, first, last, files[name]) for begin, name, first, last in segments}
    )


def _verify(path: Path, files: dict[str, Any]) -> None:
    for name in (ARRAYS, STATE, *(files.keys() - {ARRAYS, STATE})):
        if files[name] != _fingerprint(path / name):
            raise _Damaged(f"{name} is not what was written")


def _fingerprint(path: Path) -> dict[str, Any]:
    import hashlib

    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "size": file.tell()}


def _remove_leftovers(directory: Path) -> None:
    """Removes temporary directories of killed writers; there is only one writer at a time."""
    for path in directory.glob(f"{TEMPORARY}*"):
        _remove(path)


def _prune(directory: Path, frame: int, keep: int) -> None:
    paths = [path for path in _numbered(directory) if _frame_of(path) <= frame]
    kept = [path for path in paths if _has_right_sizes(path)][:keep]
    for path in _numbered(directory):
        if path not in kept:
            _remove(path)


def _has_right_sizes(path: Path) -> bool:
    """A cheap check, so that a truncated checkpoint does not count as one of those to keep."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        files = json.loads((path / MANIFEST).read_bytes())["files"]
        return all((path / name).stat().st_size == files[name]["size"] for name in {ARRAYS, STATE, *files})
    return False


def _numbered(directory: Path) -> list[Path]:
    """Paths of the untagged checkpoints, newest first; of the same frame, `<frame>` before `<frame>.old`."""
    try:
        names = [name for name in os.listdir(directory) if FRAME_NAME.fullmatch(name)]  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(sorted(directory / name for name in names), key=_frame_of, reverse=True)


def _frame_of(path: Path) -> int:
    return int(path.name.removesuffix(OLD))


def _remove(path: Path) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _existing(*paths: Path) -> list[Path]:
    return [path for path in paths if path.is_dir()]
