"""Every screen matches its snapshot; `python -m tests.monitor.snapshots` writes them again."""

from __future__ import annotations

import pytest

from tests.monitor.snapshots import FOLDER, SIZES, path_of, take

SHOWN = [pytest.param(size, name, id=path_of(name, size).stem) for size in SIZES for name in SIZES[size]]


@pytest.fixture(scope="module")
def taken() -> dict[tuple[int, int], dict[str, str]]:
    return {size: take(size) for size in SIZES}


@pytest.mark.parametrize(("size", "name"), SHOWN)
def test_a_screen_matches_its_snapshot(
    taken: dict[tuple[int, int], dict[str, str]], size: tuple[int, int], name: str
) -> None:
    assert taken[size][name].splitlines() == path_of(name, size).read_text().splitlines()


def test_every_snapshot_belongs_to_a_scene() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {param.id for param in SHOWN}
