import { Effect } from "effect"
import type { Columns } from "../Batch.ts"
import { namedVector } from "../learnerState.ts"
import type { Experience, Feature } from "./Experience.ts"
import { copy, GrowingRows } from "./Rollout.ts"

/**
 * Carries the memory of a recurrent actor (an LSTM) from step to step and from rollout to rollout, and empties it when an
 * episode begins. The update then learns from whole sequences: gradients flow back through `sequence` steps, or through
 * the whole rollout if that is 0. An experience whose actor has no memory stays as it is.
 *
 * @example
 * ```ts
 * const plain = Learner.experience({ name: "a2c", task, actor: network, steps: 20, returns: () => {} })
 * withMemory(plain, 5).sequence // 5
 * ```
 */
export const withMemory = <C extends Columns>(experience: Experience<C>, sequence: number): Experience<C> => {
  const { actor, steps } = experience
  if (actor.memorySize === 0) return { ...experience, sequence }
  const length = sequence === 0 ? steps : sequence
  return { ...experience, sequence: length, features: [...experience.features, memory(actor.memorySize, length)] }
}

const memory =
  <C extends Columns>(size: number, sequence: number): Feature<C> =>
  ({ act, rollout: { steps, numEnvs } }) =>
    Effect.sync(() => {
      /** The memory of each env at the current step, and 1 for each env whose episode begins with the next step. */
      const current = new Float32Array(numEnvs * size)
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
