"""Splits a nested state into a JSON tree and named arrays, and joins them again.

In the tree, `{"$array": name}` represents an array, `{"$scalar": name}` a numpy scalar, `{"$tuple": [...]}` a tuple
and `{"$growing": name}` a ring stored in segments. Keys of the state that begin with `$` are escaped as `$$`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rldsl.store.append_only_ring import AppendOnlyRing, RingSnapshot
from rldsl.store.errors import CheckpointRefused

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64".split()  # noqa: SIM905
)


def split_state(
    state: Mapping[str, Any], rings: dict[str, AppendOnlyRing] | None = None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The JSON tree of `state` and its arrays by name. Raises CheckpointRefused for unsupported types.

    Rings are added to `rings` by name; without `rings`, they are unsupported.
    """
    splitter = _Splitter(rings)
    return splitter.split_mapping(state, ()), splitter.arrays


def join_state(tree: Any, arrays: Mapping[str, Array], rings: Mapping[str, RingSnapshot] | None = None) -> Any:
    """The inverse of `split_state`."""
    if isinstance(tree, list):
        return [join_state(value, arrays, rings) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if "$growing" in tree:
        return (rings or {})[tree["$growing"]]
    if "$array" in tree:
        return arrays[tree["$array"]]
    if "$scalar" in tree:
        return arrays[tree["$scalar"]][()]
    if "$tuple" in tree:
        return tuple(join_state(value, arrays, rings) for value in tree["$tuple"])
    return {key.removeprefix("$"): join_state(value, arrays, rings) for key, value in tree.items()}


class _Splitter:
    def __init__(self, rings: dict[str, AppendOnlyRing] | None) -> None:
        self.arrays: dict[str, Array] = {}
        self.rings = rings

    def split_mapping(self, state: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        tree = {}
        for key, value in state.items():
            if not isinstance(key, str):
                raise CheckpointRefused(f"keys of a checkpoint must be strings, but {_name(path)} has {key!r}")
            tree["$" + key if key.startswith("$") else key] = self.split(value, (*path, key))
        return tree

    def split(self, value: Any, path: tuple[str, ...]) -> Any:
        import numpy as np

        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Mapping):
            return self.split_mapping(value, path)
        if isinstance(value, AppendOnlyRing) and self.rings is not None:
            self.rings[_name(path)] = value
            return {"$growing": _name(path)}
        if isinstance(value, RingSnapshot):
            return self.split_mapping({str(first): arrays for first, arrays in value}, path)
        if isinstance(value, np.ndarray):
            return {"$array": self._store(value, path)}
        if isinstance(value, np.generic):
            return {"$scalar": self._store(np.asarray(value), path)}
        if type(value) in (list, tuple):
            items = [self.split(item, (*path, str(index))) for index, item in enumerate(value)]
            return items if type(value) is list else {"$tuple": items}
        raise CheckpointRefused(f"a checkpoint cannot hold {_name(path)}, which is a {type(value).__name__}")

    def _store(self, array: Array, path: tuple[str, ...]) -> str:
        import numpy as np

        if array.dtype.name not in DTYPES:
            raise CheckpointRefused(f"a checkpoint cannot hold {_name(path)}, an array of {array.dtype}")
        name = _name(path)
        if not name.isascii() or name in self.arrays or name == "__metadata__":  # a name that safetensors keeps
            name = f"array {len(self.arrays)}"
        # safetensors copies the raw memory, which must be contiguous and in native byte order
        self.arrays[name] = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
        return name


def _name(path: tuple[str, ...]) -> str:
    return "/".join(path) or "the state"
