# Trains a model to write words backwards by rewards alone (GRPO) with Tinker's SDK, on a local server. All weights of its base have learned
# from right answers before: over random weights, an adapter would learn next to nothing from so few rewards.
#   npx effect run examples/tinker/base.yaml
#   npx effect export latest --to model --out reverse
#   npx effect serve reverse --tinker --slots 128
#   pip install tinker && python examples/tinker/reverse-grpo.py reverse
import json
import os
import random
import sys

os.environ.setdefault("TINKER_API_KEY", "tml-local")
os.environ.setdefault("TINKER_BASE_URL", "http://127.0.0.1:8000")
import tinker
from tinker import types

folder, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
with open(os.path.join(folder, "tokenizer.json")) as file:
    vocabulary = json.load(file)["model"]["vocab"]  # a token for each letter
begin, end = vocabulary["<|im_start|>"], vocabulary["<|im_end|>"]
draws, test_draws = random.Random(seed), random.Random(0)
groups, group_size = 16, 8


def tokens(text):
    return [vocabulary[letter] for letter in text]


def word(draws):
    return "".join(draws.choice("abcdefgh") for _ in range(draws.randint(1, 3)))


def prompt_of(text):
    return [begin, *tokens("Q: reverse " + text), end, begin]


def answers_to(words, number, temperature, seed):
    sampler = training.save_weights_and_get_sampling_client()
    asked = []
    for at, one in enumerate(words):
        settings = types.SamplingParams(max_tokens=6, temperature=temperature, stop=[end], seed=seed + at)
        asked.append(sampler.sample(types.ModelInput.from_ints(prompt_of(one)), number, settings))
    return [answer.result().sequences for answer in asked]


def reward(text, answer):
    return float(list(answer.tokens) == [*tokens(text[::-1]), end])


def sample_of(text, answer, advantage):
    """Only the answer has advantages. The prompt has zeros, so it is not learned."""
    prompt, own = prompt_of(text), list(answer.tokens)
    zeros = [0.0] * (len(prompt) - 1)
    columns = {"logprobs": zeros + list(answer.logprobs), "advantages": zeros + [advantage] * len(own)}
    inputs = {"target_tokens": prompt[1:] + own, **columns}
    return types.Datum(model_input=types.ModelInput.from_ints(prompt + own[:-1]), loss_fn_inputs=inputs)


def test(step):
    right = sum(reward(one, answer) for one, [answer] in zip(test_words, answers_to(test_words, 1, 0, 0)))
    print(f"step {step}: {100 * right / len(test_words):.1f} % of the words are right", flush=True)


test_words = [word(test_draws) for _ in range(400)]
service = tinker.ServiceClient()
[model] = service.get_server_capabilities().supported_models
training = service.create_lora_training_client(base_model=model.model_name, rank=32, seed=seed)
for step in range(steps):
    if step % 10 == 0:
        test(step)
    words, data = [word(draws) for _ in range(groups)], []
    for one, group in zip(words, answers_to(words, group_size, 1, 1_000_000 * seed + 1000 * step)):
        rewards = [reward(one, answer) for answer in group]
        mean = sum(rewards) / group_size
        deviation = (sum((own - mean) ** 2 for own in rewards) / group_size) ** 0.5
        data += [sample_of(one, answer, (own - mean) / (deviation + 1e-6)) for answer, own in zip(group, rewards)]
    training.forward_backward(data, "importance_sampling")
    training.optim_step(types.AdamParams(learning_rate=0.0025 * (1 - step / steps))).result()
test(steps)
