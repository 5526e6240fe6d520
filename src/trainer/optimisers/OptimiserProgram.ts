/**
 * Compiles the program of one step of an optimiser, and runs it. A run of a multi-run trainer has a program of its own, which
 * keeps the run's moments; the models of a Tinker server with the same settings share one. Both compute the same bits.
 *
 * @example
 * ```ts
 * const optimiser = yield* compileOptimiser(optimiserConfig, parameterLayout)
 * const norm = yield* stepBy(optimiser, { place: "run_a", parameters: [adapters.table], gradient, learningRate: 1e-4 })
 * ```
 */
import { Effect } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { Backend, type BackendError, type Compiling, type Program } from "../../tensor/backend/Backend.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import { input } from "../../tensor/graph/ops.ts"
import { clipGlobalNorm } from "../../tensor/graph/optimisers.ts"
import type { ParameterLayout } from "../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../tensor/graph/Program.ts"
import type { Shape } from "../../tensor/graph/Tensor.ts"
import { TrainerError } from "../TrainerError.ts"
import { normOf } from "./norm.ts"
import { optimiserOf, type OptimiserSettings } from "./OptimiserConfig.ts"

export interface OptimiserProgram {
  readonly program: Program
  /** The names and shapes of the moments. */
  readonly states: ReadonlyArray<{ readonly name: string; readonly shape: Shape }>
}

/** Compiles the optimiser of parameters with this layout. */
export const compileOptimiser = Effect.fnUntraced(function* (
  settings: OptimiserSettings,
  layout: ParameterLayout,
): Effect.fn.Return<OptimiserProgram, Effect.Error<Compiling<never>>, Effect.Services<Compiling<never>> | Backend> {
  const spec = yield* attempt(() => specOf(settings, layout), GraphError)
  const program = yield* (yield* Backend).compile(spec)
  return { program, states: Object.entries(spec.state).map(([name, { tensor }]) => ({ name, shape: tensor.shape })) }
})

/**
 * Describes the program of one step. The parameters are inputs, not state, because a reset or a checkpoint writes them, too.
 */
const specOf = (settings: OptimiserSettings, layout: ParameterLayout): ProgramSpec => {
  const theta = input("theta", [layout.size])
  const gradient = input("gradient", [layout.size])
  const learningRate = input("learningRate", [])
  const { maxNorm, type } = settings
  const clipped = maxNorm === 0 ? gradient : clipGlobalNorm(gradient, maxNorm)
  const { next, moments } = optimiserOf(settings, layout, learningRate).update(theta, clipped)
  return { name: `${type}.step`, inputs: { theta, gradient, learningRate }, state: moments, outputs: { next } }
}

/** The largest norm of a gradient that is accepted. The square of a larger one could overflow float32. */
const largestNorm = 1e18

interface OptimiserStep {
  /** The name of the run or model, for messages. */
  readonly place: string
  /** The arrays of the parameters, in the order of the layout. They are updated in place. */
  readonly parameters: ReadonlyArray<Float32Array>
  readonly gradient: Float32Array
  readonly learningRate: number
}

/**
 * Updates parameters by a gradient, with the moments that the program has. Returns the norm of the gradient, before it was
 * clipped. If it fails, the parameters are unchanged.
 */
export const stepBy = Effect.fnUntraced(function* (
  { program: { feeds, results, run } }: OptimiserProgram,
  { place, parameters, gradient, learningRate }: OptimiserStep,
): Effect.fn.Return<number, TrainerError | BackendError> {
  const norm = normOf(gradient)
  if (!(norm <= largestNorm))
    return yield* TrainerError.at(
      place,
      `gradient: expected finite numbers with a norm of at most 1e18, found the norm ${norm.toPrecision(3)}`,
    )
  let offset = 0
  for (const data of parameters) {
    feeds["theta"].set(data, offset)
    offset += data.length
  }
  feeds["gradient"].set(gradient)
  feeds["learningRate"][0] = learningRate
  yield* run
  const { next } = results
  if (!Number.isFinite(normOf(next)))
    return yield* TrainerError.at(
      place,
      "parameters: expected finite numbers after the step, found others; lower the learning rate",
    )
  offset = 0
  for (const data of parameters) {
    data.set(next.subarray(offset, offset + data.length))
    offset += data.length
  }
  return norm
})
