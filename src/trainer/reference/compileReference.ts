import { Effect, type Scope } from "effect"
import { Backend, type BackendError, type BackendUnavailable } from "../../tensor/backend/Backend.ts"
import { attempt } from "../../base/config/attempt.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import type { BaseModel } from "../baseModel.ts"
import type { MicroBatch } from "../batches/MicroBatch.ts"
import { feedPacked, type GradientShape, referenceSpec } from "../trainer/gradientProgram.ts"

/**
 * Compiles the program of a reference model, and returns the function that computes the log-probabilities of the tokens of a
 * micro-batch.
 *
 * @example
 * ```ts
 * const logProbabilitiesOf = yield* compileReference({ rows: 4, width: 256 }, base)
 * const numbers = yield* logProbabilitiesOf(microBatch)
 * ```
 */
export const compileReference = Effect.fnUntraced(function* (
  shape: Pick<GradientShape, "rows" | "width" | "replayed">,
  { decoder: config, weights }: Pick<BaseModel, "decoder" | "weights">,
): Effect.fn.Return<
  (microBatch: MicroBatch) => Effect.Effect<Float32Array<ArrayBuffer>, BackendError>,
  GraphError | BackendUnavailable | BackendError,
  Backend | Scope.Scope
> {
  const backend = yield* Backend
  const program = yield* backend.compile(yield* attempt(() => referenceSpec({ ...shape, config }), GraphError))
  for (const [name, { data }] of Object.entries(weights)) yield* program.write(name, data)
  const { feeds, results } = program
  return (microBatch) =>
    Effect.sync(() => feedPacked(feeds, microBatch)).pipe(
      Effect.andThen(program.run),
      Effect.map(() => Float32Array.from(results["logProbability"])),
    )
})
