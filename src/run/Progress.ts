/**
 * Makes fields for the state of a run. A state is a `Schema.Class` whose fields are mutable: the loop changes them, saving
 * encodes them, and restoring decodes them.
 *
 * @example
 * ```ts
 * class State extends Schema.Class<State>("State")({ step: count(), returns: list(Schema.Finite) }) {}
 * const state = new State({})
 * state.step++
 * ```
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { ScoreHash } from "./ScoreHash.ts"

/** Makes the field for a whole number that the loop changes. */
export const count = (initial = 0) =>
  Schema.mutableKey(Schema.Int.pipe(Schema.withConstructorDefault(Effect.succeed(initial))))

/** The field for a sum of scores, which starts at 0. */
export const total = Schema.mutableKey(Schema.Finite.pipe(Schema.withConstructorDefault(Effect.succeed(0))))

/** Makes the field for a list that the loop appends to. */
export const list = <S extends Schema.Constraint>(of: S) =>
  Schema.mutableKey(
    Schema.mutable(Schema.Array(of)).pipe(Schema.withConstructorDefault(Effect.sync((): Array<S["Type"]> => []))),
  )

/** The field for the hash of all scores so far, which becomes part of the digest in the run's result. */
export const scoreHash = ScoreHash.schema.pipe(Schema.withConstructorDefault(Effect.sync(() => new ScoreHash())))

/** The number of episodes whose returns are kept for the mean of the last returns. */
const recentEpisodes = 100

/** Returns the last hundred values of a list; the same list if it has no more than that. */
export const recent = (values: Array<number>): Array<number> =>
  values.length > recentEpisodes ? values.slice(-recentEpisodes) : values
