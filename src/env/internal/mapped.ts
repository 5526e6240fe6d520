/** Makes batches that change the actions, rewards or observations of an inner batch, for `Wrapper` and `Normalise`. */
import type { BatchEnv } from "../BatchEnv.ts"
import { type Columns, markResets, nestedRestore, nestedSnapshot } from "./nested.ts"

/** Returns a batch that passes its actions through `map`; `element` is a number's index within an action. */
export const mapActions = (
  batch: BatchEnv,
  space: BatchEnv["actionSpace"],
  map: (value: number, element: number) => number,
): BatchEnv => {
  const mapped = new Float32Array(batch.numEnvs * batch.actionSize)
  const step = (actions: Float32Array | Int32Array): void => {
    // If the length is wrong, the inner batch throws the error.
    if (actions.length !== mapped.length) return batch.step(actions)
    for (let at = 0, element = 0; at < mapped.length; at++) {
      mapped[at] = map(actions[at], element)
      element = element + 1 === batch.actionSize ? 0 : element + 1
    }
    batch.step(mapped)
  }
  return { ...batch, actionSpace: space, step }
}

/** Returns a batch whose rewards are passed through `map`. The reward of a step that only resets an env stays 0. */
export const mapRewards = (batch: BatchEnv, map: (reward: number) => number): BatchEnv => {
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
 * arrays `own`. The arrays `cleared` have one number per env, which a reset or restart of the env sets to 0.
 */
export const rewarding = (
  batch: BatchEnv,
  own: Columns,
  cleared: ReadonlyArray<Float32Array | Float64Array>,
  compute: (resetting: Uint8Array) => void,
): Pick<BatchEnv, "reset" | "restart" | "step" | "snapshot" | "restore"> => {
  const resetting = new Uint8Array(batch.numEnvs)
  return {
    reset: (seed, ...path) => {
      batch.reset(seed, ...path)
      for (const column of cleared) column.fill(0)
    },
    restart: (mask) => {
      batch.restart(mask)
      for (const column of cleared) {
        for (let index = 0; index < batch.numEnvs; index++) if (mask[index] !== 0) column[index] = 0
      }
    },
    step: (actions) => {
      markResets(batch, resetting)
      batch.step(actions)
      compute(resetting)
    },
    snapshot: () => nestedSnapshot(batch, own),
    restore: (saved) => nestedRestore(batch, own, saved),
  }
}

/** Returns a batch whose observations are only these elements, in this order, of the inner batch's observations. */
export const selectObservations = (
  batch: BatchEnv,
  space: BatchEnv["observationSpace"],
  elements: ReadonlyArray<number>,
): BatchEnv => {
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
  /** Wraps a function of the inner batch such as `step`: calls it, then copies the chosen elements of observations. */
  const thenPick =
    <Arguments extends Array<unknown>>(act: (...input: Arguments) => void) =>
    (...input: Arguments): void => {
      act.apply(batch, input)
      pick(batch.observations, observations)
      pick(batch.finalObservations, finalObservations)
    }
  return {
    ...batch,
    observationSpace: space,
    observationSize: elements.length,
    observations,
    finalObservations,
    reset: thenPick(batch.reset),
    restart: thenPick(batch.restart),
    step: thenPick(batch.step),
    restore: thenPick(batch.restore),
  }
}
