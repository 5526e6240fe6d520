/** Makes batches that change the actions, rewards or observations of an inner batch, for `Wrapper` and `Normalise`. */
import type { AnyBatchEnv, BatchEnv, Snapshot, Wait } from "../BatchEnv.ts"
import { afterwards, type WrapperArrays, markResets, nestedRestore, nestedSnapshot } from "./nested.ts"

/** Returns a batch that passes its actions through `map`; `element` is a number's index within an action. */
export const mapActions = <B extends AnyBatchEnv>(
  batch: B,
  space: BatchEnv["actionSpace"],
  map: (value: number, element: number) => number,
): B => {
  const mapped = new Float32Array(batch.numEnvs * batch.actionSize)
  const step = (actions: Float32Array | Int32Array): Wait => {
    // If the length is wrong, the inner batch throws the error.
    if (actions.length !== mapped.length) return batch.step(actions)
    for (let at = 0, element = 0; at < mapped.length; at++) {
      mapped[at] = map(actions[at], element)
      element = element + 1 === batch.actionSize ? 0 : element + 1
    }
    return batch.step(mapped)
  }
  return { ...batch, actionSpace: space, step }
}

/** Returns a batch whose rewards are passed through `map`. The reward of a step that only resets an env stays 0. */
export const mapRewards = <B extends AnyBatchEnv>(batch: B, map: (reward: number) => number): B => {
  const rewards = new Float32Array(batch.numEnvs)
  return {
    ...batch,
    rewards,
    ...rewarding(batch, { rewards }, [rewards], (resetting) => {
      for (let index = 0; index < batch.numEnvs; index++) {
        rewards[index] = resetting[index] === 0 ? map(batch.rewards[index]) : 0
      }
    }),
  }
}

/**
 * Returns the functions of a batch that computes its rewards from those of the inner `batch`. After each step it calls
 * `compute`, which writes the rewards; `resetting` is 1 for each env that the step only reset. Snapshots also save the
 * arrays `own`. The arrays `cleared` have one number per env, which becomes 0 when the env is reset or restarted.
 */
export const rewarding = (
  batch: AnyBatchEnv,
  own: WrapperArrays,
  cleared: ReadonlyArray<Float32Array | Float64Array>,
  compute: (resetting: Uint8Array) => void,
) => {
  const resetting = new Uint8Array(batch.numEnvs)
  const computeStep = (): void => compute(resetting)
  return {
    reset: (seed: number, ...path: ReadonlyArray<string | number>): Wait =>
      afterwards(batch.reset(seed, ...path), () => {
        for (const column of cleared) column.fill(0)
      }),
    restart: (mask: Uint8Array): Wait =>
      afterwards(batch.restart(mask), () => {
        for (const column of cleared) {
          for (let index = 0; index < batch.numEnvs; index++) if (mask[index] !== 0) column[index] = 0
        }
      }),
    step: (actions: Float32Array | Int32Array): Wait => {
      markResets(batch, resetting)
      return afterwards(batch.step(actions), computeStep)
    },
    snapshot: () => nestedSnapshot(batch, own),
    restore: (saved: Snapshot): Wait => nestedRestore(batch, own, saved),
  }
}

/** Returns a batch whose observations are only these elements, in this order, of the inner batch's observations. */
export const selectObservations = <B extends AnyBatchEnv>(
  batch: B,
  space: BatchEnv["observationSpace"],
  elements: ReadonlyArray<number>,
): B => {
  const { numEnvs, observationSize } = batch
  const observations = new Float32Array(numEnvs * elements.length)
  const finalObservations = new Float32Array(numEnvs * elements.length)
  const chosen = Int32Array.from(elements)
  const pick = (from: Float32Array, into: Float32Array): void => {
    for (let index = 0, at = 0; index < numEnvs; index++) {
      for (let element = 0; element < chosen.length; element++) {
        into[at++] = from[index * observationSize + chosen[element]]
      }
    }
  }
  const pickAll = (): void => {
    pick(batch.observations, observations)
    pick(batch.finalObservations, finalObservations)
  }
  return {
    ...batch,
    observationSpace: space,
    observationSize: elements.length,
    observations,
    finalObservations,
    reset: (seed: number, ...path: ReadonlyArray<string | number>) => afterwards(batch.reset(seed, ...path), pickAll),
    restart: (mask: Uint8Array) => afterwards(batch.restart(mask), pickAll),
    step: (actions: Float32Array | Int32Array) => afterwards(batch.step(actions), pickAll),
    restore: (saved: Snapshot) => afterwards(batch.restore(saved), pickAll),
  }
}
