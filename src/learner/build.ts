import type { Effect } from "effect"
import { attempt } from "../config/attempt.ts"
import { GraphError } from "../graph/GraphError.ts"

/**
 * Runs code that builds a graph; a GraphError that the code throws becomes a failure of the Effect.
 *
 * @example
 * ```ts
 * const network = build(() => Model.trunk("trunk", CartPole.env.observationSpace, networkConfig))
 * // Effect<Model.Trunk, GraphError>
 * ```
 */
export const build = <A>(body: () => A): Effect.Effect<A, GraphError> => attempt(body, GraphError)
