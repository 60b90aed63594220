"""Settings of the Atari family, tied to the games that they are for."""

from rldsl import PPO, Conv, Linear

SHARED = PPO(
    lr=Linear(2.5e-4),
    clip=0.1,
    entropy=0.01,
    rollout=128,
    minibatch=256,
    epochs=4,
    value_clip=True,
    value_coef=0.5,
    net=Conv(),
    shared=True,
)
"""SLM Lab's for 16 environments, after Schulman et al. (2017)."""

GAMES_OF = {
    0.95: """AirRaid Alien Atlantis BankHeist BeamRider Berzerk Bowling Boxing ChopperCommand DoubleDunk Freeway
             Frostbite Gravitar IceHockey Jamesbond Krull NameThisGame Qbert Robotank Seaquest Skiing Solaris
             SpaceInvaders Surround TimePilot WizardOfWor YarsRevenge Zaxxon""",
    0.85: """Amidar Assault Asterix Asteroids BattleZone CrazyClimber Enduro FishingDerby Hero JourneyEscape MsPacman
             Pong Riverraid RoadRunner Tennis Tutankham UpNDown""",
    0.7: """Breakout Carnival Centipede Defender DemonAttack Gopher Kangaroo KungFuMaster Phoenix Pooyan StarGunner
            VideoPinball""",
}
"""How far advantages look ahead, and the games in which SLM Lab found that best."""

PPO_OF = {game: SHARED.with_(lam=lam) for lam, games in GAMES_OF.items() for game in games.split()}
