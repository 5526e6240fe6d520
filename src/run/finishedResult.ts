/** Encodes the result of a run as the text of `metrics.json`, and reads it from the files of a finished run. */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import { isPlain, snakeCase, toCamelCase, toSnakeCase } from "../base/config/Config.ts"
import { jsonValue, messageOf } from "../base/text/text.ts"
import { FormatError } from "../base/formats/FormatError.ts"
import type { RunFiles } from "./store/RunFiles.ts"
import * as Layout from "./Layout.ts"

/** Decodes the content of a `metrics.json` by a Schema, and ignores keys that the Schema lacks. */
export const parseMetrics = <A>(text: string, schema: Schema.Codec<A, unknown>): Effect.Effect<A, FormatError> =>
  Effect.try({ try: () => jsonValue(text), catch: (error) => error }).pipe(
    Effect.map(inCamelCase),
    Effect.flatMap(Schema.decodeUnknownEffect(schema)),
    Effect.mapError((error) => new FormatError({ message: messageOf(error) })),
  )

/** Reads the result of a finished run; undefined if the run is not finished, or its files are damaged. */
export const finishedResult = Effect.fnUntraced(function* <A>(run: RunFiles, schema: Schema.Codec<A, unknown>) {
  if (!(yield* run.exists(Layout.returns)) || !(yield* run.exists(Layout.metrics))) return undefined
  return yield* Effect.orElseSucceed(parseMetrics(yield* run.readText(Layout.metrics), schema), () => undefined)
})

/**
 * Encodes a result as `metrics.json`, with keys in snake_case. Keys inside `episodes` come from the env and are not changed.
 */
export const encodeMetrics = (result: object): string => {
  const renamed = Object.entries(result).map(([key, value]) => [
    snakeCase(key),
    key === "episodes" ? value : toSnakeCase(value),
  ])
  return `${JSON.stringify(Object.fromEntries(renamed), null, 2)}\n`
}

/** Converts all keys to camelCase, except the keys inside episodes, which the env chose. */
const inCamelCase = (metrics: unknown): unknown => {
  if (!isPlain(metrics) || !("episodes" in metrics)) return toCamelCase(metrics)
  const { episodes, ...others } = metrics
  const renamed = toCamelCase(others)
  return isPlain(renamed) ? { ...renamed, episodes } : renamed
}
