"""Numbers of Gymnasium's `info` at the end of episodes."""

from collections.abc import Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from rldsl.envs.contract import EnvError
from rldsl.spec.errors import suggestion


def episode_metrics(
    names: Sequence[str], infos: Mapping[str, Any], ended: np.ndarray, id: str
) -> dict[str, np.ndarray]:
    """For each name, its value in the last `info` of the episodes that ended, `[k]`."""
    if not ended.size:
        return {name: np.empty(0) for name in names}
    final = infos["final_info"]
    return {name: _values(name, final, ended, id) for name in names}


def _values(name: str, final: Mapping[str, Any], ended: np.ndarray, id: str) -> np.ndarray:
    values, present = final.get(name), final.get(f"_{name}")
    if values is None or present is None or not present[ended].all():
        given = sorted(key for key in final if not key.startswith("_"))
        hint = suggestion(name, given) if given else "it is empty"
        raise EnvError(f"The info of {id!r} at the end of an episode has no {name!r}; {hint}")
    chosen = [values[row] for row in ended]
    if not all(isinstance(value, Number | np.bool_) for value in chosen):
        raise EnvError(f"{name!r} in the info of {id!r} is a {type(chosen[0]).__name__}, not a number.")
    return np.array(chosen, np.float64)
