/** Compiles and runs the update of an on-policy learner: gradient steps on shuffled minibatches of a rollout. */
import { Effect } from "effect"
import { Backend, type Program } from "../../../tensor/backend/Backend.ts"
import { lessEqual, where } from "../../../tensor/graph/ops.ts"
import type { ParameterLayout, NamedArrays } from "../../../tensor/graph/Parameters.ts"
import { indicesFeed, type ProgramSpec } from "../../../tensor/graph/Program.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { Averages } from "../Averages.ts"
import type { Columns } from "../Batch.ts"
import { batchSpec } from "../batchProgram.ts"
import { build, descend, type Net, netOf, restricted, slowed } from "../graphs.ts"
import { type SavedState, statesOf } from "../learnerState.ts"
import { fillScheduled, tensorsOf } from "../scheduled.ts"
import type { Experience } from "./Experience.ts"
import { standardised } from "../../losses/policyGradient.ts"
import type { CompiledPhase } from "./CompiledPhase.ts"
import type { AnyPhase, Minibatch, Phase, SteppingPhase } from "./Phase.ts"
import { compileSliced } from "./slices.ts"

/** The learning rate of an update, and the run's progress at it. */
interface UpdateAt {
  readonly rate: number
  readonly progress: number
}

/** Returns whether an update minimises one loss. Several phases have a loss each, and a `SteppingPhase` has none. */
export const hasTotalLoss = <C>(phases: ReadonlyArray<AnyPhase<C>>): boolean =>
  phases.length === 1 && "loss" in phases[0]

/** Also records the loss of a phase as a metric, under the name that the library rlib uses. */
export const withTotalLoss = <C>(phase: Phase<C>): Phase<C> => ({
  ...phase,
  loss: (minibatch) => {
    const result = phase.loss(minibatch)
    return { ...result, metrics: { ...result.metrics, "train/loss": result.loss } }
  },
})

/** Compiles the programs of each phase; returns functions to fill, run and save them. `last` has the updated weights. */
export const compileUpdate = Effect.fnUntraced(function* <C extends Columns>(
  experience: Experience<C>,
  parameters: ParameterLayout,
  fixed: ParameterLayout,
  phases: ReadonlyArray<AnyPhase<C>>,
) {
  const { task, steps } = experience
  const sequence = Math.max(1, experience.sequence)
  const compiled = yield* Effect.forEach(phases, (phase) => {
    const prefix = phases.length === 1 ? "" : `${phase.name}.`
    return phase.slices === undefined || phase.slices === 1
      ? compileWhole(experience, parameters, fixed, phase, prefix)
      : compileSliced(experience, parameters, fixed, phase, phase.slices, prefix)
  })
  const programs = compiled.flatMap((phase) => phase.programs)
  const order = new Int32Array((steps * task.numEnvs) / sequence)

  type RolloutArrays = Readonly<Record<string, Float32Array | Int32Array>>
  /** Copies the rollout's rows into the programs' inputs, and draws a new order of rows or sequences for each epoch. */
  const prepare = (iteration: number, { rate, progress }: UpdateAt, columns: RolloutArrays): void => {
    const shuffle = stream(task.seed, "minibatches", iteration)
    for (const { reader, phase, gathered, indices, learningRate } of compiled) {
      for (const key of gathered) {
        const [column, feed] = [columns[key], reader.feeds[key]]
        if (sequence > 1) envMajor(column, feed, task.numEnvs, key === "memory" ? steps / sequence : steps)
        else if (feed !== column) feed.set(column)
      }
      for (let epoch = 0; epoch < phase.epochs; epoch++) {
        shuffle.permutation(order)
        indices.set(order, epoch * order.length)
      }
      if (learningRate !== undefined) learningRate[0] = rate
      fillScheduled(phase.scheduledInputs, reader.feeds, progress)
    }
  }

  const weights = new Float32Array(parameters.size)
  /** Runs the phases one after another, each starting with the weights of the previous one. */
  const run = Effect.fnUntraced(function* (averages: Averages) {
    for (const [index, phase] of compiled.entries()) {
      if (index > 0) {
        const theta = yield* compiled[index - 1].last.read("theta", weights)
        for (const program of phase.programs) yield* program.write("theta", theta)
      }
      yield* phase.run(averages)
    }
  })

  const { last } = compiled[compiled.length - 1]
  const optimiser = {
    read: Effect.gen(function* () {
      let arrays: NamedArrays = {}
      for (const { optimiser } of compiled) arrays = { ...arrays, ...(yield* optimiser.read) }
      return arrays
    }),
    restore: (files: SavedState) =>
      Effect.forEach(compiled, ({ optimiser }) => optimiser.restore(files, "optimizer"), { discard: true }),
  }
  return {
    programs,
    readers: compiled.map(({ reader }) => reader),
    last,
    /** Reads the newest weights, into an array that the next update changes. */
    updated: last.read("theta", weights),
    prepare,
    run,
    optimiser,
  }
})

export type CompiledUpdate = Effect.Success<ReturnType<typeof compileUpdate>>

/** Compiles the program of a phase whose minibatches are whole. */
const compileWhole = Effect.fnUntraced(function* <C extends Columns>(
  experience: Experience<C>,
  parameters: ParameterLayout,
  fixed: ParameterLayout,
  phase: AnyPhase<C>,
  prefix: string,
) {
  const { compile } = yield* Backend
  const spec = yield* build(() => updateSpec(experience, parameters, fixed, phase))
  const program = yield* compile(spec)
  return {
    phase,
    programs: [program],
    reader: program,
    last: program,
    gathered: spec.minibatches?.gathered ?? [],
    indices: program.feeds[indicesFeed],
    learningRate: program.feeds.learningRate,
    run: (averages: Averages) => Effect.map(program.run, () => averages.addResults(program)),
    optimiser: statesOf(program, spec, ["theta", "fixed"], prefix),
  } satisfies CompiledPhase
})

/** Describes a phase's program. Its graph runs once for each minibatch: forward, loss, backward, clipping, step. */
const updateSpec = <C extends Columns>(
  { name, task, actor, steps, columns, ...experience }: Experience<C>,
  parameters: ParameterLayout,
  fixedWeights: ParameterLayout,
  phase: AnyPhase<C>,
): ProgramSpec => {
  const sequence = Math.max(1, experience.sequence)
  const sequences = (steps * task.numEnvs) / sequence
  const net = netOf(parameters, "theta")
  const fixed = netOf(fixedWeights, "fixed")
  const spec = batchSpec({
    name: `${name}.${phase.name}`,
    columns,
    sequences: sequences / phase.minibatches,
    steps: sequence,
    memorySize: actor.memorySize,
    minibatches: { rows: sequences, count: phase.epochs * phase.minibatches },
    build: ({ batch, scalar, recall }) => {
      const minibatch = { batch, weights: net.weights, fixed: fixed.weights, recall, standardised }
      const step =
        "step" in phase
          ? ownStep(phase, net, minibatch)
          : gradientStep(phase, net, minibatch, scalar("learningRate"), experience.learningRateShares)
      const states: ProgramSpec["state"] = fixed.layout.size === 0 ? {} : { fixed: { tensor: fixed.theta } }
      return { ...step, states: { ...step.states, ...states } }
    },
  })
  return { ...spec, inputs: { ...spec.inputs, ...tensorsOf(phase.scheduledInputs) } }
}

/** Builds the gradient step of a phase on one minibatch: the weights and the optimiser's states, and the metrics. */
export const gradientStep = <C>(
  phase: Phase<C>,
  net: Net,
  minibatch: Minibatch<C>,
  learningRate: Tensor,
  learningRateShares: Readonly<Record<string, number>>,
) => {
  const { loss, metrics, limit } = phase.loss(minibatch)
  const continueWhile = limit && lessEqual(limit.value, limit.atMost)
  const optimiser = phase.optimiser({ layout: net.layout, size: net.layout.size, learningRate })
  const { next, moments } = descend(net, loss, optimiser, phase.maxGradNorm)
  const theta = { tensor: net.theta, next: restricted(net, phase.learns, slowed(net, learningRateShares, next)) }
  const states = Object.entries({ theta, ...moments }).map(([key, { tensor, next }]) => {
    return [key, { tensor, next: continueWhile === undefined ? next : where(continueWhile, next, tensor) }] as const
  })
  return { states: Object.fromEntries(states), outputs: metrics, continueWhile }
}

/** Builds the step of a phase that computes its next weights itself. */
const ownStep = <C>(phase: SteppingPhase<C>, net: Net, minibatch: Minibatch<C>) => {
  const { next, metrics } = phase.step(minibatch, net)
  return { states: { theta: { tensor: net.theta, next } }, outputs: metrics }
}

/** Converts rows from [steps, envs, size] to [envs, steps, size], so that the steps of a sequence follow each other. */
const envMajor = (
  column: Float32Array | Int32Array,
  feed: Program["feeds"][string],
  envs: number,
  steps: number,
): void => {
  const size = column.length / (envs * steps)
  for (let step = 0; step < steps; step++) {
    for (let env = 0; env < envs; env++) {
      const from = (step * envs + env) * size
      const to = (env * steps + step) * size
      for (let at = 0; at < size; at++) feed[to + at] = column[from + at]
    }
  }
}
