"""Trains Stable-Baselines3 with the settings of a training of this project, for the table of docs/scores.md.

Argument: a JSON file {"settings", "env", "seed", "steps", "episodes", "out"}: the settings as a run's config.json has them. It
writes {"version", "seconds", "cpu_seconds", "steps", "training": [[step, return], ...], "evaluation": [return, ...]} to "out".
It needs the Python packages stable-baselines3 and gymnasium, for bodies mujoco too, and for TRPO, TQC and QR-DQN sb3-contrib.
"""

import json
import sys
import time


def fail(message):
    print(f"sb3.py: {message}", file=sys.stderr)
    sys.exit(3)


try:
    import gymnasium
    import stable_baselines3 as sb3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
except ImportError as error:
    fail(f"the Python package {error.name} is missing; install stable-baselines3 and gymnasium[mujoco], or choose another Python with --python")

activations = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}

# The settings with which this script can train, by algorithm. Others must have the value that leaves them out.
neutral = {
    "optimiser": None, "convolutions": None, "network": None, "lstm": 0, "sde": None, "nsteps": 1, "her": None,
    "noise_repeat": 1, "critic_memory": None, "target_kl": None, "loss": None, "critic_loss": None, "actor_loss": None,
    "target_entropy": None, "critic_learning_rate": None, "dueling": False, "prioritised": None, "distribution": None,
    "noisy": False, "rescale": False, "double": False, "epsilon": None, "epsilon_start": 1, "max_grad_norm": 0,
}  # fmt: skip


def check(settings, used):
    """Refuses settings that Stable-Baselines3 would not get."""
    for key, value in neutral.items():
        if key in settings and key not in used and settings[key] != value:
            fail(f"algorithm.{key}: expected {json.dumps(value)}, found {json.dumps(settings[key])}; this setting has no counterpart here")


def rate(settings):
    """Returns the learning rate, as a function of the share of the run that is left."""
    start, schedule = settings["learning_rate"], settings["schedule"]
    if not isinstance(start, (int, float)) or schedule not in ("constant", "linear"):
        fail("algorithm.learning_rate and schedule: expected a number, constant or linear")
    return (lambda left: start * left) if schedule == "linear" else start


def policy(settings, eps):
    return {
        "net_arch": settings["hidden"],
        "activation_fn": activations[settings["activation"]],
        "optimizer_kwargs": {"eps": settings.get("adam_epsilon", eps)},
    }


def ppo(settings, envs):
    check(settings, {"nsteps", "max_grad_norm"})
    return sb3.PPO, {
        "learning_rate": rate(settings),
        "n_steps": settings["nsteps"],
        "batch_size": settings["nsteps"] * envs // settings["minibatches"],
        "n_epochs": settings["epochs"],
        "gamma": settings["gamma"],
        "gae_lambda": settings["lambda"],
        "clip_range": settings["clip"],
        "clip_range_vf": settings["clip"] if settings["clip_value"] else None,
        "normalize_advantage": settings["normalize_advantages"],
        "ent_coef": settings["entropy_coefficient"],
        # The critic's error is the squared error in Stable-Baselines3, and half of it in the settings.
        "vf_coef": settings["value_coefficient"] / 2,
        "max_grad_norm": settings["max_grad_norm"],
        "policy_kwargs": {
            **policy(settings, 1e-5),
            "ortho_init": settings["orthogonal"],
            "log_std_init": settings["log_std_init"],
        },
    }


def replay(settings):
    return {
        "learning_rate": rate(settings),
        "buffer_size": settings["buffer_size"],
        "batch_size": settings["batch_size"],
        "learning_starts": settings["learning_starts"],
        "train_freq": settings["train_every"],
        "gradient_steps": settings["gradient_steps"],
        "gamma": settings["gamma"],
    }


def sac(settings, _envs):
    check(settings, set())
    alpha = settings["alpha"]
    return sb3.SAC, {
        **replay(settings),
        "tau": settings["tau"],
        "ent_coef": "auto" if alpha is None else alpha,
        "policy_kwargs": policy(settings, 1e-8),
    }


def dqn(settings, _envs):
    check(settings, {"max_grad_norm"})
    return sb3.DQN, {
        **replay(settings),
        "target_update_interval": settings["update_target_freq"],
        "exploration_fraction": settings["exploration_fraction"],
        "exploration_final_eps": settings["epsilon_end"],
        "max_grad_norm": settings["max_grad_norm"] or float("inf"),
        "policy_kwargs": policy(settings, 1e-8),
    }


algorithms = {"ppo": ppo, "sac": sac, "dqn": dqn}


class Episodes(BaseCallback):
    """Records the return of each training episode, and the step at which it ended."""

    def __init__(self):
        super().__init__()
        self.ended = []

    def _on_step(self):
        for info in self.locals["infos"]:
            if "episode" in info:
                self.ended.append([self.num_timesteps, float(info["episode"]["r"])])
        return True


def main():
    with open(sys.argv[1]) as file:
        task = json.load(file)
    settings, seed, steps = task["settings"], task["seed"], task["steps"]
    algorithm = settings["algorithm"]
    if algorithm["name"] not in algorithms:
        fail(f"{algorithm['name']}: expected one of {', '.join(algorithms)}")
    torch.set_num_threads(1)
    count = settings["num_envs"]

    def make():
        return Monitor(gymnasium.make(task["env"]))

    envs = DummyVecEnv([make] * count)
    normalize = settings["normalize"]
    is_normalized = normalize["observations"] or normalize["rewards"]
    flags = {"norm_obs": normalize["observations"], "norm_reward": normalize["rewards"]}
    if is_normalized:
        envs = VecNormalize(envs, gamma=algorithm["gamma"], **flags)
    build, keywords = algorithms[algorithm["name"]](algorithm, count)
    episodes = Episodes()
    model = build("MlpPolicy", envs, seed=seed, device="cpu", **keywords)
    clock, cpu = time.perf_counter(), time.process_time()
    model.learn(steps, callback=episodes)
    seconds, cpu_seconds = time.perf_counter() - clock, time.process_time() - cpu
    held = DummyVecEnv([make])
    held.seed(10_000 + seed)
    if is_normalized:
        held = VecNormalize(held, training=False, gamma=algorithm["gamma"], **flags)
        held.norm_reward = False
        if normalize["observations"]:
            held.obs_rms = envs.obs_rms
    returns, _ = evaluate_policy(model, held, task["episodes"], deterministic=True, return_episode_rewards=True)
    outcome = {
        "version": sb3.__version__,
        "steps": model.num_timesteps,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "training": episodes.ended,
        "evaluation": [float(value) for value in returns],
    }
    with open(task["out"], "w") as file:
        json.dump(outcome, file)


main()
