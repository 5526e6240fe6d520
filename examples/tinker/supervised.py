# Learns to write words backwards with Tinker's SDK, from examples, on a local server. First a small model with random weights:
#   npx effect run examples/trainer/reverse-text.yaml --set model.initializer_range=0.1 \
#     --set runs.letters.max_steps=1 --set runs.letters.supervised.steps=1
#   npx effect export latest --to model --out letters
#   npx effect serve letters --tinker
#   pip install tinker && python examples/tinker/supervised.py letters
# The last line is the address of the weights and the optimiser's moments. With 400 steps, 59 of 64 new words were right.
import json
import os
import random
import sys

os.environ.setdefault("TINKER_API_KEY", "tml-local")
os.environ.setdefault("TINKER_BASE_URL", "http://127.0.0.1:8000")
import tinker
from tinker import types

folder, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400
with open(os.path.join(folder, "tokenizer.json")) as file:
    vocabulary = json.load(file)["model"]["vocab"]  # a token for each letter
letters = "abcdefghijklmnopqrstuvwxyz"
draws = random.Random(1)


def tokens(text):
    return [vocabulary[letter] for letter in text]


def word():
    return "".join(draws.choice(letters) for _ in range(draws.randint(3, 6)))


def example(text, share):
    """The prompt `abc:` with the answer `cba `. Only the answer has weights."""
    prompt, answer = tokens(text + ":"), tokens(text[::-1] + " ")
    both = prompt + answer
    return types.Datum(
        model_input=types.ModelInput.from_ints(both[:-1]),
        loss_fn_inputs={"target_tokens": both[1:], "weights": [0.0] * (len(prompt) - 1) + [share] * len(answer)},
    )


service = tinker.ServiceClient()
[model] = service.get_server_capabilities().supported_models
training = service.create_lora_training_client(base_model=model.model_name, rank=32, seed=1)
for step in range(steps):
    learned = training.forward_backward([example(word(), 1 / 64) for _ in range(64)], "cross_entropy")
    training.optim_step(types.AdamParams(learning_rate=3e-3)).result()
    if step % 20 == 0:
        print(f"step {step}: loss {learned.result().metrics['loss:sum']:.3f}", flush=True)

sampler = training.save_weights_and_get_sampling_client()
greedy = types.SamplingParams(max_tokens=8, temperature=0, stop=tokens(" "))
words = [word() for _ in range(64)]
answers = [sampler.sample(types.ModelInput.from_ints(tokens(one + ":")), 1, greedy) for one in words]
right = sum(list(answer.result().sequences[0].tokens) == tokens(one[::-1] + " ") for one, answer in zip(words, answers))
print(f"{right} of {len(words)} words are right")
print(training.save_state("supervised", overwrite=True).result().path)
