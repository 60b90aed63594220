"""MkDocs hooks. Pages link to source files of the repository (`../rldsl/...`), which the site does not contain."""

from __future__ import annotations

import re
from typing import Any

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, config: Any, **_: Any) -> str:
    """Links to files outside docs/ lead to the repository if `repo_url` is set; otherwise only their text is kept."""

    def link(match: re.Match[str]) -> str:
        if not config.repo_url:
            return match[1]
        return f"[{match[1]}]({config.repo_url.rstrip('/')}/blob/main/{match[2]}{match[3] or ''})"

    return OUTSIDE.sub(link, markdown)
