/** Defines the layout of the memory that the threads of a pool share, and the messages to and from the threads. */
import { sizeOf } from "../Space.ts"
import type { AutoReset, BatchArrays, Snapshot } from "../BatchEnv.ts"
import type { Env } from "../Env.ts"
import type { EnvError } from "../EnvError.ts"
import type { Place } from "../EnvPool.ts"

export interface Arrays extends BatchArrays {
  readonly actions: Float32Array | Int32Array
}

/** Returns the arrays of `count` envs, starting with env `first`, as views of the memory for all `total` envs. */
export const viewsOf = (
  memory: SharedArrayBuffer,
  env: Pick<Env, "observationSpace" | "actionSpace">,
  total: number,
  first: number,
  count: number,
): Arrays => {
  const width = sizeOf(env.observationSpace)
  const actionSize = sizeOf(env.actionSpace)
  let offset = 0
  // Returns the offset in bytes and the length of the next array. Arrays of 4-byte numbers must come first.
  const place = (each: number, bytes: number): readonly [number, number] => {
    const from = offset + first * each * bytes
    offset += total * each * bytes
    return [from, count * each]
  }
  const [observations, final, rewards] = [place(width, 4), place(width, 4), place(1, 4)]
  const [actions, terminated, truncated] = [place(actionSize, 4), place(1, 1), place(1, 1)]
  return {
    observations: new Float32Array(memory, ...observations),
    finalObservations: new Float32Array(memory, ...final),
    rewards: new Float32Array(memory, ...rewards),
    actions:
      env.actionSpace._tag === "Discrete" ? new Int32Array(memory, ...actions) : new Float32Array(memory, ...actions),
    terminated: new Uint8Array(memory, ...terminated),
    truncated: new Uint8Array(memory, ...truncated),
  }
}

/** Returns the size of this memory: two observations, an action, a reward (4 bytes) and two flags for each env. */
export const bytesFor = (env: Pick<Env, "observationSpace" | "actionSpace">, total: number): number =>
  total * (8 * sizeOf(env.observationSpace) + 4 * sizeOf(env.actionSpace) + 6)

/** The indices of a worker's control words: commands sent and done, the last command, its result, the worker's end. */
export const control = { sent: 0, done: 1, command: 2, state: 3, ended: 4, words: 5 } as const
/** The kinds of command: `step` needs no message; for all other commands a message holds the details. */
export const command = { step: 0, message: 1 } as const
/** The possible results of a command. */
export const condition = { well: 0, failed: 1 } as const

export interface Start {
  readonly place: Place
  readonly total: number
  readonly first: number
  readonly count: number
  readonly autoReset: AutoReset
  readonly firstIndex: number
  readonly memory: SharedArrayBuffer
  readonly control: SharedArrayBuffer
}

export type Request =
  | { readonly kind: "reset"; readonly seed: number; readonly path: ReadonlyArray<string | number> }
  | { readonly kind: "restart"; readonly mask: Uint8Array }
  | { readonly kind: "snapshot" }
  | { readonly kind: "restore"; readonly snapshot: Snapshot }

export interface Reply {
  /** The number of the command that this reply answers, which tells a late reply from the current one. */
  readonly command: number
  readonly snapshot?: Snapshot
  readonly failure?: typeof EnvError.Encoded
}
