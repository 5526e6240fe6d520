import type { MicroBatch } from "../batches/MicroBatch.ts"

/**
 * Writes into `to` a micro-batch with the tokens of one run, and padding in place of those of all others. The trainer
 * uses it if the numbers of a micro-batch of several runs are not finite: computed alone, only the run that is broken
 * gives such numbers, and the others give what they would have given.
 *
 * @example
 * ```ts
 * isolate(microBatch, 2, scratch) // scratch.loraNumTokens is [0, 0, rows × width]
 * ```
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
  // Where the weight is 0, these columns do not count.
  to.mask.set(microBatch.mask)
  to.logprobs.set(microBatch.logprobs)
  to.advantages.set(microBatch.advantages)
  to.temperatures.set(microBatch.temperatures)
  to.loraNumTokens.fill(0)
  to.loraNumTokens[run] = tokens.length
}
