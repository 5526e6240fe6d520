/** Compiles and runs the update of an on-policy learner: gradient steps on shuffled minibatches of a rollout. */
import { Effect } from "effect"
import { Backend, type Program } from "../../backend/Backend.ts"
import { add, constant, mul, sub, where } from "../../graph/ops.ts"
import type { Optimiser } from "../../graph/optimisers.ts"
import type { Layout } from "../../graph/Parameters.ts"
import { indicesFeed, type ProgramSpec } from "../../graph/Program.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import type { Recall } from "../../model/memory.ts"
import type { Weights } from "../../model/trunk.ts"
import { stream } from "../../rng/Rng.ts"
import type { NamedArrays } from "../Algorithm.ts"
import type { Averages } from "../Averages.ts"
import type { Batch, Columns } from "../Batch.ts"
import { batchSpec } from "../batchProgram.ts"
import { build, descend, type Loss, type Net, netOf } from "../graphs.ts"
import { type SavedState, statesOf } from "../learnerState.ts"
import type { Experience } from "./Experience.ts"

/** The tensors of a minibatch that a loss reads. */
export interface Minibatch<C> {
  /** The columns of the minibatch's rows. */
  readonly batch: Batch<C>
  /** The weights that are learned. */
  readonly weights: Weights
  /** The weights that were drawn once and are never learned. */
  readonly fixed: Weights
  /** The memory before each sequence, if the actor has a memory. */
  readonly recall: Recall | undefined
}

/** A part of an update, with its own loss and epochs. PPO has one phase; DAAC has one for each of its two networks. */
export interface Phase<C> {
  /** The name of its program and, if there are several phases, of its optimiser's state in checkpoints. */
  readonly name: string
  /** The number of passes over the rollout. */
  readonly epochs: number
  /** The number of minibatches into which the shuffled rollout is divided in each epoch. */
  readonly minibatches: number
  /** The limit of the global norm of gradients; larger ones are scaled down to it. 0 sets no limit. */
  readonly maxGradNorm: number
  readonly loss: (minibatch: Minibatch<C>) => Loss
  readonly optimiser: (options: { readonly size: number; readonly learningRate: Tensor }) => Optimiser
}

/** Compiles a program for each phase; returns functions to fill, run and save them. `last` has the updated weights. */
export const compileUpdate = Effect.fnUntraced(function* <C extends Columns>(
  experience: Experience<C>,
  parameters: Layout,
  fixed: Layout,
  phases: ReadonlyArray<Phase<C>>,
) {
  const { compile } = yield* Backend
  const { task, steps } = experience
  const sequence = Math.max(1, experience.sequence)
  const compiled = yield* Effect.forEach(
    phases,
    Effect.fnUntraced(function* (phase) {
      const spec = yield* build(() => updateSpec(experience, parameters, fixed, phase))
      const program = yield* compile(spec)
      const prefix = phases.length === 1 ? "" : `${phase.name}.`
      const optimiser = statesOf(program, spec, ["theta", "fixed"], prefix)
      return { phase, program, optimiser, gathered: spec.minibatches?.gathered ?? [] }
    }),
  )
  const programs = compiled.map(({ program }) => program)
  const order = new Int32Array((steps * task.numEnvs) / sequence)

  type RolloutArrays = Readonly<Record<string, Float32Array | Int32Array>>
  /** Copies the rollout's rows into the programs' inputs, and draws a new order of rows or sequences for each epoch. */
  const prepare = (iteration: number, learningRate: number, columns: RolloutArrays): void => {
    const shuffle = stream(task.seed, "minibatches", iteration)
    for (const { program, phase, gathered } of compiled) {
      for (const key of gathered) {
        const [column, feed] = [columns[key], program.feeds[key]]
        if (sequence > 1) envMajor(column, feed, task.numEnvs, key === "memory" ? steps / sequence : steps)
        else if (feed !== column) feed.set(column)
      }
      const indices = program.feeds[indicesFeed]
      for (let epoch = 0; epoch < phase.epochs; epoch++) {
        shuffle.permutation(order)
        indices.set(order, epoch * order.length)
      }
      program.feeds.learningRate[0] = learningRate
    }
  }

  /** Runs the phases one after another, each starting with the weights of the previous one. */
  const run = Effect.fnUntraced(function* (averages: Averages) {
    for (const [index, program] of programs.entries()) {
      if (index > 0) yield* program.write("theta", yield* programs[index - 1].read("theta"))
      yield* program.run
      averages.addResults(program)
    }
  })

  const optimiser = {
    read: Effect.gen(function* () {
      let arrays: NamedArrays = {}
      for (const { optimiser } of compiled) arrays = { ...arrays, ...(yield* optimiser.read) }
      return arrays
    }),
    restore: (files: SavedState) =>
      Effect.forEach(compiled, ({ optimiser }) => optimiser.restore(files, "optimizer"), { discard: true }),
  }
  return { programs, last: programs[programs.length - 1], prepare, run, optimiser }
})

/** Describes a phase's program. Its graph runs once for each minibatch: forward, loss, backward, clipping, step. */
const updateSpec = <C extends Columns>(
  { name, task, actor, steps, columns, ...experience }: Experience<C>,
  parameters: Layout,
  fixedWeights: Layout,
  phase: Phase<C>,
): ProgramSpec => {
  const sequence = Math.max(1, experience.sequence)
  const sequences = (steps * task.numEnvs) / sequence
  const net = netOf(parameters, "theta")
  const fixed = netOf(fixedWeights, "fixed")
  return batchSpec({
    name: `${name}.${phase.name}`,
    columns,
    sequences: sequences / phase.minibatches,
    steps: sequence,
    memorySize: actor.memorySize,
    minibatches: { rows: sequences, count: phase.epochs * phase.minibatches },
    build: ({ batch, scalar, recall }) => {
      const minibatch = { batch, weights: net.weights, fixed: fixed.weights, recall }
      const step = gradientStep(phase, net, minibatch, scalar("learningRate"), experience.learningRateShares)
      const states: ProgramSpec["state"] = fixed.layout.size === 0 ? {} : { fixed: { tensor: fixed.theta } }
      return { ...step, states: { ...step.states, ...states } }
    },
  })
}

/** Builds the gradient step of a phase on one minibatch: the weights and the optimiser's states, and the metrics. */
export const gradientStep = <C>(
  phase: Phase<C>,
  net: Net,
  minibatch: Minibatch<C>,
  learningRate: Tensor,
  learningRateShares: Readonly<Record<string, number>>,
) => {
  const { loss, metrics, continueWhile } = phase.loss(minibatch)
  const optimiser = phase.optimiser({ size: net.layout.size, learningRate })
  const { next, moments } = descend(net, loss, optimiser, phase.maxGradNorm)
  const theta = { tensor: net.theta, next: slowed(net, learningRateShares, next) }
  const states = Object.entries({ theta, ...moments }).map(([key, { tensor, next }]) => {
    return [key, { tensor, next: continueWhile === undefined ? next : where(continueWhile, next, tensor) }] as const
  })
  return { states: Object.fromEntries(states), outputs: metrics, continueWhile }
}

/** Scales the changes of parameters that have their own learning rate, by that rate's share of the common rate. */
const slowed = ({ layout, theta }: Net, shares: Readonly<Record<string, number>>, next: Tensor): Tensor =>
  Object.keys(shares).length === 0
    ? next
    : add(theta, mul(constant(layout.spread((name) => shares[name] ?? 1)), sub(next, theta)))

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
