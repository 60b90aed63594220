"""A trained agent as a model repository: `hf://OWNER/NAME`. It has the files of a session that playing needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rldsl.hub.checksums import SHA256SUMS, checksums_text, parse_checksums, sha256_of
from rldsl.hub.remote_paths import printable
from rldsl.hub.repository import Content, Repository
from rldsl.hub.retry import WAITS, HubError
from rldsl.store import layout
from rldsl.store.errors import StoreError
from rldsl.store.session_dir import SessionDir

SCHEME = "hf:/"
"""How an address begins; a path has lost one of the two slashes."""
ADDRESS = re.compile(r"hf:/{1,2}(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?", re.ASCII)
BEST = f"{layout.CHECKPOINTS}/best"
PLAYED = (layout.SESSION, f"{BEST}/*.json", f"{BEST}/*.safetensors")
"""What is downloaded to play: settings and weights."""
DESCRIBED = (layout.CONFIG, layout.METRICS, layout.provenance_name(1))


def is_address(text: str) -> bool:
    """Whether a text is meant as the address of an agent on the Hub."""
    return text.startswith(SCHEME)


def parse_address(text: str) -> tuple[str, str | None]:
    """The name and the revision (branch, tag or commit) of `hf://OWNER/NAME@REVISION`."""
    match = ADDRESS.fullmatch(text)
    if match is None:
        raise HubError(f"{text} is no address of an agent: it should be hf://OWNER/NAME or hf://OWNER/NAME@REVISION")
    return match["name"], match["revision"]


def agent_files(session: SessionDir) -> dict[str, Content]:
    """The files of a session for a model repository, with their checksums."""
    if not (session.path / BEST / "manifest.json").exists():
        raise StoreError(f"{session.id} has no checkpoint yet: the first comes after two minutes, or at its end")
    paths = [path for pattern in (*PLAYED, *DESCRIBED) for path in sorted(session.path.glob(pattern))]
    files: dict[str, Content] = {path.relative_to(session.path).as_posix(): path for path in paths}
    sums = checksums_text({name: sha256_of(content) for name, content in files.items()})
    return {**files, SHA256SUMS: sums.encode()}


def download_agent(address: str, waits: Sequence[float] = WAITS) -> SessionDir:
    """The session of an agent on the Hub, in the cache of the client; its files have their checksums."""
    name, revision = parse_address(address)
    folder = Repository(name, waits, "model").download_cached([*PLAYED, SHA256SUMS], revision)
    if not (folder / layout.SESSION).exists() or not (folder / SHA256SUMS).exists():
        raise StoreError(f"the model repository {name} is no agent of rldsl: `rldsl push --agent` makes one")
    sums = parse_checksums((folder / SHA256SUMS).read_text(errors="replace"))
    for path in sorted(path for pattern in PLAYED for path in folder.glob(pattern)):
        file = path.relative_to(folder).as_posix()
        if sums.get(file) != _digest(path):
            raise StoreError(f"{printable(file)} of the model repository {name} does not have its checksum")
    return SessionDir(folder)


def _digest(path: Path) -> str | None:
    try:
        return sha256_of(path)
    except OSError:
        return None
