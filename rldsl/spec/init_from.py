"""Another session whose weights a session starts from."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from rldsl.spec.base import Spec

HUB = "hf://"
_ID = re.compile(r"[0-9a-f]{12}(-s(0|[1-9][0-9]*))?")


def _known_source(source: str) -> str:
    if _ID.fullmatch(source) or source.startswith(HUB):
        return source
    raise PydanticCustomError(
        "source", "should be the complete id of a session (a9b509a71b56-s0) or trial, or hf://OWNER/NAME"
    )


Source: TypeAlias = Annotated[str, AfterValidator(_known_source)]


class InitFrom(Spec, frozen=True):
    """The initial weights and normalisation statistics; optimizer, replay buffer and frame count start anew."""

    source: Source = Field(
        kw_only=False,
        description="Id of a session in the run directory, of a trial (its session of the same seed), or hf://OWNER/NAME",
    )
    checkpoint: Literal["best", "last"] = Field(
        default="last", description="Which of its checkpoints; best has the policy only, without critics"
    )

    def session(self, seed: int) -> str:
        """The id of the session that the session with this seed starts from."""
        return self.source if "-s" in self.source else f"{self.source}-s{seed}"

    @property
    def on_hub(self) -> bool:
        return self.source.startswith(HUB)
