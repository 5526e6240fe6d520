"""Wrappers of Atari's games that Gymnasium lacks (see docs/foreign-envs.md): the bridge finds them by this module's name."""
import gymnasium

class EpisodicLife(gymnasium.Wrapper):
    """Ends the agent's episode with each life, and goes on with the same game in the next one."""
    def __init__(self, env):
        super().__init__(env)
        self.lives, self.goes_on = 0, False

    def leave_game(self):  # The bridge calls this if the next reset must begin a new game.
        self.goes_on = False

    def step(self, action):
        seen, reward, terminated, truncated, info = self.env.step(action)
        lives = self.unwrapped.ale.lives()
        self.goes_on = not (terminated or truncated)
        terminated = terminated or lives < self.lives
        self.lives = lives
        return seen, reward, terminated, truncated, info

    def reset(self, **given):
        is_over = not self.goes_on
        if not is_over:  # A step without an action leaves the state in which the life was lost.
            seen, _, terminated, truncated, info = self.env.step(0)
            is_over = terminated or truncated
        if is_over: seen, info = self.env.reset(**given)
        self.lives, self.goes_on = self.unwrapped.ale.lives(), True
        return seen, info

class FireReset(gymnasium.Wrapper):
    """Presses FIRE at the beginning of an episode, if the game has this button: some games wait for it."""
    def __init__(self, env):
        super().__init__(env)
        meanings = self.unwrapped.get_action_meanings()
        self.needs_fire = len(meanings) > 2 and meanings[1] == "FIRE"

    def reset(self, **given):
        seen, info = self.env.reset(**given)
        for action in (1, 2) if self.needs_fire else ():
            seen, _, terminated, truncated, info = self.env.step(action)
            if terminated or truncated: seen, info = self.env.reset()
        return seen, info
