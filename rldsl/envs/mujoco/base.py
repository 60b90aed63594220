"""Base class of the MuJoCo tasks: simulation, time limits, autoreset, RNGs, saving and restoring."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from mujoco import MjModel, mjtStage
from mujoco.batch import Batch

from rldsl.envs.contract import ALL_ROWS, Continuous, EnvError, Spaces, Step, VectorEnv
from rldsl.envs.mujoco.force_batch import ForceBatch
from rldsl.envs.mujoco.options import complete
from rldsl.spec.catalog import MuJoCoId

Rows: TypeAlias = slice | np.ndarray
"""All rows, or the indices of some."""


class MuJoCoEnv(VectorEnv):
    """A batch of a MuJoCo task; each row is bit-identical to `gymnasium.make(id, **options)` with the row's seed.

    Subclasses implement initial states, rewards, terminations and observations. `qpos`, `qvel`, `ctrl` and every array
    of `bind` are live [rows, ...] views of the simulations.
    """

    exact_resume = True
    id: ClassVar[MuJoCoId]
    model_file: ClassVar[str]
    """File name in Gymnasium's assets."""
    time_limit: ClassVar[int] = 1_000
    """Steps after which Gymnasium's registered TimeLimit truncates an episode."""
    normal_velocities: ClassVar[bool] = False
    """Whether initial velocities are sampled from a normal distribution instead of a uniform one."""
    needs_contact_forces: ClassVar[bool] = False
    """Whether the task uses `cfrc_ext`, which `mujoco.batch.Batch` does not compute."""

    def __init__(self, rows: int, options: Mapping[str, Any], threads: int = 1) -> None:
        if rows < 1:
            raise EnvError(f"An environment needs at least one row, but got {rows}.")
        self.rows = rows
        self.options = complete(self.id, options)
        self.model = MjModel.from_xml_path(str(_assets() / self.model_file))
        self.seconds = self.model.opt.timestep * self.options.frame_skip
        self._batch = (ForceBatch if self.needs_contact_forces else Batch)(self.model, rows, min(rows, threads))
        self.qpos, self.qvel, self.ctrl = map(self.bind, ("qpos", "qvel", "ctrl"))
        self.first_qpos, self.first_qvel = self.model.qpos0, np.zeros(self.model.nv)
        self._bind()
        self._steps = np.zeros(rows, np.int64)
        self._rngs: list[np.random.Generator] = []
        self._observation = np.concatenate(self._observe(ALL_ROWS), axis=1)
        low, high = self.model.actuator_ctrlrange.astype(np.float32).astype(np.float64).T
        self._action = Continuous(low, high)
        self.spaces = Spaces(self._observation.shape[1:], self._observation.dtype, self._action)

    def bind(self, field: str) -> np.ndarray:
        """A live [rows, ...] array of a field of MjData; derived fields lag one substep behind, as after `mj_step`."""
        return self._batch.bind(field)

    def _bind(self) -> None:
        """Binds further fields that the task needs besides `qpos`, `qvel` and `ctrl`."""

    def _draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Samples initial positions and velocities like Gymnasium."""
        scale = self.options.reset_noise_scale
        positions = self.first_qpos + rng.uniform(-scale, scale, self.model.nq)
        if self.normal_velocities:
            return positions, self.first_qvel + scale * rng.standard_normal(self.model.nv)
        return positions, self.first_qvel + rng.uniform(-scale, scale, self.model.nv)

    @abstractmethod
    def _judge(self, controls: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rewards and terminations after a step with these controls, float32 as in Gymnasium."""

    @abstractmethod
    def _observe(self, rows: Rows) -> Sequence[np.ndarray]:
        """The parts of the observations of some rows, each [k, size]."""

    def _begin(self, rows: np.ndarray) -> None:
        """Starts an episode in these rows and writes its first observation."""
        self._batch.reset(rows, stage=mjtStage.mjSTAGE_NONE.value)
        for row in rows.tolist():
            self.qpos[row], self.qvel[row] = self._draw(self._rngs[row])
        self._batch.forward(rows)
        self._steps[rows] = 0
        self._observation[rows] = np.concatenate(self._observe(rows), axis=1)

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        self._rngs = [np.random.Generator(np.random.PCG64(seed)) for seed in self._checked_seeds(seeds)]
        self._begin(np.arange(self.rows))
        return self._observation

    def step(self, actions: np.ndarray) -> Step:
        controls = self._action.rescale(actions).astype(np.float32)
        self.ctrl[:] = controls
        self._batch.step(nstep=self.options.frame_skip)
        reward, terminated = self._judge(controls)
        self._steps += 1
        truncated = self._steps >= self.time_limit
        np.concatenate(self._observe(ALL_ROWS), axis=1, out=self._observation)
        ended = (terminated | truncated).nonzero()[0]
        final_observation = self._observation[ended]
        if ended.size:
            self._begin(ended)
        return Step(self._observation, reward, terminated, truncated, ended, final_observation)

    def state(self, rows: slice = ALL_ROWS) -> dict[str, Any]:
        return {
            "physics": self._batch.state[rows].copy(),
            "steps": self._steps[rows].copy(),
            "observation": self._observation[rows].copy(),
            "rngs": [rng.bit_generator.state for rng in self._rngs[rows]],
        }

    def restore(self, state: Mapping[str, Any], rows: slice = ALL_ROWS) -> np.ndarray:
        saved, here = len(state["steps"]), len(range(*rows.indices(self.rows)))
        if saved != here:
            raise EnvError(f"The saved state has {saved} rows, to be restored into {here}.")
        self._rngs = self._rngs or [np.random.default_rng() for _ in range(self.rows)]
        self._batch.state[rows] = state["physics"]
        self._steps[rows] = state["steps"]
        self._observation[rows] = state["observation"]
        self._rngs[rows] = [_generator(rng_state) for rng_state in state["rngs"]]
        return self._observation

    def _never(self) -> np.ndarray:
        """The terminations of a task that only the time limit ends."""
        return np.zeros(self.rows, bool)


def _assets() -> Path:
    """Gymnasium's model files, located without importing Gymnasium."""
    package = find_spec("gymnasium")
    if package is None or package.origin is None:
        raise EnvError("The MuJoCo tasks need Gymnasium's models: `pip install gymnasium`.")
    return Path(package.origin).parent / "envs" / "mujoco" / "assets"


def _generator(state: Any) -> np.random.Generator:
    bits = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)
