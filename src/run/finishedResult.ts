import { Effect, Schema } from "effect"
import { isPlain, snakeCase, toCamelCase, toSnakeCase } from "../config/Config.ts"
import { messageOf } from "../config/text.ts"
import type { RunFiles } from "./store/RunFiles.ts"
import type { RunStoreError } from "./store/RunStoreError.ts"
import * as Layout from "./Layout.ts"

/** A text that isn't the `metrics.json` of a run. The message is one line. */
export class MetricsError extends Schema.TaggedError<MetricsError>()("MetricsError", { message: Schema.String }) {}

/** Parses the text of a run's `metrics.json`, or those of its keys that the schema has. */
export const parseMetrics = <A>(text: string, schema: Schema.Codec<A, unknown>): Effect.Effect<A, MetricsError> =>
  Effect.try({ try: (): unknown => JSON.parse(text), catch: (error) => error }).pipe(
    Effect.map(inCamelCase),
    Effect.flatMap(Schema.decodeUnknownEffect(schema)),
    Effect.mapError((error) => new MetricsError({ message: messageOf(error) })),
  )

/** Reads the result of a finished run; undefined where the run isn't finished, or the file isn't what we write. */
export const finishedResult = Effect.fnUntraced(function* <A>(
  run: RunFiles,
  schema: Schema.Codec<A, unknown>,
): Effect.fn.Return<A | undefined, RunStoreError> {
  if (!(yield* run.exists(Layout.returns)) || !(yield* run.exists(Layout.metrics))) return undefined
  return yield* Effect.orElseSucceed(parseMetrics(yield* run.readText(Layout.metrics), schema), () => undefined)
})

/** Writes the text of `metrics.json`. Episodes keep the keys of their env. */
export const encodeMetrics = (result: object): string => {
  const renamed = Object.entries(result).map(([key, value]) => [
    snakeCase(key),
    key === "episodes" ? value : toSnakeCase(value),
  ])
  return `${JSON.stringify(Object.fromEntries(renamed), null, 2)}\n`
}

/** Episodes keep the keys of their env. */
const inCamelCase = (metrics: unknown): unknown => {
  if (!isPlain(metrics) || !("episodes" in metrics)) return toCamelCase(metrics)
  const { episodes, ...others } = metrics
  const renamed = toCamelCase(others)
  return isPlain(renamed) ? { ...renamed, episodes } : renamed
}
