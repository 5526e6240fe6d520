"""Measures native MuJoCo in a vector env of Gymnasium: python gymnasium_mujoco.py ID sync|async ENVS SECONDS. Prints env steps a
second with random actions. AsyncVectorEnv has a process for each env."""

import json
import sys
import time

import gymnasium


def main():
    name, mode, count, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    envs = gymnasium.make_vec(name, count, vectorization_mode=mode)
    envs.reset(seed=1)
    envs.action_space.seed(1)
    actions = [envs.action_space.sample() for _ in range(64)]
    for step in range(100):
        envs.step(actions[step % 64])
    start, steps = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        envs.step(actions[steps % 64])
        steps += 1
    value = count * steps / (time.perf_counter() - start)
    envs.close()
    print(json.dumps({"value": value}))


if __name__ == "__main__":
    main()
