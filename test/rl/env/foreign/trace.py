"""Plays an env of Gymnasium, and prints what it shows: the reference for gymnasium.slow.test.ts."""
import json, sys
import gymnasium, numpy as np

given = json.loads(sys.stdin.read())
env = gymnasium.make(given["id"], **given["options"])

def flat(value):
    parts = value if isinstance(value, tuple) else [value]
    return [float(np.float32(x)) for part in parts for x in np.ravel(part)]

def row(seen, info, is_over=False):
    mask = info.get("action_mask", [])
    return flat(seen) + [1.0 if is_over else float(allowed) for allowed in mask]

episode, rows = 0, [row(*env.reset(seed=given["seeds"][0]))]
for action in given["actions"]:
    if isinstance(action, list): action = np.array(action, env.action_space.dtype)
    seen, reward, terminated, truncated, info = env.step(action)
    rows.append([row(seen, info, terminated), float(np.float32(reward)), bool(terminated), bool(truncated)])
    if terminated or truncated:
        episode += 1
        rows.append(row(*env.reset(seed=given["seeds"][episode])))
print(json.dumps(rows))
