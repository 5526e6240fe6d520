"""Steps an env of Gymnasium by random actions. Reads {id, options, steps, seed} from the standard input, and prints what each step
began with, and what the env said of it."""

import json
import sys

import gymnasium
import numpy as np


def numbers(values):
    return np.asarray(values, dtype=np.float64).ravel().tolist()


asked = json.load(sys.stdin)
env = gymnasium.make(asked["id"], **asked["options"])
body = env.unwrapped
rng = np.random.default_rng(asked["seed"])
observation, _ = env.reset(seed=asked["seed"])
first = numbers(observation)
steps = []
for _ in range(asked["steps"]):
    action = rng.uniform(env.action_space.low, env.action_space.high).astype(np.float32)
    data = body.data
    start = {"qpos": numbers(data.qpos), "qvel": numbers(data.qvel), "warm": numbers(data.qacc_warmstart)}
    observation, reward, terminated, truncated, info = env.step(action)
    terms = {key: float(value) for key, value in info.items() if np.ndim(value) == 0}
    steps.append(
        {
            **start,
            "action": numbers(action),
            "obs": numbers(observation),
            "reward": float(reward),
            "terminated": bool(terminated),
            "truncated": bool(truncated),
            "info": terms,
        }
    )
    if terminated or truncated:
        env.reset()
print(json.dumps({"firstObservation": first, "steps": steps}))
