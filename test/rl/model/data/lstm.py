"""Writes lstm.json: the outputs and gradients of PyTorch's LSTM over two sequences, of which one has an episode's beginning.

    python test/rl/model/data/lstm.py > test/rl/model/data/lstm.json
"""
import json

import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
inputs, units, sequences, steps = 2, 3, 2, 5
# Our weights: x W + h U + b, with the gates input, forget, candidate, output, in PyTorch's order.
weights = {
    "inputWeight": torch.randn(inputs, 4 * units),
    "hiddenWeight": torch.randn(units, 4 * units),
    "bias": torch.randn(4 * units),
}
rows = torch.randn(sequences, steps, inputs)
state = torch.randn(sequences, 2 * units)
fresh = torch.zeros(sequences, steps)
fresh[0, 3] = 1
coefficients = torch.randn(sequences, steps, units)
leaves = {**weights, "rows": rows, "state": state}
for leaf in leaves.values():
    leaf.requires_grad_()

lstm = torch.nn.LSTM(inputs, units, batch_first=True)
parameters = {
    "weight_ih_l0": weights["inputWeight"].T,
    "weight_hh_l0": weights["hiddenWeight"].T,
    "bias_ih_l0": weights["bias"],
    "bias_hh_l0": torch.zeros(4 * units),
}
hidden, cell = [part.contiguous()[None] for part in state.split(units, 1)]
outputs = []
for step in range(steps):
    stays = (1 - fresh[:, step])[None, :, None]
    given = (rows[:, step : step + 1], (hidden * stays, cell * stays))
    output, (hidden, cell) = torch.func.functional_call(lstm, parameters, given)
    outputs.append(output)
features = torch.cat(outputs, 1)
((features * coefficients).sum() + cell.sum()).backward()

def numbers(tensor):
    return [round(value, 9) for value in tensor.detach().flatten().tolist()]

print(json.dumps({
    "torch": torch.__version__,
    "inputs": inputs, "units": units, "sequences": sequences, "steps": steps,
    "fresh": numbers(fresh), "coefficients": numbers(coefficients),
    "leaves": {name: {"value": numbers(leaf), "gradient": numbers(leaf.grad)} for name, leaf in leaves.items()},
    "features": numbers(features), "hidden": numbers(hidden[0]), "cell": numbers(cell[0]),
}))
