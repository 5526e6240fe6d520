"""Plays a game of Atari without the bridge, its wrappers and Gymnasium's: the reference for atari.slow.test.ts."""
import json, sys
import ale_py, cv2, gymnasium, numpy as np

given = json.loads(sys.stdin.read())
gymnasium.register_envs(ale_py)
env = gymnasium.make(given["id"], frameskip=1, repeat_action_probability=0)
ale, seeds = env.unwrapped.ale, iter(given["seeds"])
score, is_over = 0.0, True

def shrunk(screen): return cv2.resize(screen, (84, 84), interpolation=cv2.INTER_AREA)

def skip(action):  # Four frames, of which the last two are merged. At the end of a game the screen stays.
    global score, is_over, screens
    for frame in range(4):
        _, reward, terminated, truncated, _ = env.step(action)
        score += reward
        is_over = terminated or truncated
        if is_over: break
        if frame >= 2: screens[frame - 2] = ale.getScreenGrayscale()
    screens[1] = np.maximum(*screens)
    return shrunk(screens[1])

def new_game():
    global is_over, screens
    env.reset(seed=next(seeds))
    for _ in range(env.unwrapped.np_random.integers(1, 31)): env.step(0)
    is_over, screens = False, [np.zeros((210, 160), np.uint8), ale.getScreenGrayscale()]

def start():
    global lives, stack
    new_game() if is_over else skip(0)
    for action in (1, 2): seen = skip(action)
    lives, stack = ale.lives(), [seen] * 4

def total(): return int(np.sum(stack, dtype=np.int64))

start()
rows = []
for action in given["actions"]:
    stack = stack[1:] + [skip(action)]
    earned, score, final = score, 0.0, -1  # What a start earns counts for the next step's score, as in the bridge.
    ended = is_over or ale.lives() < lives
    lost = ended and not is_over
    if ended:
        final = total()
        start()
    rows.append([float(np.clip(earned, -1, 1)), earned, int(ended), 0, int(lost), total(), final])
print(json.dumps(rows))
