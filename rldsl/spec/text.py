"""Validation of text that is written into job scripts and environments: quoting-safe, and without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

_SECRET_NAME = re.compile(
    r"token|passw(or)?d|secret|credential|api_?key|access_?key|private_?key|ssh_?key", re.IGNORECASE
)
_SECRET_VALUE = re.compile(
    r"\b(hf|ghp|gho|ghs|glpat|sk|xox[bap])[_-][A-Za-z0-9_-]{16,}|\bAKIA[A-Z0-9]{16}"
    r"|BEGIN [A-Z ]*PRIVATE KEY|\w://[^/\s@]+:[^/\s@]+@|\w://[^/\s@:$]{16,}@"
)
_LOGIN = re.compile(
    r"\b(?:wandb|comet|neptune|kaggle|hf|huggingface-cli)\b[^;&|]*\blogin\b(?:\s+-{1,2}[\w-]+)*(?:\s+|=)[\"']?[^\s\"'$;&|<>-][^\s\"'$;&|]{7,}"
)
"""`wandb login KEY`; not `wandb login`, nor `wandb login $WANDB_API_KEY`."""
_SECRET_OPTION = re.compile(
    r"\s--?[\w-]*(?:token|passw(?:or)?d|secret|api-?key)[\w-]*[=\s]+[\"']?[^\s\"'$-]", re.IGNORECASE
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=[\"']?[^\s\"'$]")


def matching(pattern: str, words: str) -> AfterValidator:
    """A validator for text that matches `pattern` completely; `words` describes the pattern in the error message."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise PydanticCustomError("text", "should be {words}", {"words": words})
        return value

    return AfterValidator(check)


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable with this name and value is likely to be a secret."""
    return _SECRET_NAME.search(name) is not None or _SECRET_VALUE.search(value) is not None


def _public_line(line: str) -> str:
    assigns_secret = any(looks_secret(name, "") for name in _ASSIGNMENT.findall(line))
    if assigns_secret or looks_secret("", line) or _LOGIN.search(line) or _SECRET_OPTION.search(line):
        raise PydanticCustomError("secret", "looks like a secret: pass a variable by its name instead")
    return line


def _public(variables: Mapping[str, str]) -> dict[str, str]:
    for name, value in variables.items():
        if looks_secret(name, value):
            words = {"name": name}
            raise PydanticCustomError("secret", "{name} looks like a secret: pass it by its name alone", words)
    return dict(variables)


_LINE = r"[^\x00-\x1f\x7f\x85\u2028\u2029]*"

Word: TypeAlias = Annotated[str, matching(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]*", "letters, digits and . _ : @ + -")]
"""The name of a partition, an account or a region, without characters that a shell would interpret."""
Line: TypeAlias = Annotated[str, matching(_LINE, "one line")]
"""Any text without a line break."""
ProjectPath: TypeAlias = Annotated[
    str, matching(r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[^\x00-\x1f\x7f]+", "a path or pattern below the project, without ..")
]
"""Files of the project, for `Path.glob`."""
VariableName: TypeAlias = Annotated[str, matching(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable")]
ShellLine: TypeAlias = Annotated[Line, AfterValidator(_public_line)]
"""A shell command. Secrets are rejected because the line is written into the job's script."""
Variables: TypeAlias = Annotated[dict[VariableName, Line], AfterValidator(_public)]
"""Environment variables and their values, without secrets."""
