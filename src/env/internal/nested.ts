import type { BatchEnv, Snapshot } from "../BatchEnv.ts"
import { copyFrom } from "./episodes.ts"

/** The columns of a wrapper around a batch. The wrapper's snapshot holds these columns and those of the inner batch. */
export type Columns = Readonly<Record<string, Float64Array | Float32Array | Int32Array | Uint8Array>>

const prefix = "inner."

/** Saves the wrapper's columns under their names and the inner snapshot under `inner.`, so that wrappers can nest. */
export const nestedSnapshot = (batch: BatchEnv, own: Columns): Snapshot => ({
  ...Object.fromEntries(Object.entries(own).map(([key, column]) => [key, column.slice()])),
  ...Object.fromEntries(Object.entries(batch.snapshot()).map(([key, column]) => [prefix + key, column])),
})

export const nestedRestore = (batch: BatchEnv, own: Columns, saved: Snapshot): void => {
  const inner = Object.entries(saved).filter(([key]) => key.startsWith(prefix))
  batch.restore(Object.fromEntries(inner.map(([key, column]) => [key.slice(prefix.length), column])))
  for (const [key, column] of Object.entries(own)) copyFrom(batch.id, saved, key, column)
}

/** Marks the envs that the next step will only reset: in the mode `next-step`, those whose episode has ended. */
export const markResets = (batch: BatchEnv, into: Uint8Array): void => {
  if (batch.autoReset !== "next-step") return
  for (let index = 0; index < batch.numEnvs; index++) into[index] = batch.terminated[index] | batch.truncated[index]
}
