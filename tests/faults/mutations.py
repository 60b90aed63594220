"""Hostile inputs: valid documents with random changes, and pure nonsense. A seed determines each case."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

NUMBERS = (0, -1, 1, 2**31, 2**63, 10**400, 1e308, -0.0, 0.5, float("inf"), float("nan"), 1e-320, True, False, None)
TEXTS = (
    *(
        "",
        " ",
        "..",
        "a/../b",
        "/etc/passwd",
        "x" * 5000,
        "\x1b[2J",
        "\ud800",
        "é",
        "%s",
        "{0}",
        "[/red]",
        "NaN",
        "null",
    ),
    *(
        "os:system",
        "pydoc:pipepager",
        "gymnasium.wrappers:RecordVideo",
        "kind",
        "ppo",
        "linear",
        "@PPO()",
        "%macro",
        "\n",
    ),
    *(
        "1e999",
        "__class__",
        "rldsl.spec.base:Spec",
        "CartPole-v1",
        "$(touch pwned)",
        "'; touch pwned; '",
        "-1",
        "٣",
        "²",
    ),
)
KEYS = (
    "kind",
    "id",
    "trial",
    "spec",
    "seed",
    "seeds",
    "agent",
    "env",
    "frames",
    "launcher",
    "event",
    "wrappers",
    "kwargs",
)


def value(stream: random.Random, depth: int = 0) -> Any:
    """Any JSON value."""
    choice = stream.random()
    if choice < 0.4 or depth > 4:
        return stream.choice(NUMBERS)
    if choice < 0.75:
        return stream.choice(TEXTS)
    if choice < 0.87:
        return [value(stream, depth + 1) for _ in range(stream.randrange(4))]
    names = [stream.choice((*KEYS, *TEXTS)) for _ in range(stream.randrange(4))]
    return {name: value(stream, depth + 1) for name in names}


def nested(stream: random.Random) -> Any:
    """A value in very many lists or objects."""
    made: Any = value(stream)
    for _ in range(stream.choice((40, 60, 400))):
        made = [made] if stream.random() < 0.5 else {"kind": made}
    return made


def mutated(stream: random.Random, document: Any) -> Any:
    """The document with a few values replaced, removed, added, copied from elsewhere, or nested."""
    made = copy.deepcopy(document)
    for _ in range(stream.choice((1, 1, 1, 2, 3, 8))):
        holder, key = _place(stream, made)
        if holder is None:
            return value(stream)
        action = stream.random()
        if action < 0.5:
            holder[key] = value(stream)
        elif action < 0.62:
            del holder[key]
        elif action < 0.72 and isinstance(holder, dict):
            holder[stream.choice((*KEYS, *TEXTS))] = value(stream)
        elif action < 0.92:
            other, elsewhere = _place(stream, document)
            holder[key] = copy.deepcopy(other[elsewhere])
        else:
            holder[key] = nested(stream)
    return made


def _place(stream: random.Random, document: Any) -> tuple[Any, Any]:
    """A random place: a list or object in the document, and an index or key of it."""
    holder, key = None, None
    while isinstance(document, dict | list) and document:
        holder = document
        key = stream.choice(list(document)) if isinstance(document, dict) else stream.randrange(len(document))
        document = document[key]
        if stream.random() < 0.25:
            break
    return holder, key


def damaged(stream: random.Random, data: bytes) -> bytes:
    """Bytes with flipped bits, cut out, repeated or foreign parts."""
    made = bytearray(data)
    for _ in range(stream.choice((1, 1, 2, 5))):
        at = stream.randrange(len(made) + 1)
        action = stream.random()
        if action < 0.4 and made:
            made[at % len(made)] ^= 1 << stream.randrange(8)
        elif action < 0.6:
            del made[at : at + stream.randrange(1, 60)]
        elif action < 0.8:
            made[at:at] = bytes(stream.randrange(256) for _ in range(stream.randrange(1, 20)))
        elif action < 0.9:
            made[at:at] = made[: stream.randrange(1, 200)]
        else:
            made[at:at] = stream.choice(
                (b"[" * 3000, b'{"a":' * 300, b"\x00", b"\n", b"\xff\xfe", b",,,,", b"9" * 5000)
            )
    return bytes(made)


def as_bytes(stream: random.Random, document: Any) -> bytes:
    """A changed document as JSON, sometimes with damaged bytes too."""
    text = json.dumps(mutated(stream, document) if stream.random() < 0.8 else document)
    data = text.encode("utf-8", "surrogatepass")
    return damaged(stream, data) if stream.random() < 0.3 else data
