/** Defines the memory that a pool (`pool-node.ts`) shares with its workers (`worker-node.ts`), and their messages. */
import { isWhole, sizeOf } from "../Space.ts"
import type { AutoReset, BatchArrays, Snapshot } from "../BatchEnv.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import type { EnvError } from "../../../base/EnvError.ts"
import type { EnvSource } from "../EnvPool.ts"

export interface PoolArrays extends BatchArrays {
  readonly actions: Float32Array | Int32Array
}

/** The fields of an env on which the sizes of the arrays depend. */
type EnvSpaces = Pick<Env, "observationSpace" | "actionSpace" | "actionMask">

/** Returns the arrays of `count` envs, starting with env `first`, as views of the memory for all `total` envs. */
export const viewsOf = (
  memory: SharedArrayBuffer,
  env: EnvSpaces,
  total: number,
  first: number,
  count: number,
): PoolArrays => {
  const width = sizeOf(rowSpaceOf(env))
  const actionSize = sizeOf(env.actionSpace)
  let offset = 0
  // Returns the offset in bytes and the length of the next array. Arrays of 4-byte numbers come first, since their
  // offsets must be multiples of 4.
  const place = (perEnv: number, bytes: number): readonly [number, number] => {
    const from = offset + first * perEnv * bytes
    offset += total * perEnv * bytes
    return [from, count * perEnv]
  }
  const [observations, final, rewards] = [place(width, 4), place(width, 4), place(1, 4)]
  const [actions, terminated, truncated] = [place(actionSize, 4), place(1, 1), place(1, 1)]
  const diverged = place(1, 1)
  return {
    observations: new Float32Array(memory, ...observations),
    finalObservations: new Float32Array(memory, ...final),
    rewards: new Float32Array(memory, ...rewards),
    actions: isWhole(env.actionSpace) ? new Int32Array(memory, ...actions) : new Float32Array(memory, ...actions),
    terminated: new Uint8Array(memory, ...terminated),
    truncated: new Uint8Array(memory, ...truncated),
    diverged: new Uint8Array(memory, ...diverged),
  }
}

/** Returns how many bytes the arrays need: per env 2 observations, an action and a reward (4-byte numbers), 3 flags. */
export const bytesFor = (env: EnvSpaces, total: number): number =>
  total * (8 * sizeOf(rowSpaceOf(env)) + 4 * sizeOf(env.actionSpace) + 7)

/**
 * The indices of the integers, called words, by which the pool and a worker signal each other: the numbers of commands
 * sent and done, the kind of the last command, its result, and 1 if the worker has ended. There are 5 `words`.
 */
export const control = { sent: 0, done: 1, command: 2, state: 3, ended: 4, words: 5 } as const
/** The kinds of command: `step` needs no message; for all other commands a message holds the details. */
export const command = { step: 0, message: 1 } as const
/** The possible results of a command. */
export const condition = { well: 0, failed: 1 } as const

/** The data that a new worker gets: how to make its env, and which part of the batch it steps. */
export interface Start {
  readonly place: EnvSource
  readonly total: number
  readonly first: number
  readonly count: number
  readonly autoReset: AutoReset
  readonly firstIndex: number
  readonly memory: SharedArrayBuffer
  readonly control: SharedArrayBuffer
}

/** The message with the details of a command that is not a step. */
export type PoolRequest =
  | { readonly kind: "reset"; readonly seed: number; readonly path: ReadonlyArray<string | number> }
  | { readonly kind: "restart"; readonly mask: Uint8Array }
  | { readonly kind: "snapshot" }
  | { readonly kind: "restore"; readonly snapshot: Snapshot }

export interface PoolReply {
  /** The number of the command that this reply answers, which tells a late reply from the current one. */
  readonly command: number
  readonly snapshot?: Snapshot
  readonly failure?: typeof EnvError.Encoded
}
