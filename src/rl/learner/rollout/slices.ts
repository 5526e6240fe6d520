/**
 * Compiles and runs an update whose minibatches are divided into slices, so that other processes can compute a part of
 * them. One program computes the gradient of a slice, another one applies the sum of the gradients. The gradients are
 * added in the order of the slices, so the resulting bits depend on the number of slices, but not on the processes that
 * computed them.
 */
import { Effect } from "effect"
import { Backend, type BackendError } from "../../../tensor/backend/Backend.ts"
import { input, mul, sub } from "../../../tensor/graph/ops.ts"
import { fail } from "../../../tensor/graph/ops/core.ts"
import type { ParameterLayout } from "../../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../../tensor/graph/Program.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { Ranks, type Sharing, type SlicedSpec } from "../../../spread/ranks/Ranks.ts"
import { resultCount } from "../../../spread/ranks/wire.ts"
import type { Averages } from "../Averages.ts"
import type { Columns } from "../Batch.ts"
import { batchSpec } from "../batchProgram.ts"
import { build, follow, gradientOf, netOf, restricted, slowed } from "../graphs.ts"
import { floatsOf, numbersOf, statesOf } from "../learnerState.ts"
import { tensorsOf } from "../scheduled.ts"
import type { Experience } from "./Experience.ts"
import type { CompiledPhase } from "./CompiledPhase.ts"
import type { Phase } from "./Phase.ts"

const [meanOf, scaleOf] = [(column: string) => `${column}.mean`, (column: string) => `${column}.scale`]
/** The name of the output that has the value of the loss's limit; no metric has this name. */
const limitOutput = "gradient.limit"

/** The program that computes the gradient of one slice, with the facts about the whole minibatch that it needs. */
interface SliceProgram {
  readonly spec: SlicedSpec
  /** The columns that the loss reads with mean 0 and standard deviation 1. */
  readonly standardised: ReadonlySet<string>
  /** The value at which an update ends; undefined sets no limit. */
  readonly atMost: number | undefined
}

/** Describes the program that computes the gradient of one slice: its share of the gradient of the minibatch. */
const gradientSpec = <C extends Columns>(
  { name, task, actor, steps, columns, ...experience }: Experience<C>,
  parameters: ParameterLayout,
  fixedWeights: ParameterLayout,
  phase: Phase<C>,
  count: number,
): SliceProgram => {
  const sequence = Math.max(1, experience.sequence)
  const sequences = (steps * task.numEnvs) / sequence
  const batch = sequences / phase.minibatches / count
  const net = netOf(parameters, "theta")
  const fixed = netOf(fixedWeights, "fixed")
  const sizes = { rows: sequences, count: 1 }
  const standardised = new Set<string>()
  let atMost: number | undefined
  const { minibatches, ...spec } = batchSpec({
    name: `${name}.${phase.name}.gradient`,
    columns,
    sequences: batch,
    steps: sequence,
    memorySize: actor.memorySize,
    minibatches: sizes,
    build: ({ batch, recall, nameOf, scalar }) => {
      const standardise = (column: Tensor): Tensor => {
        const name = nameOf(column)
        if (name === undefined) return fail("standardised", "expected a column of the minibatch")
        standardised.add(name)
        return mul(sub(column, scalar(meanOf(name))), scalar(scaleOf(name)))
      }
      const minibatch = { batch, weights: net.weights, fixed: fixed.weights, recall, standardised: standardise }
      const { loss, metrics, limit } = phase.loss(minibatch)
      atMost = limit?.atMost
      return {
        states: {
          theta: { tensor: net.theta },
          ...(fixed.layout.size === 0 ? {} : { fixed: { tensor: fixed.theta } }),
        },
        outputs: {
          gradient: gradientOf(net, mul(loss, 1 / count)),
          ...metrics,
          ...(limit === undefined ? {} : { [limitOutput]: limit.value }),
        },
      }
    },
  })
  const inputs = { ...spec.inputs, ...tensorsOf(phase.scheduledInputs) }
  const gathered = minibatches?.gathered ?? []
  return { spec: { ...spec, inputs, minibatches: { ...sizes, batch, gathered } }, standardised, atMost }
}

/** Describes the program that takes a step along the gradient of a minibatch. */
const applySpec = <C extends Columns>(
  { name, learningRateShares }: Experience<C>,
  parameters: ParameterLayout,
  phase: Phase<C>,
): ProgramSpec => {
  const net = netOf(parameters, "theta")
  const inputs = { gradient: input("gradient", [parameters.size]), learningRate: input("learningRate", []) }
  const optimiser = phase.optimiser({ layout: parameters, size: parameters.size, learningRate: inputs.learningRate })
  const { next, moments } = follow(net, inputs.gradient, optimiser, phase.maxGradNorm)
  const theta = { tensor: net.theta, next: restricted(net, phase.learns, slowed(net, learningRateShares, next)) }
  return { name: `${name}.${phase.name}.apply`, inputs, state: { theta, ...moments }, outputs: {} }
}

/** Compiles the programs of a phase whose minibatches are divided into slices. */
export const compileSliced = Effect.fnUntraced(function* <C extends Columns>(
  experience: Experience<C>,
  parameters: ParameterLayout,
  fixed: ParameterLayout,
  phase: Phase<C>,
  count: number,
  prefix: string,
) {
  const { task, steps } = experience
  const sliced = yield* build(() => gradientSpec(experience, parameters, fixed, phase, count))
  const { standardised, atMost } = sliced
  const specs = { gradient: sliced.spec, apply: yield* build(() => applySpec(experience, parameters, phase)) }
  const { compileAll } = yield* Backend
  const { gradient, apply } = yield* compileAll(specs)

  const sequences = (steps * task.numEnvs) / Math.max(1, experience.sequence)
  const indices = new Int32Array(phase.epochs * sequences)
  const rows = sequences / phase.minibatches
  const scalars = Object.keys(specs.gradient.outputs).filter((key) => key !== "gradient")
  const metrics = scalars.filter((key) => key !== limitOutput)
  const results = Array.from({ length: count }, () => new Float32Array(resultCount(gradient)))
  const sum = floatsOf(apply.feeds, "gradient")

  /** Adds up the gradients of the slices, and returns the means of their other outputs. */
  const reduce = (): Readonly<Record<string, number>> => {
    for (const [slice, floats] of results.entries()) {
      if (slice === 0) sum.set(floats.subarray(0, sum.length))
      else for (let at = 0; at < sum.length; at++) sum[at] += floats[at]
    }
    return Object.fromEntries(
      scalars.map((key, at) => [key, results.reduce((total, floats) => total + floats[sum.length + at], 0) / count]),
    )
  }

  let sharing: Sharing | undefined
  const run = Effect.fnUntraced(function* (averages: Averages): Effect.fn.Return<void, BackendError> {
    sharing ??= yield* (yield* Ranks).open(specs.gradient, gradient)
    yield* sharing.begin
    const totals = new Map<string, number>(metrics.map((key) => [key, 0]))
    const minibatches = phase.epochs * phase.minibatches
    let done = 0
    while (done < minibatches) {
      const minibatch = indices.subarray(done * rows, (done + 1) * rows)
      for (const key of standardised) {
        const { mean, scale } = momentsOf(numbersOf(gradient.feeds, key), minibatch, sequences)
        gradient.feeds[meanOf(key)][0] = mean
        gradient.feeds[scaleOf(key)][0] = scale
      }
      const parts = results.map((_, slice) => minibatch.subarray((slice * rows) / count, ((slice + 1) * rows) / count))
      yield* sharing.compute(parts, results)
      const means = reduce()
      done++
      for (const key of metrics) totals.set(key, (totals.get(key) ?? 0) + means[key])
      if (atMost !== undefined && !(means[limitOutput] <= atMost)) break
      yield* apply.run
    }
    for (const [key, total] of totals) averages.add(key, total / done)
  })

  return {
    phase,
    programs: [gradient, apply],
    reader: gradient,
    last: apply,
    gathered: specs.gradient.minibatches.gathered,
    indices,
    learningRate: apply.feeds.learningRate,
    run,
    optimiser: statesOf(apply, specs.apply, ["theta"], prefix),
  } satisfies CompiledPhase
})

/** Returns the mean of some rows of a column, and the factor that gives them a standard deviation of 1. */
const momentsOf = (column: Float32Array | Int32Array, rows: Int32Array, allRows: number) => {
  const size = column.length / allRows
  const n = rows.length * size
  if (n < 2) return { mean: 0, scale: 1 }
  let sum = 0
  for (const row of rows) for (let at = 0; at < size; at++) sum += column[row * size + at]
  const mean = sum / n
  let squares = 0
  for (const row of rows) for (let at = 0; at < size; at++) squares += (column[row * size + at] - mean) ** 2
  return { mean, scale: 1 / (Math.sqrt(squares / (n - 1)) + 1e-8) }
}
