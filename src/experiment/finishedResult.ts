import { Effect, Schema } from "effect"
import { isPlain, toCamelCase } from "../config/Config.ts"
import type { RunFiles } from "./RunFiles.ts"
import type { RunStoreError } from "./RunStoreError.ts"

/** What `metrics.json` of a finished run says; undefined where the run isn't finished, or the file isn't what we write. */
export const finishedResult = Effect.fnUntraced(function* <A>(
  run: RunFiles,
  schema: Schema.Codec<A, unknown>,
): Effect.fn.Return<A | undefined, RunStoreError> {
  if (!(yield* run.exists("return.json")) || !(yield* run.exists("metrics.json"))) return undefined
  const text = yield* run.readText("metrics.json")
  return yield* Effect.try(() => inCamelCase(JSON.parse(text))).pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(schema)),
    Effect.map((result): A | undefined => result),
    Effect.catch(() => Effect.succeed(undefined)),
  )
})

/** What is in episodes has the envs' own keys. */
const inCamelCase = (metrics: unknown): unknown => {
  const renamed = toCamelCase(metrics)
  return isPlain(renamed) && isPlain(metrics) ? { ...renamed, episodes: metrics.episodes } : renamed
}
