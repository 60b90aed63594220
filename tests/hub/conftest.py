"""A Hub server on this machine for the real client."""

from __future__ import annotations

import os

os.environ["HF_HUB_DISABLE_XET"] = "1"  # read on import; the test server has no Xet storage

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.loopback import TOKEN, Hub, running_hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with running_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hf-home" / "hub"))
        monkeypatch.delenv("HF_REPO", raising=False)
        yield server


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the waits between the retries that the client makes by itself."""
    monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda _: None)
