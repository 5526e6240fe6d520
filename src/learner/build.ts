import { Effect } from "effect"
import { GraphError } from "../graph/GraphError.ts"

/** Building a graph is plain code that throws a GraphError. */
export const build = <A>(body: () => A): Effect.Effect<A, GraphError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(body())
    } catch (error) {
      return error instanceof GraphError ? Effect.fail(error) : Effect.die(error)
    }
  })

/** A graph's parts, then what is made of them. */
export const buildThen = <A, B, E, R>(
  body: () => A,
  then: (built: A) => Effect.Effect<B, E, R>,
): Effect.Effect<B, E | GraphError, R> => Effect.flatMap(build(body), then)
