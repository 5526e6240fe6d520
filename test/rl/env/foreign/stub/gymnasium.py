"""Stands for Gymnasium in a test of masks: an env on ten places, whose ends are walls, with a mask in its info."""
import types
import numpy as np

class Discrete:
    start, shape, dtype = 0, (), np.int64
    def __init__(self, n): self.n = np.int64(n)
    def sample(self): return 0

class Env:
    observation_space, action_space, render_mode, spec = Discrete(10), Discrete(3), None, None

    def answer(self): return self.at, {"action_mask": np.array([self.at > 0, self.at < 9, True], np.int8)}

    def reset(self, seed):
        self.at, self.taken = seed % 9, 0
        return self.answer()

    def step(self, action):
        assert self.answer()[1]["action_mask"][action], "this action is forbidden"
        self.at, self.taken = self.at + (-1, 1, 0)[action], self.taken + 1
        seen, info = self.answer()
        if self.at == 9: info["action_mask"][:] = 0  # As some envs do at an end.
        return seen, 1.0 if self.at == 9 else -0.1, self.at == 9, self.taken == 12, info

def make(name, render_mode=None): return Env()
