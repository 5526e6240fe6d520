/** Checks the sizes that the user typed against the model, before anything is reserved for them. */
import { Effect, Option } from "effect"
import type { DecoderConfig } from "../../../decoder/networks/DecoderConfig.ts"
import { usageError } from "../output/output.ts"
import type { ServeFlags } from "./flags.ts"

/** Fails if a flag asks for more than the model has, instead of serving less without a word. */
export const checkSizes = Effect.fnUntraced(function* (
  { maxModelLen, maxLoraRank }: Pick<ServeFlags, "maxModelLen" | "maxLoraRank">,
  { maxPositions, hiddenSize }: Pick<DecoderConfig, "maxPositions" | "hiddenSize">,
) {
  const length = Option.getOrElse(maxModelLen, () => 1)
  if (length > maxPositions) {
    const problem = `expected at most ${maxPositions}, the model's positions (max_position_embeddings), found ${length}`
    return yield* usageError(`--max-model-len: ${problem}`)
  }
  const rank = Option.getOrElse(maxLoraRank, () => 1)
  if (rank > hiddenSize) {
    const problem = `expected at most ${hiddenSize}, the model's hidden size, beyond which a rank adds nothing; found ${rank}`
    return yield* usageError(`--max-lora-rank: ${problem}`)
  }
})
