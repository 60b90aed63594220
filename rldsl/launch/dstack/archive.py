"""Archives for runs: a compressed tar inside the uncompressed one that dstack expects, within its size limit."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from rldsl.launch.code import LIBRARY
from rldsl.spec.errors import PACKAGE, SpecError

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
    if any(name.startswith(f"{LIBRARY}/rldsl/") for name in files):
        files |= {f"{LIBRARY}/rldsl.dist-info/{name}": text.encode() for name, text in _metadata().items()}
    return files


def requirements() -> str:
    """The dependencies of rldsl in the versions of this machine, for `pip install --requirement`."""
    needed = [one.partition(">=")[0] for one in metadata.requires("rldsl") or [] if ";" not in one]  # of no extra
    if "site-packages" in PACKAGE.parts:
        needed.append("rldsl")  # it does not go along with the code
    return "".join(f"{name}=={_version(name)}\n" for name in needed)


def _version(name: str) -> str:
    return metadata.version(name.partition("[")[0]).partition("+")[0]


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
