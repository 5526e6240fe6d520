/** Checks what the user typed against the model, before anything is reserved for it. */
import { Effect, Option } from "effect"
import type { DecoderConfig } from "../../../decoder/networks/DecoderConfig.ts"
import { usageError } from "../output/output.ts"
import type { ServeFlags } from "./flags.ts"

/** Fails if a flag asks for more than the model has, instead of serving less without a word. */
export const checkSizes = Effect.fnUntraced(function* (
  { maxModelLen, maxLoraRank, routedExperts }: Pick<ServeFlags, "maxModelLen" | "maxLoraRank" | "routedExperts">,
  { maxPositions, hiddenSize, experts }: Pick<DecoderConfig, "maxPositions" | "hiddenSize" | "experts">,
) {
  if (routedExperts && experts === undefined)
    return yield* usageError(
      "--enable-return-routed-experts: expected a model with experts, such as Qwen3-MoE, found one without; leave the flag out",
    )
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
