"""A wrapper for a test of scores: it takes steps before the agent acts, as wrappers of Atari's games do."""
import gymnasium

class FirstSteps(gymnasium.Wrapper):
    def reset(self, **given):
        seen, info = self.env.reset(**given)
        for _ in range(3): seen, _, _, _, info = self.env.step(0)
        return seen, info
