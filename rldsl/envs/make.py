"""From an environment's spec to its rows, on so many threads: what the specs name as their implementation."""

from rldsl.envs.contract import EnvError, VectorEnv
from rldsl.spec import environment as spec


def classic(env: spec.Classic, rows: int, threads: int) -> VectorEnv:
    """Our own numpy batch."""
    from rldsl.envs.classic import make

    return make(env.id, rows)


def box2d(env: spec.Box2D, rows: int, threads: int) -> VectorEnv:
    """Gymnasium's own, stepped one after the other, or EnvPool's on threads."""
    if env.backend == "envpool":
        from rldsl.envs.envpool import EnvPoolEnv

        return EnvPoolEnv(env.id, rows, threads, env.max_episode_steps)
    from rldsl.envs.gym import GymnasiumEnv

    return GymnasiumEnv(env.id, rows, max_episode_steps=env.max_episode_steps)


def mujoco(env: spec.MuJoCo, rows: int, threads: int) -> VectorEnv:
    """Our own rows on MuJoCo's batches."""
    from rldsl.envs.mujoco import make

    return make(env, rows, threads)


def atari(env: spec.Atari, rows: int, threads: int) -> VectorEnv:
    """The emulator's own batch."""
    from rldsl.envs.atari import AtariEnv

    return AtariEnv(env, rows, threads)


def playground(env: spec.Playground, rows: int, threads: int) -> VectorEnv:
    """One batch that JAX compiles."""
    if lacks := env.missing():
        raise EnvError(f"{env.id} cannot be made: {lacks}.")
    from rldsl.envs.playground import make

    return make(env, rows, threads)


def gym(env: spec.Gym, rows: int, threads: int) -> VectorEnv:
    """Whatever is registered with Gymnasium."""
    from rldsl.envs.gym import GymnasiumEnv

    return GymnasiumEnv(env.id, rows, env.kwargs, env.max_episode_steps, env.wrappers)
