"""The documents hold together: links lead somewhere, tables are fresh, commands that are only mentioned exist."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from rldsl.cli.app import OF_A_FILE, OF_RLDSL
from tests.docs.documents import blocks, documents

ROOT = Path(__file__).resolve().parents[2]
every_document = pytest.mark.parametrize("path", documents(ROOT), ids=lambda path: path.name)


def _prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _prose(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_document
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", _prose(path.read_text())):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        assert file.exists(), f"{path.name} links to {target}"
        assert not anchor or anchor in _anchors(file.read_text()), f"{path.name} links to {target}"


@every_document
def test_commands_in_the_prose_exist(path: Path) -> None:
    known = {command.__name__.rstrip("_") for command in (*OF_A_FILE, *OF_RLDSL)}
    mentioned = re.findall(r"`rldsl ([a-z]+)", _prose(path.read_text()))
    assert set(mentioned) <= known


@every_document
def test_tables_of_fields_are_fresh(path: Path) -> None:
    with_tables = runpy.run_path(str(ROOT / "docs" / "make_tables.py"))["with_tables"]
    assert with_tables(path.read_text()) == path.read_text(), "`python docs/make_tables.py` writes them anew"


@every_document
def test_examples_are_shown_as_they_are(path: Path) -> None:
    for block in blocks(path.read_text(), path.name):
        if block.title and (ROOT / block.title).is_file():
            assert block.body == (ROOT / block.title).read_text(), f"{block.where}: {block.title} is another by now"


def test_the_table_of_contents_has_every_document() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "index.md" or f"({path.name})" in index


@every_document
def test_no_path_of_a_machine(path: Path) -> None:
    assert not re.search(r"/(home|root|work|tmp|Users)/", path.read_text())
