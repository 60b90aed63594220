"""The MuJoCo tasks by their Gymnasium ids."""

from rldsl.envs.mujoco.ant import Ant
from rldsl.envs.mujoco.base import MuJoCoEnv
from rldsl.envs.mujoco.half_cheetah import HalfCheetah
from rldsl.envs.mujoco.hopper import Hopper
from rldsl.envs.mujoco.humanoid import Humanoid
from rldsl.envs.mujoco.humanoid_standup import HumanoidStandup
from rldsl.envs.mujoco.inverted_double_pendulum import InvertedDoublePendulum
from rldsl.envs.mujoco.inverted_pendulum import InvertedPendulum
from rldsl.envs.mujoco.pusher import Pusher
from rldsl.envs.mujoco.reacher import Reacher
from rldsl.envs.mujoco.swimmer import Swimmer
from rldsl.envs.mujoco.walker2d import Walker2d

TASKS: dict[str, type[MuJoCoEnv]] = {
    task.id: task
    for task in (
        Ant,
        HalfCheetah,
        Hopper,
        Humanoid,
        HumanoidStandup,
        InvertedDoublePendulum,
        InvertedPendulum,
        Pusher,
        Reacher,
        Swimmer,
        Walker2d,
    )
}
