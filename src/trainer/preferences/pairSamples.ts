/** Makes the samples of a step from pairs of answers: the chosen answer of each pair, followed by the rejected one. */
import { Effect } from "effect"
import { type Completion, LmRequest } from "../../agents/lm/Chat.ts"
import type { DatasetError } from "../../agents/task/TaskSet.ts"
import type { LmError } from "../../agents/lm/LmError.ts"
import { refuseTooLong, type TrainingSample } from "../batches/TrainingSample.ts"
import type { Encode } from "../orchestrator/demonstrations.ts"
import { TrainerError } from "../TrainerError.ts"
import type { Pairs } from "./pairs.ts"

interface PairsOfStep {
  readonly pairs: Pairs
  /** The indices of the step's pairs in the file. */
  readonly indices: ReadonlyArray<number>
  /** Encodes a prompt and an answer as tokens. */
  readonly encode: Encode
  readonly run: string
  readonly step: number
  /** The largest number of tokens of a sample. */
  readonly width: number
}

const sampleOf = (id: string, { promptIds, completionIds }: NonNullable<Completion["tokens"]>): TrainingSample => {
  const length = promptIds.length + completionIds.length
  return {
    id,
    tokens: Int32Array.from([...promptIds, ...completionIds]),
    mask: Uint8Array.from({ length }, (_, at) => (at < promptIds.length ? 0 : 1)),
    logprobs: new Float32Array(length),
    advantages: new Float32Array(length),
    temperature: 1,
  }
}

/**
 * Makes the samples of a step. Fails if an answer is too long, or if both answers of a pair have the same tokens, for example
 * because they differ only in characters that the model does not know.
 */
export const pairSamples = Effect.fnUntraced(function* ({
  pairs,
  indices,
  encode,
  run,
  step,
  width,
}: PairsOfStep): Effect.fn.Return<ReadonlyArray<TrainingSample>, TrainerError | DatasetError | LmError> {
  const samples: Array<TrainingSample> = []
  for (const [at, index] of indices.entries()) {
    const { prompt, chosen, rejected, place } = yield* pairs.at(index)
    const refuse = (problem: string) => Effect.fail(TrainerError.at(run, `step ${step}: ${place}: ${problem}`))
    const request = { ...LmRequest.defaults, model: run, messages: prompt }
    const both: Array<TrainingSample> = []
    for (const [name, answer] of Object.entries({ chosen, rejected })) {
      const { tokens } = yield* encode(request, answer)
      if (tokens === null || tokens.promptIds.length === 0)
        return yield* refuse("expected a prompt of at least one token")
      const sample = sampleOf(`step-${step}-${at}-${name}`, tokens)
      yield* refuseTooLong(sample, width, { run, step })
      both.push(sample)
    }
    const [one, other] = both
    if (one.tokens.join() === other.tokens.join())
      return yield* refuse(
        "expected two answers with different tokens, found the same tokens; the model may not know the characters in which they differ",
      )
    samples.push(...both)
  }
  return samples
})
