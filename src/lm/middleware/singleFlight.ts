import { Cause, Deferred, Effect, Exit, Option } from "effect"

/**
 * Whoever asks for what is being asked for at the time waits for that, and has its answer or its failure. If nothing
 * comes of it because whoever asked was interrupted, the next one asks.
 *
 * @example
 * ```ts
 * const once = singleFlight<string, never>()
 * yield* Effect.all([once("a", slow), once("a", slow)], { concurrency: 2 }) // runs `slow` once
 * ```
 */
export const singleFlight = <A, E>(): ((key: string, ask: Effect.Effect<A, E>) => Effect.Effect<A, E>) => {
  const asking = new Map<string, Deferred.Deferred<Option.Option<A>, E>>()
  const once = (key: string, ask: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.uninterruptibleMask((restore) => {
      const other = asking.get(key)
      if (other !== undefined) {
        return Effect.flatMap(restore(Deferred.await(other)), (answer) =>
          Option.isSome(answer) ? Effect.succeed(answer.value) : restore(once(key, ask)),
        )
      }
      const answer = Deferred.makeUnsafe<Option.Option<A>, E>()
      asking.set(key, answer)
      return Effect.onExit(restore(ask), (exit) => {
        asking.delete(key)
        const abandoned = Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
        return Deferred.done(answer, abandoned ? Exit.succeed(Option.none()) : Exit.map(exit, Option.some))
      })
    })
  return once
}
