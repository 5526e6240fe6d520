/** Compiles and runs the update of an on-policy learner: gradient steps on shuffled minibatches of a rollout. */
import { Effect } from "effect"
import { Backend, type BackendError, type Program, type TensorData } from "../../../tensor/backend/Backend.ts"
import { where } from "../../../tensor/graph/ops.ts"
import type { OptimiserOf } from "../../../tensor/graph/optimiserSettings.ts"
import type { Layout, NamedArrays } from "../../../tensor/graph/Parameters.ts"
import { indicesFeed, type ProgramSpec } from "../../../tensor/graph/Program.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { Recall } from "../../model/memory.ts"
import type { Weights } from "../../model/trunk.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { Averages } from "../Averages.ts"
import type { Batch, Columns } from "../Batch.ts"
import { batchSpec } from "../batchProgram.ts"
import { build, descend, type Loss, type Net, netOf, restricted, slowed } from "../graphs.ts"
import { type SavedState, statesOf } from "../learnerState.ts"
import { fillScheduled, type ScheduledInputs, tensorsOf } from "../scheduled.ts"
import type { Experience } from "./Experience.ts"
import { compileSliced, type Slices } from "./slices.ts"

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

/** The part of a phase that says which rows it reads, and how often. */
export interface Passes {
  /** The name of its program and, if there are several phases, of its optimiser's state in checkpoints. */
  readonly name: string
  /** The number of passes over the rollout. */
  readonly epochs: number
  /** The number of minibatches into which the shuffled rollout is divided in each epoch. */
  readonly minibatches: number
  /** The key of the setting that has the number of minibatches, for messages; `minibatches` by default. */
  readonly minibatchesKey?: string
}

/** A part of an update, with its own loss and epochs. PPO has one phase; DAAC has one for each of its two networks. */
export interface Phase<C> extends Passes {
  /** The limit of the global norm of gradients; larger ones are scaled down to it. 0 sets no limit. */
  readonly maxGradNorm: number
  readonly loss: (minibatch: Minibatch<C>) => Loss
  /** The inputs that the loss reads and that change over the run, such as a clip range with a schedule. */
  readonly scheduledInputs?: ScheduledInputs | undefined
  /** Divides the minibatches into slices, whose gradients several processes can compute; by default they are whole. */
  readonly slices?: Slices | undefined
  readonly optimiser: OptimiserOf
  /** Returns whether the phase learns the parameter of this name; the others keep their values. By default it learns all. */
  readonly learns?: ((parameter: string) => boolean) | undefined
}

/** A phase that computes its step itself, from more than the gradient of a loss. */
export interface SteppingPhase<C> extends Passes {
  readonly slices?: undefined
  readonly scheduledInputs?: undefined
  /** Returns the weights after a minibatch, as a flat vector, and the metrics to report. `net` has the weights before it. */
  readonly step: (
    minibatch: Minibatch<C>,
    net: Net,
  ) => { readonly next: Tensor; readonly metrics: Readonly<Record<string, Tensor>> }
}

/** The learning rate of an update, and the run's progress at it. */
interface UpdateAt {
  readonly rate: number
  readonly progress: number
}

/** A phase of either kind. */
export type AnyPhase<C> = Phase<C> | SteppingPhase<C>

/** Returns whether an update minimises one loss. Several phases have a loss each, and a `SteppingPhase` has none. */
export const hasTotalLoss = <C>(phases: ReadonlyArray<AnyPhase<C>>): boolean =>
  phases.length === 1 && "loss" in phases[0]

/** Records the loss of a phase with its metrics too, by the name that the library rlib gives it. */
export const withTotalLoss = <C>(phase: Phase<C>): Phase<C> => ({
  ...phase,
  loss: (minibatch) => {
    const result = phase.loss(minibatch)
    return { ...result, metrics: { ...result.metrics, "train/loss": result.loss } }
  },
})

/** A phase whose programs are compiled. */
export interface CompiledPhase {
  readonly phase: Passes & Pick<AnyPhase<never>, "scheduledInputs">
  /** All programs of the phase. */
  readonly programs: ReadonlyArray<Program>
  /** The program that reads the rows. */
  readonly reader: Program
  /** The program that has the weights after the phase. */
  readonly last: Program
  /** The names of the reader's inputs that hold the rows. */
  readonly gathered: ReadonlyArray<string>
  /** The rows of all minibatches, one after another; to be filled before each run. */
  readonly indices: TensorData
  /** The input of the learning rate, if the phase has one. */
  readonly learningRate: TensorData | undefined
  /** Computes all minibatches, and adds the means of the metrics to the averages. */
  readonly run: (averages: Averages) => Effect.Effect<void, BackendError>
  readonly optimiser: ReturnType<typeof statesOf>
}

/** Compiles the programs of each phase; returns functions to fill, run and save them. `last` has the updated weights. */
export const compileUpdate = Effect.fnUntraced(function* <C extends Columns>(
  experience: Experience<C>,
  parameters: Layout,
  fixed: Layout,
  phases: ReadonlyArray<AnyPhase<C>>,
) {
  const { task, steps } = experience
  const sequence = Math.max(1, experience.sequence)
  const compiled = yield* Effect.forEach(phases, (phase) => {
    const prefix = phases.length === 1 ? "" : `${phase.name}.`
    const { slices } = phase
    return slices === undefined || slices.count === 1
      ? compileWhole(experience, parameters, fixed, phase, prefix)
      : compileSliced(experience, parameters, fixed, phase, slices, prefix)
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

/** Compiles the program of a phase whose minibatches are whole. */
const compileWhole = Effect.fnUntraced(function* <C extends Columns>(
  experience: Experience<C>,
  parameters: Layout,
  fixed: Layout,
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
  parameters: Layout,
  fixedWeights: Layout,
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
      const minibatch = { batch, weights: net.weights, fixed: fixed.weights, recall }
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
  const { loss, metrics, continueWhile } = phase.loss(minibatch)
  const optimiser = phase.optimiser({ layout: net.layout, size: net.layout.size, learningRate })
  const { next, moments } = descend(net, loss, optimiser, phase.maxGradNorm)
  const theta = { tensor: net.theta, next: restricted(net, phase.learns, slowed(net, learningRateShares, next)) }
  const states = Object.entries({ theta, ...moments }).map(([key, { tensor, next }]) => {
    return [key, { tensor, next: continueWhile === undefined ? next : where(continueWhile, next, tensor) }] as const
  })
  return { states: Object.fromEntries(states), outputs: metrics, continueWhile }
}

/** Builds the step of a phase that computes it itself. */
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
