/** Compiles the updates of algorithms that learn from batches of transitions, and keeps their networks. */
import { Effect, Record, type Scope, Struct } from "effect"
import { Backend, type BackendError, type BackendUnavailable, type Program } from "../../../tensor/backend/Backend.ts"
import type { GraphError } from "../../../tensor/graph/GraphError.ts"
import { type ParameterLayout, layout, type NamedArrays, type NamedTensors } from "../../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../../tensor/graph/Program.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { stream } from "../../../base/rng/Rng.ts"
import type { Learner } from "../Learner.ts"
import type { Batch, Columns } from "../Batch.ts"
import { batchSpec } from "../batchProgram.ts"
import { build, netOf } from "../graphs.ts"
import { floatsOf, type SavedState, statesOf, weightsIn } from "../learnerState.ts"
import { type Scheduled, type ScheduledInputs, tensorsOf } from "../scheduled.ts"
import type { ReplayColumns, ReplayExperience } from "./ReplayExperience.ts"
import type { NamedNet, NextStates } from "./steps.ts"

/** The part of an experience that an update needs. */
export interface Updating<N extends string, T extends N | "actor", C extends Columns = ReplayColumns> extends Pick<
  ReplayExperience<N, T, C>,
  "name" | "task" | "actor" | "networks" | "targets" | "priorities" | "columns"
> {
  readonly config: { readonly batchSize: number; readonly gradientSteps: number }
}

/** The inputs of an update's graph: a batch of transitions or sequences, and the networks before the update. */
export interface Learning<
  Name extends string,
  Target extends Name | "actor",
  Rate extends string,
  C extends Columns = ReplayColumns,
> {
  readonly batch: Batch<C>
  readonly networks: PerNetwork<Name, NamedNet>
  readonly targets: Pick<PerNetwork<Name, NamedNet>, Target>
  readonly learningRates: Readonly<Record<Rate, Tensor>>
}

/** A value for the actor and for each other network. */
type PerNetwork<Name extends string, A> = Readonly<Record<Name | "actor", A>>

/** The outputs of an update's graph. */
export interface Update {
  /** All states that the update changes: weights of networks and target networks, moments of optimisers, and others. */
  readonly states: NextStates
  readonly metrics: Readonly<Record<string, Tensor>>
  /** The error of each transition or sequence; only an experience made by `withPriorities` needs it. */
  readonly errors?: Tensor
}

/** Describes how a learner learns from a batch. */
export interface UpdateOptions<
  Name extends string,
  Target extends Name | "actor",
  Rate extends string,
  C extends Columns = ReplayColumns,
> {
  /** The learning rates, by the names under which the update reads them. */
  readonly learningRates: Readonly<Record<Rate, Scheduled>>
  /** The other inputs that the update reads and that change over the run. */
  readonly scheduledInputs?: ScheduledInputs | undefined
  /** The number of uniform random numbers that an update needs for each transition or sequence. */
  readonly noiseSize: number
  readonly update: (at: Learning<Name, Target, Rate, C>) => Update
}

type CompileError = GraphError | BackendUnavailable | BackendError

/** A compiled update with its networks. */
interface CompiledReplayUpdate<N extends string> {
  readonly update: Program
  readonly layouts: PerNetwork<N, ParameterLayout>
  /** Copies the networks to their target networks. */
  readonly copyTargets: Effect.Effect<void, BackendError>
  readonly weights: Learner["weights"]
  /** All states except the networks' weights, for a checkpoint: those of target networks, optimisers, and others. */
  readonly optimizer: Effect.Effect<NamedArrays, BackendError>
  readonly start: NonNullable<Learner["start"]>
  readonly restore: (weights: NamedTensors, checkpoint: SavedState) => ReturnType<Learner["restore"]>
}

/**
 * Compiles the update of an experience, and draws the first weights. All that an update changes is a state of its program:
 * the weights of networks and target networks, the moments of optimisers, and others, such as SAC's learned temperature.
 */
export const compileUpdate = Effect.fnUntraced(function* <
  N extends string,
  T extends N | "actor",
  S extends string,
  C extends Columns,
>(
  experience: Updating<N, T, C>,
  options: UpdateOptions<N, T, S, C>,
): Effect.fn.Return<CompiledReplayUpdate<N>, CompileError, Backend | Scope.Scope> {
  const { task, actor, networks, targets } = experience
  const backend = yield* Backend
  const layouts: PerNetwork<N, ParameterLayout> = { actor: layout(actor.parameters), ...Record.map(networks, layout) }
  const names = Record.keys(layouts)
  const spec = yield* build(() => updateSpec(experience, options, layouts))
  const update = yield* backend.compile(spec)
  // Without prioritised replay, only a loss of the user's own can read importance weights.
  if (experience.priorities === null && "importance" in spec.inputs) floatsOf(update.feeds, "importance").fill(1)
  /** Reads and restores all states except the networks' weights. */
  const others = statesOf(update, spec, names)
  const copied = Record.map(layouts, ({ size }) => new Float32Array(size))
  const copyTargets = Effect.forEach(
    targets,
    (key) => Effect.flatMap(update.read(key, copied[key]), (theta) => update.write(targetOf(key), theta)),
    { discard: true },
  )
  for (const key of names) yield* update.write(key, layouts[key].initialise(stream(task.seed, "weights", key)))
  yield* copyTargets
  return {
    update,
    layouts,
    copyTargets,
    weights: Effect.gen(function* () {
      let named: NamedTensors = {}
      for (const key of names) named = { ...named, ...layouts[key].toNamed(yield* update.read(key)) }
      return named
    }),
    optimizer: others.read,
    start: Effect.fnUntraced(function* (weights) {
      for (const key of names) yield* update.write(key, yield* weightsIn(layouts[key], weights))
      yield* copyTargets
    }),
    restore: Effect.fnUntraced(function* (weights, checkpoint) {
      for (const key of names) yield* update.write(key, yield* checkpoint.weights(layouts[key], weights))
      yield* others.restore(checkpoint, "optimizer")
    }),
  }
})

/** Returns the name of the state that holds the weights of a network's target network. */
const targetOf = (name: string): string => `target.${name}`

/** The name of an update's output that holds the error of each transition. */
export const errorsOutput = "errors"

/** Describes the update's program. Its graph, from a batch to the next weights, runs once for each gradient step. */
const updateSpec = <N extends string, T extends N | "actor", S extends string, C extends Columns>(
  { name, columns, config: { batchSize, gradientSteps }, targets, priorities }: Updating<N, T, C>,
  { learningRates, noiseSize, update, scheduledInputs }: UpdateOptions<N, T, S, C>,
  layouts: PerNetwork<N, ParameterLayout>,
): ProgramSpec => {
  const namedNet = (layout: ParameterLayout, key: string): NamedNet => ({ name: key, ...netOf(layout, key) })
  const spec = batchSpec({
    name: `${name}.update`,
    columns: columns(noiseSize),
    sequences: batchSize,
    minibatches: gradientSteps === 1 ? undefined : { rows: batchSize * gradientSteps, count: gradientSteps },
    build: ({ batch, scalar }) => {
      const copies = Record.map(layouts, (layout, key) => namedNet(layout, targetOf(key)))
      const { states, metrics, errors } = update({
        batch,
        networks: Record.map(layouts, namedNet),
        targets: Struct.pick(copies, targets),
        learningRates: Record.map(learningRates, (_, key) => scalar(key)),
      })
      return {
        states: {
          ...Object.fromEntries(targets.map((key) => [targetOf(key), { tensor: copies[key].theta }])),
          ...states,
        },
        outputs: { ...metrics, ...(priorities === null || errors === undefined ? {} : { [errorsOutput]: errors }) },
      }
    },
  })
  return { ...spec, inputs: { ...spec.inputs, ...tensorsOf(scheduledInputs) } }
}
