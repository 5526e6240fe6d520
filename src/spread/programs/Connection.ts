/**
 * Declares the connection to a program that steps envs, and what every reply begins with. `process-node.ts` implements it by a
 * process of this machine.
 */
import type { Effect, Scope } from "effect"
import type { EnvError } from "../../base/EnvError.ts"

/** The status of a reply. */
export const status = { done: 0, failed: 1 } as const

/** Tells whether a number is the status of a reply. */
export const isStatus = (value: number): boolean => value === status.done || value === status.failed

/** The size in bytes of a message's header: the length of its body, and its kind or status. */
export const headerSize = 8

/** A reply: its status (that of a line is `done`) and its body, which is valid until the next request. */
export interface Reply {
  readonly status: number
  readonly body: Uint8Array
}

export interface Connection {
  /**
   * Sends a request, and calls `done` with the reply, or with the reason why there is none. The bytes may be changed when
   * `done` is called. There is only one request at a time. The body of a reply without a failure has `mostBytes` at most: what
   * announces more is no reply.
   */
  readonly send: (request: Uint8Array, mostBytes: number, done: (reply: Reply | EnvError) => void) => void
}

/** Opens connections to programs of one kind. `described` names the envs of a connection, for error messages. */
export type Connect = (described: string) => Effect.Effect<Connection, EnvError, Scope.Scope>
