"""Archives for runs: a compressed tar inside the uncompressed one that dstack expects, within its size limit."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from rldsl.launch.code import LIBRARY, library
from rldsl.spec.errors import SpecError

LIMIT = "DSTACK_SERVER_CODE_UPLOAD_LIMIT"
"""The environment variable with the upload limit of the server in bytes; 0: no limit."""
DEFAULT_LIMIT = 2 * 2**20
ENVELOPE = 1024
LARGEST = 3
POINTS = "entry_points.txt"


def wrapped(name: str, files: Mapping[str, bytes]) -> bytes:
    """A tar with one file `name`, the compressed tar of `files`. Equal files give equal bytes."""
    packed = gzip.compress(_tar(files), mtime=0)
    whole = _tar({name: packed})
    limit = int(os.environ.get(LIMIT, DEFAULT_LIMIT))
    if limit and len(whole) + ENVELOPE > limit:
        raise SpecError(_too_large(name, files, len(whole), limit))
    return whole


def code_files(code: Path) -> dict[str, bytes]:
    """The frozen copy of the code, with the metadata of rldsl that Submitit finds plugins by."""
    files = {str(path.relative_to(code)): path.read_bytes() for path in sorted(code.rglob("*")) if path.is_file()}
    return {**files, **_plugin(files)}


def library_files() -> dict[str, bytes]:
    """rldsl itself, for functions that run without a copy of the code; empty if it can be installed with pip."""
    files = {goal: source.read_bytes() for source, goal in sorted(library(), key=lambda entry: entry.goal)}
    return {**files, **_plugin(files)}


def _plugin(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The metadata of rldsl that Submitit finds plugins by, if rldsl is among the files."""
    if not any(name.startswith(f"{LIBRARY}/rldsl/") for name in files):
        return {}
    return {f"{LIBRARY}/rldsl.dist-info/{name}": text.encode() for name, text in _metadata().items()}


def _metadata() -> dict[str, str]:
    ours = metadata.distribution("rldsl")
    files = {"METADATA": ours.read_text("METADATA") or ours.read_text("PKG-INFO")}
    return {name: text for name, text in {**files, POINTS: ours.read_text(POINTS)}.items() if text}


def _tar(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return out.getvalue()


def _too_large(name: str, files: Mapping[str, bytes], size: int, limit: int) -> str:
    packed = {one: len(gzip.compress(data)) for one, data in files.items()}
    largest = sorted(packed, key=lambda one: -packed[one])[:LARGEST]
    shown = ", ".join(f"{one} ({packed[one] / 1e6:.1f} MB)" for one in largest)
    return (
        f"{name} is {size / 1e6:.1f} MB, more than the {limit / 1e6:.1f} MB that dstack takes; "
        f"the largest in it are {shown}: list what is no code in .gitignore, or set {LIMIT} as the server has it"
    )
