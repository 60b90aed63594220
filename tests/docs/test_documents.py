"""Consistency of the documentation: links, navigation, generated tables, examples, names of commands."""

from __future__ import annotations

import importlib
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rldsl import A2C, DQN, PPO, SAC, Box2D, Classic, CrossQ, Gym, MuJoCo, Reinforce, Sarsa
from rldsl.cli.app import OF_A_FILE, OF_RLDSL
from rldsl.spec.base import is_ours
from rldsl.spec.environment import Environment
from rldsl.spec.implementation import implementation
from tests.docs.documents import documents, parse_blocks

ROOT = Path(__file__).resolve().parents[2]
README_LINES, README_WIDTH = 150, 120
every_document = pytest.mark.parametrize("path", documents(ROOT), ids=lambda path: path.name)


def _prose(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    headings = re.findall(r"^#+ (.*)$", _prose(text), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}


def _nav(entries: Any) -> Iterator[str]:
    """The pages of mkdocs.yml's `nav`, however deep."""
    if isinstance(entries, str):
        yield entries
    else:
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield from _nav(entry)


@every_document
def test_links_resolve(path: Path) -> None:
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
def test_tables_are_up_to_date(path: Path) -> None:
    with_tables = runpy.run_path(str(ROOT / "docs" / "make_tables.py"))["with_tables"]
    assert with_tables(path.read_text()) == path.read_text(), "run `make tables`"


@every_document
def test_examples_are_shown_unchanged(path: Path) -> None:
    for block in parse_blocks(path.read_text(), path.name):
        if block.title and (ROOT / block.title).is_file():
            assert block.body == (ROOT / block.title).read_text(), f"{block.where}: {block.title} has changed"


def test_navigation_and_index_have_every_page() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    nav = list(_nav(config["nav"]))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert sorted(nav) == sorted(pages)
    index = (ROOT / "docs" / "index.md").read_text()
    assert all(f"({page})" in index for page in pages - {"index.md"})


def test_the_site_loads_nothing_from_other_hosts() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert config["theme"]["font"] is False
    assert not config.get("extra_javascript") and not config.get("extra_css")


def test_links_to_source_files_become_text_on_the_site() -> None:
    on_page_markdown = runpy.run_path(str(ROOT / "docs" / "site_hooks.py"))["on_page_markdown"]

    class Config:
        repo_url = ""

    page = "See [the code](../rldsl/cli/app.py#L3) and [Plans](plans.md#packs)."
    assert on_page_markdown(page, config=Config()) == "See the code and [Plans](plans.md#packs)."
    Config.repo_url = "https://example.org/rldsl/"
    assert "[the code](https://example.org/rldsl/blob/main/rldsl/cli/app.py#L3)" in on_page_markdown(page, Config())


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= README_LINES
    assert max(map(len, lines)) <= README_WIDTH


@every_document
def test_no_absolute_paths_of_a_machine(path: Path) -> None:
    assert not re.search(r"/(home|root|work|tmp|Users)/", path.read_text())


@pytest.mark.parametrize("module", ["rldsl", "rldsl.extend"])
def test_the_api_reference_names_what_exists(module: str) -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    names = re.findall(rf"^::: {re.escape(module)}\.(\w+)$", page, re.MULTILINE)
    assert names
    assert set(names) <= set(importlib.import_module(module).__all__)


def _cells(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table after a text."""
    text = (ROOT / "docs" / page).read_text().partition(heading)[2]
    lines = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert lines
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in lines[0].splitlines(keepends=True)[2:]]


def test_the_columns_of_metrics_are_those_of_the_agents() -> None:
    agents = [Reinforce(), A2C(), PPO(), Sarsa(), DQN(), SAC(), CrossQ()]
    columns: dict[str, set[str]] = {type(agent).__name__: set() for agent in agents}
    for names, owners, _ in _cells("run-directory.md", "The other columns are the agent's"):
        for agent in columns if owners == "all but `Random`" else re.findall(r"`(\w+)`", owners):
            columns.get(agent, set()).update(re.findall(r"`(\w+)`", names))
    assert columns == {type(agent).__name__: set(implementation(agent).columns) for agent in agents}


def test_families_and_exact_resume_are_as_documented() -> None:
    ours = [kind for kind in Environment.kinds.values() if is_ours(kind)]
    words = {5: "five", 6: "six", 7: "seven"}
    assert f"There are {words[len(ours)]} families." in (ROOT / "docs" / "environments.md").read_text()
    documented = {
        name: cells[1].startswith("exact")
        for cells in _cells("training.md", "**Exact resume.**")
        for name in re.findall(r"`(\w+)`", cells[0])
    }
    for spec in (Classic("CartPole-v1"), MuJoCo("Hopper-v5"), Box2D("LunarLander-v3"), Gym("CartPole-v1")):
        envs = implementation(spec)(spec, 1, 1)
        exact = envs.exact_resume or isinstance(spec, Gym)  # exact if the environment can save its state
        envs.close()
        assert documented[type(spec).__name__] == exact, spec
