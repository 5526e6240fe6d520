import type { MicroBatch } from "../batches/MicroBatch.ts"

/**
 * Writes into `to` a micro-batch with the tokens of only one run, and padding instead of all other tokens. The trainer uses
 * it if a micro-batch of several runs gives gradients that are not finite: when each run is computed alone, only the broken
 * run gives such gradients, and the results of the others are correct.
 */
export const isolate = (microBatch: MicroBatch, run: number, to: MicroBatch): void => {
  const { loraNumTokens, tokens } = microBatch
  let begin = 0
  for (let before = 0; before < run; before++) begin += loraNumTokens[before]
  const end = begin + loraNumTokens[run]
  const copy = (
    name: "tokens" | "positions" | "contexts" | "ends" | "sequences" | "weights",
    padding: number,
  ): void => {
    to[name].fill(padding)
    to[name].set(microBatch[name].subarray(begin, end), begin)
  }
  copy("tokens", 0)
  copy("positions", 0)
  copy("contexts", -1)
  copy("ends", 0)
  copy("sequences", -1)
  copy("weights", 0)
  to.experts.fill(-1)
  const perToken = microBatch.experts.length / tokens.length
  to.experts.set(microBatch.experts.subarray(begin * perToken, end * perToken), begin * perToken)
  // The columns that are not cleared have no effect where the weight is 0.
  to.mask.set(microBatch.mask)
  to.logprobs.set(microBatch.logprobs)
  to.advantages.set(microBatch.advantages)
  to.temperatures.set(microBatch.temperatures)
  to.loraNumTokens.fill(0)
  to.loraNumTokens[run] = tokens.length
}
