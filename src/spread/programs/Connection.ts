/**
 * Declares the connection to a program that steps envs, and the header of its messages. `process-node.ts` implements it with
 * a process of this machine.
 */
import type { Effect, Scope } from "effect"
import type { EnvError } from "../../base/EnvError.ts"

/** The status of a reply. */
export const status = { done: 0, failed: 1 } as const

/** Tells whether a number is the status of a reply. */
export const isStatus = (value: number): boolean => value === status.done || value === status.failed

/** The size in bytes of a message's header: the length of its body, and its kind or status. */
export const headerSize = 8

/** The largest number of bytes of a reply whose size the request does not determine. */
export const mostReplyBytes = 2 ** 28

/**
 * A reply of the program. The status of a reply that is a line of text is `done`. The body is valid until the next request.
 */
export interface Reply {
  readonly status: number
  readonly body: Uint8Array
}

export interface Connection {
  /**
   * Sends a request, and calls `done` with the reply, or with the error if there is none. The request's bytes may be changed
   * after that. Only one request may be open at a time. A successful reply with a body of more than `mostBytes` bytes is an
   * error. If `done` throws, it is called again, with an error.
   */
  readonly send: (request: Uint8Array, mostBytes: number, done: (reply: Reply | EnvError) => void) => void
}

/** Opens connections to programs of one kind. `described` names the envs of a connection, for error messages. */
export type Connect = (described: string) => Effect.Effect<Connection, EnvError, Scope.Scope>
