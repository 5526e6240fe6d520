# Learns from rewards alone (GRPO) with Tinker's SDK, on the server that supervised.py describes: answers of three letters get a
# reward for each "e". Of eight answers to a prompt, each has its reward above their mean as its advantage. The mean reward rises
# from about 0.1 to about 2 in 12 steps.
#   python examples/tinker/grpo.py letters
import json
import os
import sys

os.environ.setdefault("TINKER_API_KEY", "tml-local")
os.environ.setdefault("TINKER_BASE_URL", "http://127.0.0.1:8000")
import tinker
from tinker import types

folder, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 16
with open(os.path.join(folder, "tokenizer.json")) as file:
    vocabulary = json.load(file)["model"]["vocab"]


def tokens(text):
    return [vocabulary[letter] for letter in text]


def sample_of(prompt, sequence, advantage):
    """Only the answer has advantages. The prompt has zeros, so it is not learned."""
    answer, before = list(sequence.tokens), len(prompt) - 1
    return types.Datum(
        model_input=types.ModelInput.from_ints(prompt + answer[:-1]),
        loss_fn_inputs={
            "target_tokens": prompt[1:] + answer,
            "logprobs": [0.0] * before + list(sequence.logprobs),
            "advantages": [0.0] * before + [advantage] * len(answer),
        },
    )


service = tinker.ServiceClient()
[model] = service.get_server_capabilities().supported_models
training = service.create_lora_training_client(base_model=model.model_name, rank=32, seed=1)
prompts = [tokens(letter + ":") for letter in "abcdfghi"]
for step in range(steps):
    sampler = training.save_weights_and_get_sampling_client()
    groups = []
    for at, prompt in enumerate(prompts):
        settings = types.SamplingParams(max_tokens=3, temperature=1, seed=100 * step + at)
        groups.append(sampler.sample(types.ModelInput.from_ints(prompt), 8, settings))
    data, total = [], 0.0
    for prompt, group in zip(prompts, groups):
        sequences = group.result().sequences
        rewards = [list(one.tokens).count(vocabulary["e"]) for one in sequences]
        mean = sum(rewards) / len(rewards)
        total += mean / len(prompts)
        data += [sample_of(prompt, one, (reward - mean) / 8) for one, reward in zip(sequences, rewards)]
    training.forward_backward(data, "importance_sampling")
    training.optim_step(types.AdamParams(learning_rate=3e-3)).result()
    print(f"step {step}: mean reward {total:.3f}", flush=True)
