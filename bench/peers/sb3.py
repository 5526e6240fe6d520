"""Measures Stable-Baselines3's PPO on CartPole with CleanRL's settings, and prints env steps a second as a line of JSON.

Argument: steps in all.
"""

import json
import sys
import time

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

torch.set_num_threads(1)
total = int(sys.argv[1])
agent = PPO(
    "MlpPolicy",
    make_vec_env("CartPole-v1", 4),
    learning_rate=lambda left: 2.5e-4 * left,
    n_steps=128,
    batch_size=128,
    n_epochs=4,
    ent_coef=0.01,
    device="cpu",
)
start = time.perf_counter()
agent.learn(total)
print(json.dumps({"value": agent.num_timesteps / (time.perf_counter() - start)}))
