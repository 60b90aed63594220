"""57 Atari games: PPO, A2C and SAC in all of them, CrossQ in six.

atari-pong/ppo           with the best lambda for the game, and sticky actions
atari-pong/ppo-lam95     with another lambda: lam95, lam85 or lam70
atari-pong/ppo-nosticky  with lambda 0.95, without sticky actions
"""

from atari_settings import A2C_OF, CROSSQ_OF, GAMES, LAMBDAS, PPO_OF, SAC_OF

from rldsl import Atari, experiment, log_uniform, main, uniform

suite = []
for name in GAMES:
    game = experiment(f"atari-{name.lower()}").env(Atari(name, num_envs=16)).seeds(4, first=100).log_every(1e4)
    ppo = game.agent(PPO_OF[name]).frames(1e7)
    suite.append(ppo)
    for label, lam in LAMBDAS.items():
        if lam != PPO_OF[name].lam:
            suite.append(ppo.agent(PPO_OF[name].with_(lam=lam)).named(f"{game.name}/ppo-{label}"))
    no_sticky = game.env(Atari(name, num_envs=16, sticky=0.0)).agent(PPO_OF[name].with_(lam=0.95)).frames(1e7)
    suite.append(no_sticky.named(f"{game.name}/ppo-nosticky"))
    suite.append(game.agent(A2C_OF[name]).frames(1e7))
    suite.append(game.agent(SAC_OF[name]).frames(2e6))
    if name in CROSSQ_OF:
        suite.append(game.agent(CROSSQ_OF[name]).frames(2e6))

breakout = experiment("atari-breakout").env(Atari("Breakout", num_envs=16)).log_every(1e4)
ppo_search = (
    breakout.agent(PPO_OF["Breakout"])
    .frames(1e7)
    .search({"agent.lr.start": log_uniform(1e-4, 1e-3)}, lam=uniform(0.6, 0.98), entropy=log_uniform(1e-3, 3e-2))
    .asha(trials=16)
)

if __name__ == "__main__":
    main(*suite, ppo_search)
