"""Plays an env of Gymnasium, and prints what it shows: the reference for gymnasium.slow.test.ts."""
import json, sys
import gymnasium, numpy as np

given = json.loads(sys.stdin.read())
env = gymnasium.make(given["id"], **given["options"])

def flat(value):
    parts = value if isinstance(value, tuple) else [value]
    return [float(np.float32(x)) for part in parts for x in np.ravel(part)]

episode, rows = 0, [flat(env.reset(seed=given["seeds"][0])[0])]
for action in given["actions"]:
    if isinstance(action, list): action = np.array(action, env.action_space.dtype)
    seen, reward, terminated, truncated, _ = env.step(action)
    rows.append([flat(seen), float(np.float32(reward)), bool(terminated), bool(truncated)])
    if terminated or truncated:
        episode += 1
        rows.append(flat(env.reset(seed=given["seeds"][episode])[0]))
print(json.dumps(rows))
