/**
 * Adds features to an experience: a target network, or auxiliary tasks for the network; the learner itself adds a
 * memory.
 */
import { Effect } from "effect"
import type { TensorData } from "../../../tensor/backend/Backend.ts"
import type { Declarations } from "../../model/trunk.ts"
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import type { Columns } from "../Batch.ts"
import { namedVector } from "../learnerState.ts"
import type { Experience, Feature, FeatureInput } from "./Experience.ts"
import { copy, GrowingRows } from "./Rollout.ts"

/**
 * Adds the memory of a recurrent actor (an LSTM) to an experience, before its other features; the learner calls this. The
 * memory passes from step to step and from rollout to rollout, and is emptied when an episode begins. The update learns from
 * whole sequences of `sequence` steps. If the actor has no memory, nothing is added.
 */
export const withMemory = <C extends Columns>(experience: Experience<C>): Experience<C> => {
  const { actor, steps } = experience
  if (actor.memorySize === 0) return experience
  const sequence = experience.sequence === 0 ? steps : experience.sequence
  return { ...experience, sequence, features: [memory(actor.memorySize, sequence), ...experience.features] }
}

/**
 * Makes the feature that keeps each env's memory of `size` numbers from step to step, and stores it before each
 * sequence.
 */
const memory =
  <C extends Columns>(size: number, sequence: number): Feature<C> =>
  ({ act, rollout: { steps, numEnvs } }) =>
    Effect.sync(() => {
      /** The memory of each env before its next step. */
      const current = new Float32Array(numEnvs * size)
      /** 1 for each env whose next step begins an episode, else 0; the actor then starts from an empty memory. */
      const fresh = new Float32Array(numEnvs).fill(1)
      const columns = {
        /** The memory before each sequence, of shape [steps / sequence, numEnvs, size]. */
        memory: new Float32Array(Math.ceil(steps / sequence) * numEnvs * size),
        fresh: new Float32Array(steps * numEnvs),
      }
      const atTruncation = new GrowingRows(size, Math.max(16, numEnvs))
      return {
        columns,
        start: () => atTruncation.clear(),
        beforeAct: (t) => {
          copy(current, 0, act.feeds.memory, 0, current.length)
          copy(fresh, 0, act.feeds.fresh, 0, numEnvs)
          if (t === steps) return
          copy(fresh, 0, columns.fresh, t * numEnvs, numEnvs)
          if (t % sequence === 0) copy(current, 0, columns.memory, (t / sequence) * current.length, current.length)
        },
        afterStep: (envs) => {
          copy(act.results.nextMemory, 0, current, 0, current.length)
          for (let env = 0; env < numEnvs; env++)
            fresh[env] = (envs.terminated[env] | envs.truncated[env]) === 0 ? 0 : 1
        },
        truncated: (env) => atTruncation.add(current, env * size),
        beforeTruncated: (first, count) => {
          atTruncation.copy(first, count, act.feeds.memory)
          act.feeds.fresh.fill(0)
        },
        state: Effect.sync(() => ({ learner: { memory: namedVector(current), fresh: namedVector(fresh) } })),
        restore: Effect.fnUntraced(function* (files) {
          current.set(yield* files.floats("learner", "memory", [current.length]))
          fresh.set(yield* files.floats("learner", "fresh", [fresh.length]))
        }),
      }
    })

/**
 * Adds a target network, which the actor can read: a copy of the learned weights. The trainer has the learner copy them
 * again every `everySteps` env steps, or never if `everySteps` is 0.
 *
 * @example
 * ```ts
 * const plain = Learner.experience({ name: "ddqn", task, actor: network, steps: 5, returns: () => {} })
 * withTarget(plain, 1000).hasTarget // true
 * ```
 */
export const withTarget = <C extends Columns>(experience: Experience<C>, everySteps: number): Experience<C> => ({
  ...experience,
  hasTarget: true,
  features: [
    ...experience.features,
    ({ act, parameters }) => {
      const update = (weights: Float32Array) => act.write("target", weights)
      return Effect.succeed({
        initialise: update,
        target: { everySteps, update },
        state: Effect.map(act.read("target"), (weights) => ({ learner: { target: namedVector(weights) } })),
        restore: Effect.fnUntraced(function* (files) {
          yield* update(yield* files.floats("learner", "target", [parameters.size]))
        }),
      })
    },
  ],
})

/** Further tasks that the network learns from a memory of earlier rollouts. The algorithm adds their loss itself. */
export interface Auxiliary<C extends Columns, Own extends Columns> {
  readonly parameters: Declarations
  /** The columns that the tasks' loss reads. They are filled once an update, and every minibatch reads them whole. */
  readonly columns: Own
  /** Makes the memory, when the learner is made. */
  readonly start: (learner: FeatureInput<C>) => AuxiliaryMemory
}

/** The memory of earlier rollouts from which auxiliary tasks learn. */
export interface AuxiliaryMemory {
  /** Adds the rollout that was just played to the memory. */
  readonly remember: () => void
  /** Fills the tasks' columns in `feeds`, the input arrays of the update's first program. */
  readonly prepare: (iteration: number, feeds: Readonly<Record<string, TensorData>>) => void
  readonly state: () => NamedArrays
  readonly restore: (arrays: NamedArrays) => void
}

/**
 * Adds auxiliary tasks to an experience: their parameters, columns and memory.
 *
 * @example
 * ```ts
 * const plain = Learner.experience({ name: "replaying", task, actor: network, steps: 5, returns: () => {} })
 * const columns = { replayedRewards: Learner.perUpdate(Learner.f32(32)) }
 * const memory = { remember: () => {}, prepare: () => {}, state: () => ({}), restore: () => {} }
 * withAuxiliary(plain, { parameters: {}, columns, start: () => memory }).columns.replayedRewards
 * ```
 */
export const withAuxiliary = <C extends Columns, Own extends Columns>(
  experience: Experience<C>,
  { parameters, columns, start }: Auxiliary<C, Own>,
): Experience<C & Own> => ({
  ...experience,
  columns: { ...experience.columns, ...columns },
  parameters: { ...experience.parameters, ...parameters },
  features: [
    ...experience.features,
    (learner) =>
      Effect.sync(() => {
        const { remember, prepare, state, restore } = start(learner)
        return {
          afterRollout: remember,
          beforeUpdate: prepare,
          state: Effect.sync(() => ({ replay: state() })),
          restore: (files) => files.use("replay", restore),
        }
      }),
  ],
})
