/**
 * The fields that states of runs are made of. A state is a `Schema.Class` whose fields are mutable: the loop counts in
 * them, saving encodes them, and restoring decodes them.
 *
 * @example
 * ```ts
 * class State extends Schema.Class<State>("State")({ step: count(), returns: list(Schema.Finite) }) {}
 * const state = new State({})
 * state.step++
 * ```
 */
import { Effect, Schema } from "effect"
import { ScoreHash } from "./ScoreHash.ts"

/** A whole number that the loop changes. */
export const count = (initial = 0) =>
  Schema.mutableKey(Schema.Int.pipe(Schema.withConstructorDefault(Effect.succeed(initial))))

/** A sum of scores. */
export const total = Schema.mutableKey(Schema.Finite.pipe(Schema.withConstructorDefault(Effect.succeed(0))))

/** A list that the loop appends to. */
export const list = <S extends Schema.Constraint>(of: S) =>
  Schema.mutableKey(
    Schema.mutable(Schema.Array(of)).pipe(Schema.withConstructorDefault(Effect.sync((): Array<S["Type"]> => []))),
  )

/** The hash of all scores so far. */
export const scoreHash = ScoreHash.schema.pipe(Schema.withConstructorDefault(Effect.sync(() => new ScoreHash())))

/** The number of episodes over which the mean return of a progress line is taken. */
const recentEpisodes = 100

/** Returns the last hundred values of a list: the list itself while it is no longer than that. */
export const recent = (values: Array<number>): Array<number> =>
  values.length > recentEpisodes ? values.slice(-recentEpisodes) : values
