import { Effect } from "effect"

/**
 * Makes an Effect that runs only once, when it is first used, and keeps its result. It needs no lock, because the facts of
 * one run are read one after another.
 */
export const once = <A>(
  from: Effect.Effect<A> | (() => Generator<Effect.Effect<unknown>, A, never>),
): Effect.Effect<A> => {
  const effect = Effect.isEffect(from) ? from : Effect.gen(from)
  let result: { readonly value: A } | undefined
  return Effect.suspend(() => {
    if (result !== undefined) return Effect.succeed(result.value)
    return Effect.map(effect, (value) => {
      result = { value }
      return value
    })
  })
}
