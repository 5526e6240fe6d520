/** Helps batches that wrap an inner batch (`EpisodeLog`, `Normalise`, `mapped.ts`) with snapshots and resets. */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import type { AnyBatchEnv, Snapshot, Wait } from "../BatchEnv.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { copyFrom } from "./episodes.ts"

/** The arrays of a wrapper around a batch, by name. The wrapper's snapshot holds them and those of the inner batch. */
export type WrapperArrays = Readonly<Record<string, Float64Array | Float32Array | Int32Array | Uint8Array>>

const prefix = "inner."

/** Returns copies of the wrapper's arrays under their names, and the inner batch's with `inner.` before their names. */
export const nestedSnapshot = (batch: AnyBatchEnv, own: WrapperArrays): Snapshot => ({
  ...Object.fromEntries(Object.entries(own).map(([key, column]) => [key, column.slice()])),
  ...Object.fromEntries(Object.entries(batch.snapshot()).map(([key, column]) => [prefix + key, column])),
})

/** Restores the inner batch, and the wrapper's arrays `own`, from a snapshot made by `nestedSnapshot`. */
export const nestedRestore = (batch: AnyBatchEnv, own: WrapperArrays, saved: Snapshot): Wait => {
  const inner = Object.entries(saved).filter(([key]) => key.startsWith(prefix))
  const wait = batch.restore(Object.fromEntries(inner.map(([key, column]) => [key.slice(prefix.length), column])))
  return afterwards(wait, () => {
    for (const [key, column] of Object.entries(own)) copyFrom(batch.id, saved, key, column)
  })
}

/** Calls `next` when the inner batch has done its work: at once, or after its Effect, as part of the returned one. */
export const afterwards = (wait: Wait, next: () => void): Wait =>
  wait === undefined ? next() : Effect.andThen(wait, attempt(next, EnvError))

/** With auto-reset `next-step`, sets `into` to 1 for each env that the next step will only reset, to 0 for others. */
export const markResets = (batch: AnyBatchEnv, into: Uint8Array): void => {
  if (batch.autoReset !== "next-step") return
  for (let index = 0; index < batch.numEnvs; index++) into[index] = batch.terminated[index] | batch.truncated[index]
}
