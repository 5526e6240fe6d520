"""Plays a game of MinAtar itself (github.com/kenjyoung/MinAtar), and prints what it shows: the reference for minAtar.test.ts.

The files in ../data/minatar are made here, with MinAtar at commit 4241f24 and numpy 2.4, in an environment that has both:

    for game in asterix breakout freeway seaquest space_invaders; do
      python minatar_trace.py $game | gzip -9n > ../data/minatar/$game.txt.gz
    done

`python minatar_trace.py GAME SEED STEPS` plays other episodes; minAtar.slow.test.ts compares those, too.

Random numbers come from a small generator that the test has as well, in the order in which MinAtar asks for them, so nothing
is recorded but actions and results. With a sticky_action_prob of 0 the generator is not asked, since the test's env does not.
A new episode forgets the last action, as the test's env does.

The first line of each run is JSON; each further line is a step: the action, the reward, 1 if the game is over, and the cells
of the observation that changed, as plane * 100 + row * 10 + column. After the end of a game come the cells that changed by
the reset, in a line that begins with "reset".
"""
import copy, json, sys
from minatar import Environment

class Draws:
    """A linear congruential generator with the functions of numpy's RandomState that MinAtar uses."""

    def __init__(self, seed):
        self.word = seed

    def share(self):
        self.word = (1664525 * self.word + 1013904223) % 2**32
        return self.word / 2**32

    def rand(self, count=None):
        return self.share() if count is None else numbers(self.share() for _ in range(count))

    def randint(self, low, high=None, size=None):
        first, end = (0, low) if high is None else (low, high)
        one = lambda: first + int(self.share() * (end - first))
        return one() if size is None else numbers(one() for _ in range(size))

class Always:
    """Draws what never repeats an action."""

    def rand(self):
        return 1.0

def numbers(values):
    import numpy

    return numpy.array(list(values))

def act(environment, action):
    reward, is_over = environment.act(action)
    return int(reward), bool(is_over)

def survives(environment, actions, draws):
    """Tells whether one of a few random courses of four actions does not end the game."""
    for _ in range(3):
        trial = copy.deepcopy(environment)
        if not any(act(trial, actions[draws.randint(len(actions))])[1] for _ in range(4)): return True
    return False

def towards(x, y, to_x, to_y):
    if x != to_x: return "r" if to_x > x else "l"
    return "d" if to_y > y else "u"

def wish(name, game, draws):
    """Returns the action that an eager player would take, so that runs show scores and high levels."""
    if draws.rand() < 0.3: return None
    if name == "freeway": return "u"
    if name == "breakout": return "n" if game.ball_x == game.pos else towards(game.pos, 0, game.ball_x, 0)
    if name == "asterix":
        gold = [thing for thing in game.entities if thing is not None and thing[3]]
        return towards(game.player_x, game.player_y, gold[0][0], gold[0][1]) if gold else None
    if name == "space_invaders":
        if game.shot_timer == 0: return "f"
        column = max(range(10), key=lambda at: game.alien_map[:, at].sum())
        return "n" if column == game.pos else towards(game.pos, 0, column, 0)
    if game.oxygen < 60 and game.diver_count > 0 or game.diver_count == 6: return "u"
    if game.divers and draws.rand() < 0.7:
        return towards(game.sub_x, game.sub_y, game.divers[0][0], game.divers[0][1])
    return "f" if game.shot_timer == 0 else None

def careful(name, environment, actions, draws):
    """Returns an action after which the game can go on, if a few trials find one: first the wished one, then random ones."""
    wished = wish(name, environment.env, draws)
    action = draws.randint(len(actions)) if wished is None else actions.index("nlurdf".index(wished))
    for _ in range(4):
        trial = copy.deepcopy(environment)
        if not act(trial, actions[action])[1] and survives(trial, actions, draws): return action
        action = draws.randint(len(actions))
    return action

def cells(environment):
    # MinAtar's planes are the last axis.
    return set(environment.state().transpose(2, 0, 1).reshape(-1).nonzero()[0].tolist())

def play(game, steps, seed, policy, sticky, ramping, minimal):
    environment = Environment(game, sticky_action_prob=sticky, difficulty_ramping=ramping)
    environment.env.random = Draws(seed)
    environment.random = environment.env.random if sticky > 0 else Always()
    environment.reset()
    actions = environment.minimal_action_set() if minimal else list(range(6))
    chooser = Draws(seed + 1)
    run = {"game": game, "seed": seed, "steps": steps, "policy": policy, "sticky_action_prob": sticky}
    print(json.dumps({**run, "difficulty_ramping": ramping, "use_minimal_action_set": minimal, "actions": actions}))
    shown = set()
    def changes():
        nonlocal shown
        before, shown = shown, cells(environment)
        return " ".join(map(str, sorted(before ^ shown)))
    print("reset", changes())
    for _ in range(steps):
        is_random = policy == "random"
        action = chooser.randint(len(actions)) if is_random else careful(game, environment, actions, chooser)
        reward, is_over = act(environment, actions[action])
        print(action, reward, int(is_over), changes())
        if is_over:
            environment.last_action = 0
            environment.reset()
            print("reset", changes())

game, seed, steps = sys.argv[1], *map(int, sys.argv[2:] or [7, 10000])
play(game, steps, seed, "random", 0.1, True, True)
play(game, steps // 2, seed + 10, "careful", 0.1, True, True)
play(game, steps // 5, seed + 20, "plain", 0.0, False, False)
