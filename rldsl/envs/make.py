"""Makes the vector environment of a spec; the specs' `implementation` points to these functions."""

from rldsl.envs.contract import EnvError, VectorEnv
from rldsl.spec import environment as spec


def classic(env: spec.Classic, rows: int, threads: int) -> VectorEnv:
    """The numpy implementation of rldsl."""
    from rldsl.envs.classic import make

    return make(env.id, rows)


def box2d(env: spec.Box2D, rows: int, threads: int) -> VectorEnv:
    """Gymnasium's environments, stepped one after the other, or EnvPool's on threads."""
    if env.backend == "envpool":
        from rldsl.envs.envpool import EnvPoolEnv

        return EnvPoolEnv(env.id, rows, threads, env.max_episode_steps)
    from rldsl.envs.gym import GymnasiumEnv

    return GymnasiumEnv(env.id, rows, max_episode_steps=env.max_episode_steps)


def mujoco(env: spec.MuJoCo, rows: int, threads: int) -> VectorEnv:
    """The implementation of rldsl on `mujoco.batch`."""
    from rldsl.envs.mujoco import make

    return make(env, rows, threads)


def atari(env: spec.Atari, rows: int, threads: int) -> VectorEnv:
    """The vector environment of ale_py."""
    from rldsl.envs.atari import AtariEnv

    return AtariEnv(env, rows, threads)


def playground(env: spec.Playground, rows: int, threads: int) -> VectorEnv:
    """MuJoCo Playground on JAX."""
    if missing := env.missing():
        raise EnvError(f"{env.id} cannot be made: {missing}.")
    from rldsl.envs.playground import make

    return make(env, rows, threads)


def gym(env: spec.Gym, rows: int, threads: int) -> VectorEnv:
    """Any other Gymnasium environment."""
    from rldsl.envs.gym import GymnasiumEnv

    return GymnasiumEnv(env.id, rows, env.kwargs, env.max_episode_steps, env.wrappers, env.metrics)
