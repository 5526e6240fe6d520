"""Measures a Llama of transformers with the sizes of bench/decoder.ts, and prints tokens a second as a line of JSON.

Arguments: train, or step and the number of sequences.
"""

import json
import statistics
import sys
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

torch.set_num_threads(1)
torch.manual_seed(1)
config = LlamaConfig(
    vocab_size=4096,
    hidden_size=320,
    intermediate_size=864,
    num_hidden_layers=6,
    num_attention_heads=5,
    num_key_value_heads=5,
    head_dim=64,
    max_position_embeddings=1024,
    rms_norm_eps=1e-5,
    tie_word_embeddings=False,
)
model = LlamaForCausalLM(config)


def median_seconds(work, seconds):
    work()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def train(rows, width):
    """Gradients of a loss on the tokens' log-probabilities, and a step of SGD."""
    tokens = torch.randint(0, config.vocab_size, (rows, width))
    advantages = torch.randn(rows, width - 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def work():
        optimizer.zero_grad()
        logits = model(input_ids=tokens, use_cache=False).logits[:, :-1]
        losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")
        (losses * advantages).mean().backward()
        optimizer.step()

    return rows * width / median_seconds(work, 8)


def step(rows):
    """Generates the next token of sequences that have 127 tokens in a cache with room for 128."""
    model.eval()
    room = 128
    cache = StaticCache(config=config, max_cache_len=room)
    prompt = torch.randint(0, config.vocab_size, (rows, room - 1))
    token = torch.randint(0, config.vocab_size, (rows, 1))
    with torch.inference_mode():
        model(input_ids=prompt, past_key_values=cache, use_cache=True)

        def work():
            for layer in cache.layers:
                # The next token is written to the same place of the cache each time.
                layer.cumulative_length.fill_(room - 1)
            model(input_ids=token, position_ids=torch.full((rows, 1), room - 1), past_key_values=cache, use_cache=True)

        return rows / median_seconds(work, 4)


kind, *sizes = sys.argv[1:]
print(json.dumps({"value": train(4, 256) if kind == "train" else step(int(sizes[0]))}))
