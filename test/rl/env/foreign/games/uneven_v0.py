"""A game of PettingZoo whose agents count up to 3 and leave, with masks in their info. Their observations differ in size."""
import numpy as np
from gymnasium.spaces import Box, MultiDiscrete
from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper

class Uneven(ParallelEnv):
    metadata, possible_agents, render_mode = {"name": "uneven_v0"}, ["short", "long"], None

    def observation_space(self, agent): return Box(0, 10, (1 if agent == "short" else 2,), np.float32)
    def action_space(self, agent): return MultiDiscrete([3, 2])

    def answer(self):
        seen = {agent: np.full(1 if agent == "short" else 2, at, np.float32) for agent, at in self.at.items()}
        masks = {agent: {"action_mask": (np.array([1, 1, at < 2]), np.array([1, 1]))} for agent, at in self.at.items()}
        return seen, masks

    def reset(self, seed=None, options=None):
        self.agents = self.possible_agents[:]
        self.at = {"short": 0.0, "long": float(seed % 2)}
        return self.answer()

    def step(self, actions):
        for agent, (first, second) in actions.items():
            assert first < 2 or self.at[agent] < 2, "this action is forbidden"
            self.at[agent] += first + second
        seen, infos = self.answer()
        left = {agent: at >= 3 for agent, at in self.at.items()}
        self.at = {agent: at for agent, at in self.at.items() if not left[agent]}
        self.agents = list(self.at)
        return seen, {agent: 1.0 for agent in left}, left, {agent: False for agent in left}, infos

class Even(BaseParallelWrapper):
    """Fills the shorter observations with zeros."""

    def observation_space(self, agent): return Box(0, 10, (2,), np.float32)
    def even(self, seen): return {agent: np.resize(np.append(part, 0), 2) for agent, part in seen.items()}

    def reset(self, seed=None, options=None):
        seen, infos = self.env.reset(seed=seed)
        return self.even(seen), infos

    def step(self, actions):
        seen, *rest = self.env.step(actions)
        return self.even(seen), *rest

def parallel_env(): return Uneven()
