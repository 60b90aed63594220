from __future__ import annotations

import json
import pickle
import random
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rldsl.store import (
    CheckpointDamaged,
    CheckpointRefused,
    DiskFull,
    checkpoint,
    checkpoint_frames,
    load_checkpoint,
    save_checkpoint,
)
from rldsl.store.states import DTYPES, join_state, split_state

FILES = ["arrays.safetensors", "state.json", "manifest.json"]

arrays = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
)
leaves = (
    arrays
    | arrays.map(lambda array: array.T)
    | st.none()
    | st.booleans()
    | st.integers(-(2**130), 2**130)
    | st.floats()
    | st.text(st.characters(), max_size=5)
)
keys = st.sampled_from(["$array", "$tuple", "$", "$$x", "__metadata__", "a/b", "a", "b", "é"]) | st.text(max_size=4)
nested = st.recursive(
    leaves,
    lambda inner: st.dictionaries(keys, inner, max_size=3) | st.lists(inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=12,
)

SAVE = """
    import sys
    from pathlib import Path
    import numpy as np
    from rldsl.store import save_checkpoint
    tag = sys.argv[2] or None
    for frame in range(1, 100_000):
        save_checkpoint(Path(sys.argv[1]), frame, {"x": np.full(20_000, frame), "frame": frame}, tag=tag)
        print(frame)
"""


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a == b or (a != a and b != b)


@given(st.dictionaries(keys, nested, max_size=4))
def test_split_then_join_gives_the_state_back(state):
    tree, named = split_state(state)
    assert same(join_state(json.loads(json.dumps(tree)), named), state)


@settings(max_examples=25)
@given(st.dictionaries(keys, nested, max_size=4))
def test_save_then_load_gives_the_state_back(tmp_path_factory, state):
    directory = tmp_path_factory.mktemp("checkpoints")
    save_checkpoint(directory, 7, state)
    loaded = load_checkpoint(directory)
    assert loaded is not None
    assert (loaded.frame, loaded.damaged) == (7, [])
    assert same(loaded.state, state)


def test_views_strides_and_byte_orders(tmp_path):
    base = np.arange(24).reshape(4, 6)
    state = {"step": base[::2, ::-1], "big": np.arange(5, dtype=">i4"), "fortran": np.asfortranarray(base)}
    save_checkpoint(tmp_path, 1, state)
    loaded = load_checkpoint(tmp_path).state
    assert all(np.array_equal(loaded[name], state[name]) for name in state)


def test_a_generator_goes_on_where_it_was(tmp_path):
    generator = np.random.default_rng(3)
    save_checkpoint(tmp_path, 1, {"rng": generator.bit_generator.state, "scalar": np.float32(0.1)})
    state = load_checkpoint(tmp_path).state
    other = np.random.default_rng()
    other.bit_generator.state = state["rng"]
    assert generator.random() == other.random()
    assert same(state["scalar"], np.float32(0.1))


def test_loaded_arrays_are_the_readers_own(tmp_path):
    path = save_checkpoint(tmp_path, 1, {"x": np.zeros(100_000)})
    loaded = load_checkpoint(tmp_path).state
    loaded["x"] += 1
    assert load_checkpoint(tmp_path).state["x"].sum() == 0
    (path / "arrays.safetensors").write_bytes(b"")
    shutil.rmtree(path)
    assert loaded["x"].sum() == 100_000


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.array([object()]), "agent/thing, an array of object"),
        (np.array(["text"]), "an array of <U4"),
        (np.zeros(2, "complex128"), "an array of complex128"),
        (np.zeros(2, [("a", "i4")]), "an array of"),
        (b"bytes", "agent/thing, which is a bytes"),
        ({1, 2}, "which is a set"),
        ({3: 4}, "keys of a checkpoint must be strings"),
    ],
)
def test_refuses_what_it_could_not_give_back(tmp_path, value, name):
    with pytest.raises(CheckpointRefused, match=name):
        save_checkpoint(tmp_path, 1, {"agent": {"thing": value}})
    assert list(tmp_path.iterdir()) == []


def test_keeps_the_one_before_and_the_best(tmp_path):
    for frame in (10, 20, 30, 40):
        save_checkpoint(tmp_path, frame, {"frame": frame})
        if frame == 20:
            save_checkpoint(tmp_path, frame, {"frame": frame}, tag="best")
    assert checkpoint_frames(tmp_path) == [40, 30]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000000000030", "000000000040", "best"]
    assert load_checkpoint(tmp_path, tag="best").frame == 20
    save_checkpoint(tmp_path, 40, {"frame": "again"}, tag="best")
    assert load_checkpoint(tmp_path, tag="best").state == {"frame": "again"}


def test_the_same_frame_again_replaces(tmp_path):
    save_checkpoint(tmp_path, 10, {"n": 1})
    save_checkpoint(tmp_path, 10, {"n": 2})
    assert load_checkpoint(tmp_path).state == {"n": 2}
    assert checkpoint_frames(tmp_path) == [10]


def test_none_is_none(tmp_path):
    assert load_checkpoint(tmp_path / "absent") is None
    assert load_checkpoint(tmp_path) is None
    assert load_checkpoint(tmp_path, tag="best") is None


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink])
@pytest.mark.parametrize("name", FILES)
def test_falls_back_when_the_newest_is_damaged(tmp_path, name, damage):
    for frame in (10, 20):
        save_checkpoint(tmp_path, frame, {"x": np.arange(50.0) * frame})
    damage(tmp_path / "000000000020" / name)
    loaded = load_checkpoint(tmp_path)
    assert loaded.frame == 10
    assert len(loaded.damaged) == 1
    assert "checkpoint 000000000020 is damaged" in loaded.damaged[0]
    damage(tmp_path / "000000000010" / name)
    with pytest.raises(CheckpointDamaged, match=r"no checkpoint in .* can be loaded"):
        load_checkpoint(tmp_path)


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path):
    path = save_checkpoint(tmp_path, 10, {"x": np.arange(3.0), "y": [1, "two"]})
    for name in FILES:
        whole = (path / name).read_bytes()
        for place in range(len(whole)):
            (path / name).write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            try:
                loaded = load_checkpoint(tmp_path)
            except CheckpointDamaged:
                continue
            assert loaded.frame == 10
            assert same(loaded.state, {"x": np.arange(3.0), "y": [1, "two"]})
        (path / name).write_bytes(whole)


def test_a_torn_checkpoint_does_not_push_out_a_whole_one(tmp_path):
    for frame in (10, 20):
        save_checkpoint(tmp_path, frame, {})
    cut(tmp_path / "000000000020" / "state.json")
    save_checkpoint(tmp_path, 30, {})
    assert checkpoint_frames(tmp_path) == [30, 10]


def test_what_was_saved_last_is_what_is_loaded(tmp_path):
    for frame in (10, 20, 15):
        save_checkpoint(tmp_path, frame, {})
    assert load_checkpoint(tmp_path).frame == 15


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path("/nonexistent-bomb").write_text, ("boom",))


def test_loading_runs_no_code(tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, fail)
    path = save_checkpoint(tmp_path, 1, {"x": np.zeros(3)})
    bomb = pickle.dumps(Bomb())
    np.save(path / "x.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    for content in (bomb, (path / "x.npy").read_bytes()):
        (path / "arrays.safetensors").write_bytes(content)
        files = {each: checkpoint._fingerprint(path / each) for each in FILES[:2]}
        (path / "manifest.json").write_text(json.dumps({"files": files}))
        with pytest.raises(CheckpointDamaged, match="cannot be read"):
            load_checkpoint(tmp_path)


def test_a_full_disk_leaves_the_older_ones(tmp_path, file_size_limit):
    save_checkpoint(tmp_path, 1, {"x": np.zeros(10)})
    file_size_limit(50_000)
    with pytest.raises(DiskFull, match=r"cannot write .*000000000002.*: the disk is full"):
        save_checkpoint(tmp_path, 2, {"x": np.zeros(100_000)})
    with pytest.raises(DiskFull):
        save_checkpoint(tmp_path, 2, {"x": "y" * 100_000})
    assert [path.name for path in tmp_path.iterdir()] == ["000000000001"]
    assert load_checkpoint(tmp_path).frame == 1


def test_leftovers_of_a_killed_writer_go(tmp_path):
    (tmp_path / ".tmp-000000000001-77").mkdir()
    (tmp_path / ".tmp-000000000001-77" / "arrays.safetensors").write_text("half")
    save_checkpoint(tmp_path, 2, {})
    assert [path.name for path in tmp_path.iterdir()] == ["000000000002"]


@pytest.mark.parametrize("tag", ["", "best"])
def test_killed_while_saving(tmp_path, child, tag):
    for attempt in range(4):
        directory = tmp_path / str(attempt)
        saver = child(SAVE, directory, tag)
        saver.line()
        time.sleep(random.random() * 0.1)
        acknowledged = int(["1", *saver.kill()][-1])
        loaded = load_checkpoint(directory, tag=tag or None)
        assert loaded.damaged == []
        assert acknowledged <= loaded.frame <= acknowledged + 1
        assert (loaded.state["x"] == loaded.frame).all()
        save_checkpoint(directory, loaded.frame, {"again": True}, tag=tag or None)
        assert load_checkpoint(directory, tag=tag or None).state == {"again": True}


def test_an_interrupted_replacement_of_the_best(tmp_path):
    best = save_checkpoint(tmp_path, 5, {}, tag="best")
    best.rename(tmp_path / "best.old")
    assert load_checkpoint(tmp_path, tag="best").frame == 5
    save_checkpoint(tmp_path, 6, {}, tag="best")
    assert load_checkpoint(tmp_path, tag="best").frame == 6
    assert [path.name for path in tmp_path.iterdir()] == ["best"]


@pytest.mark.parametrize("tag", [None, "best"])
def test_one_stands_at_every_step_of_a_replacement(tmp_path, monkeypatch, tag):
    """Looks at the directory before and after every rename and removal."""
    seen = []

    def watched(act):
        def inner(*arguments):
            seen.append(load_checkpoint(tmp_path, tag=tag).state)
            result = act(*arguments)
            seen.append(load_checkpoint(tmp_path, tag=tag).state)
            return result

        return inner

    save_checkpoint(tmp_path, 5, {"n": 1}, tag=tag)
    monkeypatch.setattr(Path, "rename", watched(Path.rename))
    monkeypatch.setattr(checkpoint, "_remove", watched(checkpoint._remove))
    save_checkpoint(tmp_path, 5, {"n": 2}, tag=tag)
    assert {"n": 1} in seen
    assert seen[-1] == {"n": 2}
