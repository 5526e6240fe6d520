"""Measures PureJaxRL's PPO on CartPole, and prints env steps a second of a compiled training as a line of JSON.

Arguments: envs, steps a rollout, epochs, minibatches, steps in all. PYTHONPATH has PureJaxRL's and Gymnax's folders.
"""

import json
import sys
import time
import types
from unittest.mock import MagicMock

import jax
import jax.numpy as jnp


class Categorical:
    """Stands in for distrax.Categorical, which needs TensorFlow Probability."""

    def __init__(self, logits):
        self.scores = jax.nn.log_softmax(logits)

    def sample(self, seed):
        return jax.random.categorical(seed, self.scores)

    def log_prob(self, value):
        return jnp.take_along_axis(self.scores, value[..., None], axis=-1)[..., 0]

    def entropy(self):
        return -jnp.sum(jnp.exp(self.scores) * self.scores, axis=-1)


# PureJaxRL imports these for other environments. A training on CartPole uses only the distribution.
distrax = types.ModuleType("distrax")
distrax.Categorical = Categorical
sys.modules["distrax"] = distrax
for name in ("brax", "brax.envs", "brax.envs.wrappers", "brax.envs.wrappers.training", "navix", "seaborn"):
    sys.modules.setdefault(name, MagicMock())

from ppo import make_train  # noqa: E402

envs, steps, epochs, minibatches, total = (int(argument) for argument in sys.argv[1:6])
train = jax.jit(
    make_train(
        {
            "LR": 2.5e-4,
            "NUM_ENVS": envs,
            "NUM_STEPS": steps,
            "TOTAL_TIMESTEPS": total,
            "UPDATE_EPOCHS": epochs,
            "NUM_MINIBATCHES": minibatches,
            "GAMMA": 0.99,
            "GAE_LAMBDA": 0.95,
            "CLIP_EPS": 0.2,
            "ENT_COEF": 0.01,
            "VF_COEF": 0.5,
            "MAX_GRAD_NORM": 0.5,
            "ACTIVATION": "tanh",
            "ENV_NAME": "CartPole-v1",
            "ANNEAL_LR": True,
        }
    )
)


def seconds():
    start = time.perf_counter()
    jax.block_until_ready(train(jax.random.PRNGKey(1)))
    return time.perf_counter() - start


cold, warm = seconds(), seconds()
done = total // (envs * steps) * envs * steps
print(json.dumps({"value": done / warm, "details": {"with compiling": done / cold}}))
