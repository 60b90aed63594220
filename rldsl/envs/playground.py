"""MuJoCo Playground: a batch of one task, stepped by a jit-compiled JAX function."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# Read when JAX starts: JAX shares the GPU with torch, so it must not preallocate most of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
from mujoco_playground import MjxEnv, State, registry

from rldsl.envs.contract import ALL_ROWS, Continuous, EnvError, Spaces, Step, VectorEnv
from rldsl.spec.environment import Playground


def make(spec: Playground, rows: int, threads: int) -> VectorEnv:
    """The environment of a spec. XLA reads the number of threads once, for the first environment of a process."""
    os.environ.setdefault("NPROC", str(threads))
    return PlaygroundEnv(load(spec, "warp" if jax.default_backend() == "gpu" else "jax"), rows)


class Row(NamedTuple):
    """The state of one row between steps; batched, every array is [rows, ...]."""

    state: State
    key: jax.Array
    """The row's RNG key, from which its next episode starts."""
    steps: jax.Array
    """Agent steps in this episode."""


class Outcome(NamedTuple):
    """The result of a step before autoreset."""

    observation: jax.Array
    critic_observation: jax.Array | None
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array


class Task:
    """One row of a task as pure functions, which JAX vectorizes and compiles."""

    def __init__(self, env: MjxEnv, action_repeat: int, time_limit: int) -> None:
        self.env, self.action_repeat, self.time_limit = env, action_repeat, time_limit
        self.layout = jax.eval_shape(env.reset, jax.random.PRNGKey(0))
        if isinstance(self.layout.obs, Mapping) and "state" not in self.layout.obs:
            raise EnvError(f"A policy needs an observation called `state`, but there is {', '.join(self.layout.obs)}.")
        privileged = observed_by_critic(self.layout)
        self.observation_size = int(np.prod(observed(self.layout).shape))
        self.critic_size = None if privileged is None else int(np.prod(privileged.shape))

    def start(self, key: jax.Array) -> Row:
        """Starts an episode with randomness from the row's key."""
        key, reset_key = jax.random.split(key)
        return Row(self._typed(self.env.reset(reset_key)), key, jnp.zeros((), jnp.int32))

    def step(self, row: Row, action: jax.Array) -> tuple[Row, Outcome]:
        """One step of the agent, without autoreset."""
        state, reward = self._act(row.state, action)
        steps = row.steps + 1
        observation, critic_observation = jax.tree.map(_finite, (observed(state), observed_by_critic(state)))
        reward = jnp.where(jnp.isfinite(reward), reward, 0.0)
        outcome = Outcome(observation, critic_observation, reward, state.done > 0, steps >= self.time_limit)
        return Row(self._typed(state), row.key, steps), outcome

    def _act(self, state: State, action: jax.Array) -> tuple[State, jax.Array]:
        """The state after the repeated action and the sum of rewards; nothing happens after the end of an episode."""
        state = self.env.step(state, action)
        if self.action_repeat == 1:
            return state, state.reward

        def repeat(_: int, before: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
            state, total = before
            after = self._typed(self.env.step(state, action))
            kept: tuple[State, jax.Array] = jax.tree.map(
                lambda old, new: jnp.where(state.done > 0, old, new), before, (after, total + after.reward)
            )
            return kept

        first = (self._typed(state), state.reward)
        repeated: tuple[State, jax.Array] = jax.lax.fori_loop(1, self.action_repeat, repeat, first)
        return repeated

    def _typed(self, state: State) -> State:
        """Casts to the dtypes of the initial state, so that every function is compiled only once."""
        return jax.tree.map(lambda one, like: jax.lax.convert_element_type(one, like.dtype), state, self.layout)


class PlaygroundEnv(VectorEnv):
    """A batch of one task on JAX's default device."""

    exact_resume = True

    def __init__(self, task: Task, rows: int) -> None:
        if rows < 1:
            raise EnvError(f"An environment needs at least one row, but got {rows}.")
        self.rows = rows
        self._start, self._step = jax.jit(jax.vmap(task.start)), jax.jit(jax.vmap(task.step))
        self._replace = jax.jit(_replace)
        self._batch = jax.tree.map(_zeros, jax.eval_shape(self._start, self._keys([0] * rows)))
        # Warp stores some data, such as contacts, for all rows together, so it cannot be saved per row.
        self.exact_resume = all(leaf.shape[:1] == (rows,) for leaf in jax.tree.leaves(self._batch))
        size, critic_size, bounds = task.observation_size, task.critic_size, np.ones(task.env.action_size)
        self._action = Continuous(-bounds, bounds)
        critic_shape = None if critic_size is None else (critic_size,)
        self.spaces = Spaces((size,), np.dtype(np.float32), self._action, critic_shape=critic_shape)
        self._observation = np.zeros((rows, size), np.float32)
        self._critic_observation = None if critic_size is None else np.zeros((rows, critic_size), np.float32)

    @property
    def critic_observation(self) -> np.ndarray | None:
        return self._critic_observation

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        self._batch = self._start(self._keys(self._checked_seeds(seeds)))
        return self._observe(ALL_ROWS)

    def step(self, actions: np.ndarray) -> Step:
        controls = self._action.rescale(actions).astype(np.float32)
        self._batch, outcome = self._step(self._batch, controls)
        observation, privileged, reward, terminated, truncated = jax.tree.map(_view, outcome)
        self._observation[:] = observation
        if self._critic_observation is not None:
            self._critic_observation[:] = privileged
        ended = (terminated | truncated).nonzero()[0]
        final, final_privileged = self._observation[ended], None if privileged is None else privileged[ended]
        if ended.size:
            self._begin(ended)
        return Step(
            self._observation,
            reward.astype(np.float64),
            terminated.copy(),
            truncated.copy(),
            ended,
            final,
            final_critic_observation=final_privileged,
        )

    def _begin(self, ended: np.ndarray) -> None:
        """Resets some rows. The reset is computed for all rows and costs about as much as a step.

        Measured with 512 rows of CartpoleBalance on one core: 1.9 ms per reset, 1.7 ms per step. Where only the time
        limit ends episodes, as in all of DM-Control, all rows end together, which is one reset in 1,000 steps. A reset
        inside the compiled step would double the cost of every step.
        """
        mask = np.zeros(self.rows, bool)
        mask[ended] = True
        self._batch = self._replace(mask, self._start(self._batch.key), self._batch)
        self._observe(ended)

    def _observe(self, rows: slice | np.ndarray) -> np.ndarray:
        self._observation[rows] = _view(observed(self._batch.state)).reshape(self._observation.shape)[rows]
        if self._critic_observation is not None:
            privileged = _view(observed_by_critic(self._batch.state)).reshape(self._critic_observation.shape)
            self._critic_observation[rows] = privileged[rows]
        return self._observation

    def state(self, rows: slice = ALL_ROWS) -> dict[str, Any]:
        if not self.exact_resume:
            return super().state(rows)
        return {name: np.array(_view(leaf)[rows]) for name, leaf in _named(self._batch).items()}

    def restore(self, state: Mapping[str, Any], rows: slice = ALL_ROWS) -> np.ndarray:
        if not self.exact_resume:
            return super().restore(state, rows)
        named = _named(self._batch)
        if named.keys() != state.keys():
            raise EnvError("The saved state is of another task, or of another version of MuJoCo Playground.")
        saved, here = len(state[".steps"]), len(range(*rows.indices(self.rows)))
        if saved != here:
            raise EnvError(f"The saved state has {saved} rows, to be restored into {here}.")
        leaves = [_with_rows(leaf, rows, state[name]) for name, leaf in named.items()]
        self._batch = jax.tree.unflatten(jax.tree.structure(self._batch), leaves)
        return self._observe(rows)

    def _keys(self, seeds: Sequence[int]) -> jax.Array:
        return jax.vmap(jax.random.PRNGKey)(np.array(seeds, np.uint32))


def observed(state: State) -> jax.Array:
    """The policy's observation; of a dictionary its entry `state`, without privileged information."""
    return state.obs["state"] if isinstance(state.obs, Mapping) else state.obs


def observed_by_critic(state: State) -> jax.Array | None:
    """The critic's observation `privileged_state`; None if the task does not have it."""
    return state.obs.get("privileged_state") if isinstance(state.obs, Mapping) else None


def load(spec: Playground, impl: str) -> Task:
    """The task of a spec. `impl` is the simulator: "jax" runs on every device, "warp" is faster on CUDA.

    Playground counts its time limit in simulator steps, of which one action may take several.
    """
    config = registry.get_default_config(spec.id)
    repeat = spec.action_repeat or config.get("action_repeat", 1)
    changes = {"impl": impl} | ({"action_repeat": repeat} if "action_repeat" in config else {})
    env = registry.load(spec.id, config, config_overrides=changes)
    return Task(env, repeat, spec.max_episode_steps or -(-config.episode_length // repeat))


def _replace(mask: jax.Array, fresh: Row, old: Row) -> Row:
    """Takes `fresh` where the mask is set. Data that warp stores for all rows together is recomputed in every step."""

    def choose(new: jax.Array, kept: jax.Array) -> jax.Array:
        if kept.shape[:1] != mask.shape:
            return kept
        return jnp.where(mask.reshape(-1, *[1] * (kept.ndim - 1)), new, kept)

    replaced: Row = jax.tree.map(choose, fresh, old)
    return replaced


def _finite(observation: jax.Array) -> jax.Array:
    """Flattens an observation and replaces non-finite values by 0; a diverged simulation ends its episode."""
    return jnp.nan_to_num(observation.ravel(), posinf=0.0, neginf=0.0)


def _zeros(like: jax.ShapeDtypeStruct) -> jax.Array:
    return jnp.zeros(like.shape, like.dtype)


def _view(array: jax.Array) -> np.ndarray:
    """A zero-copy view with DLPack on the CPU, a copy on a GPU."""
    return np.from_dlpack(array) if array.device.platform == "cpu" else np.asarray(array)


def _named(batch: Row) -> dict[str, jax.Array]:
    """Every array of a batch by its path in the tree."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(batch)}


def _with_rows(leaf: jax.Array, rows: slice, saved: Any) -> jax.Array:
    changed = np.array(leaf)
    changed[rows] = saved
    return jnp.array(changed)
