"""What no input may do: start a process, write a file, take long, or raise anything but rldsl's own one-line errors."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rldsl.spec.errors import SpecError
from rldsl.store.errors import StoreError

MOST_SECONDS = 5.0
PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork")
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.symlink", "os.link", "shutil.rmtree", "os.truncate")
counts: Counter[str] = Counter()
"""Cases by their outcome: `valid` or `refused`."""
_watching: list[str] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching is None:
        return
    if event in PROCESSES or event in CHANGES:
        _watching.append(f"{event} {arguments[0]}")
    elif event == "open" and arguments[2] is not None and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        name = str(arguments[0])
        if "__pycache__" not in name and name != os.devnull:
            _watching.append(f"write {name}")


sys.addaudithook(_hook)


@contextmanager
def guarded(case: object, inside: Path | None = None) -> Iterator[None]:
    """Lets through nothing but rldsl's own errors; files may be written only below `inside`."""
    global _watching
    began, _watching = time.monotonic(), []
    try:
        yield
        counts["valid"] += 1
    except (SpecError, StoreError) as error:
        counts["refused"] += 1
        text = str(error)
        assert "\n" not in text and len(text) < 4000, f"not one sentence: {text[:500]!r} for {case!r:.1000}"
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error} for {case!r:.2000}") from error
    finally:
        seen = [one for one in _watching if inside is None or f" {inside}/" not in one]
        _watching = None
    assert not seen, f"{seen} for {case!r:.1000}"
    assert time.monotonic() - began < MOST_SECONDS, f"too slow: {case!r:.1000}"


def write(path: Path, data: bytes) -> Path:
    """Writes the file of a case, outside of what is guarded."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
