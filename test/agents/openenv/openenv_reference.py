"""Serves an env by OpenEnv's own server, or plays one by its own clients, for openenv.slow.test.ts."""

import json
import sys

from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.generic_client import GenericEnvClient


class Guess(Action):
    number: int


class Hint(Observation):
    text: str


class GuessEnvironment(Environment):
    """Thinks of a number from 0 to 9, which the seed decides."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self, seed=None, episode_id=None, **kwargs):
        self.secret = (seed or 0) % 10
        self.steps = 0
        self.episode = episode_id
        return Hint(text="Guess.")

    def step(self, action, timeout_s=None, **kwargs):
        self.steps += 1
        if action.number > 99:
            raise ValueError("far too high")
        right = action.number == self.secret
        text = "Right." if right else "Too low." if action.number < self.secret else "Too high."
        return Hint(text=text, reward=1.0 if right else 0.0, done=right)

    @property
    def state(self):
        return State(episode_id=self.episode, step_count=self.steps)


def serve(port, sessions):
    import uvicorn

    app = create_app(GuessEnvironment, Guess, Hint, max_concurrent_envs=sessions)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")


def play(url):
    """Balances the pole for a while, twice, and prints what was seen."""
    episodes = []
    with GenericEnvClient(base_url=url).sync() as env:
        for _ in range(2):
            result = env.reset(seed=7, episode_id="seven")
            seen = [result.observation["values"]]
            total = 0.0
            while not result.done:
                result = env.step({"action": len(seen) % 2})
                seen.append(result.observation["values"])
                total += result.reward
            episodes.append({"seen": seen, "return": total, "state": env.state()})
        try:
            env.step({"action": 2})
            refused = None
        except RuntimeError as error:
            refused = str(error)
    print(json.dumps({"episodes": episodes, "refused": refused}))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), int(sys.argv[3]))
    else:
        play(sys.argv[2])
