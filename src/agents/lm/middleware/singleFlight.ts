import { Cause, Deferred, Effect, Exit, Option } from "effect"

/**
 * Makes a function that runs an effect under a key. While that effect runs, other callers with the same key wait for its
 * result. If it is interrupted, one of the waiting callers runs its own effect. The cache of answers uses this function.
 * Effect's `Cache` cannot replace it, because `Cache` computes a value from the key alone, without the context of each
 * caller.
 *
 * @example
 * ```ts
 * const once = singleFlight<string, never>()
 * yield* Effect.all([once("a", slow), once("a", slow)], { concurrency: 2 }) // runs `slow` once
 * ```
 */
export const singleFlight = <A, E>(): ((key: string, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>) => {
  const running = new Map<string, Deferred.Deferred<Option.Option<A>, E>>()
  const once = (key: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.uninterruptibleMask((restore) => {
      const other = running.get(key)
      if (other !== undefined) {
        return Effect.flatMap(restore(Deferred.await(other)), (result) =>
          Option.isSome(result) ? Effect.succeed(result.value) : restore(once(key, effect)),
        )
      }
      const result = Deferred.makeUnsafe<Option.Option<A>, E>()
      running.set(key, result)
      return Effect.onExit(restore(effect), (exit) => {
        running.delete(key)
        const abandoned = Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
        return Deferred.done(result, abandoned ? Exit.succeed(Option.none()) : Exit.map(exit, Option.some))
      })
    })
  return once
}
