/**
 * A connection between the master, which trains, and a rank. `tcp-node.ts` implements it over the network.
 */
import { Cause, Deferred, Effect, Queue } from "effect"
import type { WorkerError } from "../workers/WorkerError.ts"

/** The kinds of messages. */
export const kinds = {
  /** The rank sends the training's token and its own number. */
  hello: 0,
  /** The master sends the program to compute. */
  program: 1,
  /** A rank reports that it has compiled the program. */
  ready: 2,
  /** The master sends the rows of an update. */
  rows: 3,
  /** The master sends the state, the other inputs, and the slices to compute. */
  compute: 4,
  /** The rank sends the results of these slices. */
  results: 5,
  /** The rank sends the reason why it cannot work. */
  failure: 6,
} as const

export interface Message {
  readonly kind: number
  readonly bytes: Uint8Array
}

export interface Channel {
  /** Sends a message that consists of these bytes. Returns when the arrays may be changed again. */
  readonly send: (kind: number, parts?: ReadonlyArray<Uint8Array>) => Effect.Effect<void, WorkerError>
  /** Waits for the next message. */
  readonly receive: Effect.Effect<Message, WorkerError>
  /** Waits until the connection is closed. */
  readonly closed: Effect.Effect<never, WorkerError>
}

/** The messages that arrive at one end of a connection. */
export interface Inbox extends Pick<Channel, "receive" | "closed"> {
  readonly put: (message: Message) => void
  /** Ends the connection: messages that have arrived can still be received. */
  readonly close: (error: WorkerError) => void
}

export const makeInbox = Effect.gen(function* () {
  const queue = yield* Queue.unbounded<Message, WorkerError>()
  const closed = yield* Deferred.make<never, WorkerError>()
  return {
    put: (message) => void Queue.offerUnsafe(queue, message),
    close: (error) => {
      Queue.failCauseUnsafe(queue, Cause.fail(error))
      Deferred.doneUnsafe(closed, Effect.fail(error))
    },
    receive: Queue.take(queue),
    closed: Deferred.await(closed),
  } satisfies Inbox
})
