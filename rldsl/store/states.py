"""A nested state as two plain parts: a JSON tree and named arrays.

In the tree, `{"$array": name}` stands for an array, `{"$scalar": name}` for a numpy scalar, `{"$tuple": [...]}` for a
tuple and `{"$growing": name}` for rows in segments. A key of the state that begins with `$` gets one more of them.
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
    state: Mapping[str, Any], growing: dict[str, AppendOnlyRing] | None = None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The JSON tree of `state` and its arrays by name; refuses what cannot be given back as it was.

    What grows in it is put into `growing` by name, and refused where there is no such place for it.
    """
    splitter = _Splitter(growing)
    return splitter.split_mapping(state, ()), splitter.arrays


def join_state(tree: Any, arrays: Mapping[str, Array], grown: Mapping[str, RingSnapshot] | None = None) -> Any:
    """The inverse of `split_state`."""
    if isinstance(tree, list):
        return [join_state(value, arrays, grown) for value in tree]
    if not isinstance(tree, dict):
        return tree
    if "$growing" in tree:
        return (grown or {})[tree["$growing"]]
    if "$array" in tree:
        return arrays[tree["$array"]]
    if "$scalar" in tree:
        return arrays[tree["$scalar"]][()]
    if "$tuple" in tree:
        return tuple(join_state(value, arrays, grown) for value in tree["$tuple"])
    return {key.removeprefix("$"): join_state(value, arrays, grown) for key, value in tree.items()}


class _Splitter:
    def __init__(self, growing: dict[str, AppendOnlyRing] | None) -> None:
        self.arrays: dict[str, Array] = {}
        self.growing = growing

    def split_mapping(self, state: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        tree = {}
        for key, value in state.items():
            if not isinstance(key, str):
                raise CheckpointRefused(f"a checkpoint has only text as keys, not {key!r} in {_name(path)}")
            tree["$" + key if key.startswith("$") else key] = self.split(value, (*path, key))
        return tree

    def split(self, value: Any, path: tuple[str, ...]) -> Any:
        import numpy as np

        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Mapping):
            return self.split_mapping(value, path)
        if isinstance(value, AppendOnlyRing) and self.growing is not None:
            self.growing[_name(path)] = value
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
        # safetensors copies memory as it lies: it must be dense and in the byte order of this machine
        self.arrays[name] = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
        return name


def _name(path: tuple[str, ...]) -> str:
    return "/".join(path) or "the state"
