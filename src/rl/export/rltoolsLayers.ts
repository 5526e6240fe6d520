/**
 * Names what a policy has that RLtools has no layer for. RLtools' layers are dense, embedding, gru, standardize, and those that
 * draw actions (sample_and_squash, td3_sampling); its loader knows no others.
 */
import { type Tensor, topologicalOrder } from "../../tensor/graph/Tensor.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import type { PolicyAbout } from "../policy/about.ts"

/** Returns the first part of a policy that RLtools lacks, such as "convolution layer"; undefined if none is known. */
export const missingInRlTools = (
  { inputs, outputs }: ProgramSpec,
  { hasActionMask, observationSpace }: PolicyAbout,
): string | undefined => {
  const tensors = topologicalOrder(Object.values(outputs))
  const has = (test: (tensor: Tensor) => boolean): boolean => tensors.some(test)
  if (has(({ op }) => op.kind === "conv2d")) return "convolution layer"
  if (inputs.memory !== undefined) return "LSTM layer (its gru layer computes something else)"
  if (hasActionMask) return "layer for action masks"
  if (observationSpace._tag !== "Box") return `layer for observations of the space ${observationSpace._tag}`
  if (has(({ op }) => op.kind === "unary" && op.fn === "softplus")) return "activation softplus"
  if (has(isSilu)) return "activation silu"
  if (has(({ op }) => op.kind === "softmax")) return "attention layer"
  return undefined
}

/** Tells whether a tensor is x · sigmoid(x). */
const isSilu = ({ inputs, op }: Tensor): boolean => {
  if (op.kind !== "binary" || op.fn !== "mul") return false
  const [x, y] = inputs
  const gates = (gate: Tensor, of: Tensor): boolean =>
    gate.op.kind === "unary" && gate.op.fn === "sigmoid" && gate.inputs[0] === of
  return gates(x, y) || gates(y, x)
}
