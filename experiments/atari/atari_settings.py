"""Settings of the Atari family, by game, for 16 environments.

PPO and A2C train for 1e7 frames, SAC and CrossQ for 2e6, as in SLM-Lab.
"""

from rldsl import A2C, PPO, SAC, Adam, Conv, CrossQ, Linear, RMSprop

SHARED = PPO(
    lr=Linear(2.5e-4),
    clip=0.1,
    entropy=0.01,
    rollout=128,
    minibatch=256,
    epochs=4,
    value_clip=True,
    value_coef=0.25,
    net=Conv(),
    shared=True,
)
"""SLM-Lab's settings for 16 environments, after Schulman et al. (2017)."""

GAMES_OF = {
    0.95: """AirRaid Alien Atlantis BankHeist BeamRider Berzerk Bowling Boxing ChopperCommand DoubleDunk Freeway
             Frostbite Gravitar IceHockey Jamesbond Krull NameThisGame Qbert Robotank Seaquest Skiing Solaris
             SpaceInvaders Surround TimePilot WizardOfWor YarsRevenge Zaxxon""",
    0.85: """Amidar Assault Asterix Asteroids BattleZone CrazyClimber Enduro FishingDerby Hero JourneyEscape MsPacman
             Pong Riverraid RoadRunner Tennis Tutankham UpNDown""",
    0.7: """Breakout Carnival Centipede Defender DemonAttack Gopher Kangaroo KungFuMaster Phoenix Pooyan StarGunner
            VideoPinball""",
}
"""The lambda of generalized advantages, and the games in which it was the best of the three in SLM-Lab."""

LAMBDAS = {"lam95": 0.95, "lam85": 0.85, "lam70": 0.7}
PPO_OF = {game: SHARED.with_(lam=lam) for lam, games in GAMES_OF.items() for game in games.split()}
GAMES = tuple(sorted(PPO_OF))

A2C_OF = dict.fromkeys(
    GAMES,
    A2C(
        lr=7e-4,
        lam=0.95,
        entropy=0.01,
        rollout=32,
        value_coef=0.5,
        optimizer=RMSprop(alpha=0.99, eps=1e-5),
        net=Conv(),
        shared=True,
    ),
)
SAC_OF = dict.fromkeys(
    GAMES,
    # The mean of the critics and 0.6 of the greatest entropy; 0.98, as in Christodoulou (2019), stays near random play.
    SAC(
        lr=3e-4,
        tau=0.005,
        batch=256,
        buffer=200_000,
        learning_starts=1_000,
        updates_per_frame=3 / 16,
        max_grad_norm=0.5,
        critic_reduction="mean",
        entropy_ratio=0.6,
        optimizer=Adam(eps=1e-4),
        net=Conv(),
    ),
)
CROSSQ_OF = dict.fromkeys(
    ("Breakout", "MsPacman", "Pong", "Qbert", "Seaquest", "SpaceInvaders"),
    CrossQ(
        lr=1e-3,
        batch=256,
        buffer=200_000,
        learning_starts=1_000,
        updates_per_frame=1 / 16,
        policy_delay=3,
        renorm_after=5_000,
        max_grad_norm=0.5,
        critic_reduction="mean",
        entropy_ratio=0.6,
        optimizer=Adam(betas=(0.5, 0.999), eps=1e-8),
        net=Conv(),
        critic_net=Conv(hidden=(1024,)),
    ),
)
