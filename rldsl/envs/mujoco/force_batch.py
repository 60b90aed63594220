"""A batch that computes `cfrc_ext`, the contact forces on bodies, after each step as Gymnasium does.

This requires `mj_rnePostConstraint` on each simulation, which `mujoco.batch.Batch` cannot call. MuJoCo's C interface
(`mujoco/mjbatch.h`) can, so this class calls the parts of it that are needed through ctypes.
"""

import ctypes
import weakref
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_double, c_int, c_void_p, cast
from functools import cache

import numpy as np
from mujoco import MjData, MjModel, _batch, mjtStage, mjtState

NO_STAGE, ALL_STAGES = mjtStage.mjSTAGE_NONE.value, mjtStage.mjSTAGE_ACC.value
STATE_FIELDS = {
    "qpos": mjtState.mjSTATE_QPOS.value,
    "qvel": mjtState.mjSTATE_QVEL.value,
    "ctrl": mjtState.mjSTATE_CTRL.value,
}

FUNCTIONS = {
    "mjb_makeBatch": (c_void_p, [c_void_p, c_int, c_void_p, c_char_p, c_int]),
    "mjb_deleteBatch": (None, [c_void_p]),
    "mjb_nstate": (c_int, [c_void_p]),
    "mjb_state": (c_void_p, [c_void_p]),
    "mjb_stateComponent": (c_void_p, [c_void_p, c_int, c_void_p]),
    "mjb_output": (c_void_p, [c_void_p, c_char_p, c_void_p, c_void_p]),
    "mjb_status": (POINTER(c_int), [c_void_p]),
    "mjb_error": (c_char_p, [c_void_p, c_int]),
    "mjb_step": (c_int, [c_void_p, c_void_p, c_int, c_int, c_int]),
    "mjb_forward": (c_int, [c_void_p, c_void_p, c_int, c_int]),
    "mjb_reset": (c_int, [c_void_p, c_void_p, c_int, c_void_p, c_int]),
    "mjb_apply": (c_int, [c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_int]),
}
"""Result and argument types, as in `mjbatch.h`."""


class Config(Structure):
    """`mjBatchConfig`."""

    _fields_ = [("nthread", c_int), ("persistent", c_bool)]


@cache
def _library() -> ctypes.CDLL:
    """MuJoCo's library, loaded through its Python module because its file name depends on system and version."""
    library = ctypes.CDLL(_batch.__file__)
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class ForceBatch:
    """Like `mujoco.batch.Batch`, with one MjData per simulation and `cfrc_ext` after each step."""

    def __init__(self, model: MjModel, nsim: int, nthread: int) -> None:
        self._c = _library()
        reason = ctypes.create_string_buffer(1_000)
        config = Config(nthread, True)
        self._batch = self._c.mjb_makeBatch(model._address, nsim, byref(config), reason, len(reason))
        if not self._batch:
            raise RuntimeError(f"MuJoCo cannot make a batch: {reason.value.decode()}")
        weakref.finalize(self, self._c.mjb_deleteBatch, self._batch)
        self._all = np.arange(nsim, dtype=np.int32)
        self._contact_forces = cast(self._c.mj_rnePostConstraint, c_void_p)
        self._shapes = MjData(model)
        self.state = _array(self._c.mjb_state(self._batch), (nsim, self._c.mjb_nstate(self._batch)))

    def bind(self, field: str) -> np.ndarray:
        """A live view of a state field, or of a derived field that every call updates."""
        size, rows = c_int(), len(self._all)
        if field in STATE_FIELDS:
            first = self._c.mjb_stateComponent(self._batch, STATE_FIELDS[field], byref(size))
            start = (first - self.state.ctypes.data) // self.state.itemsize
            return self.state[:, start : start + size.value]
        output = self._c.mjb_output(self._batch, field.encode(), byref(size), None)
        if not output:
            raise ValueError(f"MuJoCo has no field {field!r} to bind")
        return _array(output, (rows, *getattr(self._shapes, field).shape))

    def step(self, *, nstep: int) -> None:
        self._run(self._c.mjb_step, self._all, nstep, NO_STAGE)
        self._run(self._c.mjb_apply, self._all, self._contact_forces, None, False)
        self._run(self._c.mjb_forward, self._all, NO_STAGE)  # copies the computed forces to the bound arrays

    def reset(self, ids: np.ndarray, *, stage: int) -> None:
        self._run(self._c.mjb_reset, ids, None, stage)

    def forward(self, ids: np.ndarray) -> None:
        self._run(self._c.mjb_forward, ids, ALL_STAGES)

    def _run(self, function: "ctypes._NamedFuncPointer", ids: np.ndarray, *arguments: object) -> None:
        ids = np.ascontiguousarray(ids, np.int32)
        if function(self._batch, ids.ctypes.data, len(ids), *arguments):
            status = self._c.mjb_status(self._batch)
            failed = next(sim for sim in ids.tolist() if status[sim])
            raise RuntimeError(f"MuJoCo raised in row {failed}: {self._c.mjb_error(self._batch, failed).decode()}")


def _array(address: int, shape: tuple[int, ...]) -> np.ndarray:
    """A float64 view of the batch's memory, valid as long as the batch."""
    return np.ctypeslib.as_array(cast(address, POINTER(c_double)), shape)
