/**
 * Gives clients turns at the programs that train: one piece of work at a time, and after each piece the next client that
 * waits. So a client with a long queue does not delay the others.
 *
 * @example
 * ```ts
 * const turns = makeTurns()
 * yield* turns.inTurn("session-1", Effect.log("computes a gradient"))
 * ```
 */
import { Deferred, Effect } from "effect"

export interface Turns {
  /** Runs a piece of work of a client when it is the client's turn. */
  readonly inTurn: <A, E, R>(client: string, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Returns the number of pieces of work that wait. */
  readonly waiting: () => number
}

export const makeTurns = (): Turns => {
  /** The work that waits, by client. The client whose turn is next comes first. */
  const queues = new Map<string, Array<Deferred.Deferred<void>>>()
  /** The client whose turn it is. */
  let served: string | undefined

  /** Moves the rest of a client's work behind the work of all others. */
  const moveBack = (client: string): void => {
    const queue = queues.get(client)
    queues.delete(client)
    if (queue !== undefined && queue.length > 0) queues.set(client, queue)
  }

  const next = (): void => {
    if (served !== undefined) moveBack(served)
    const [entry] = queues
    if (entry === undefined) {
      served = undefined
      return
    }
    const [client, queue] = entry
    served = client
    const turn = queue.shift()
    if (queue.length === 0) queues.delete(client)
    if (turn !== undefined) Deferred.doneUnsafe(turn, Effect.void)
  }

  const leave = (client: string, turn: Deferred.Deferred<void>): void => {
    const queue = queues.get(client) ?? []
    const at = queue.indexOf(turn)
    // The turn may have come in the same moment; then it passes to the next client.
    if (at < 0) return next()
    queue.splice(at, 1)
    if (queue.length === 0) queues.delete(client)
  }

  const take = (client: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (served === undefined) {
        served = client
        return Effect.void
      }
      const turn = Deferred.makeUnsafe<void>()
      queues.set(client, [...(queues.get(client) ?? []), turn])
      return Effect.onInterrupt(Deferred.await(turn), () => Effect.sync(() => leave(client, turn)))
    })

  return {
    inTurn: (client, work) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.andThen(restore(take(client)), Effect.ensuring(restore(work), Effect.sync(next))),
      ).pipe(
        // Lets the server read requests, and the engine generate, before the next piece of work.
        Effect.tap(() => Effect.yieldNow),
      ),
    waiting: () => [...queues.values()].reduce((sum, queue) => sum + queue.length, 0),
  }
}
