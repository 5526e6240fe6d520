import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { mostBytes } from "../../config/files.ts"
import { readTextWithin } from "../../config/files-node.ts"
import { parseMetrics } from "../../run/finishedResult.ts"
import * as Layout from "../../run/Layout.ts"

const Metrics = Schema.Struct({ digest: Schema.String })

/** Reads the digest of a finished run; undefined for any other. */
export const digestIn = (run: string): Effect.Effect<string | undefined> =>
  Effect.gen(function* () {
    if (!existsSync(join(run, Layout.returns))) return undefined
    const text = yield* Effect.tryPromise(() => readTextWithin(join(run, Layout.metrics), mostBytes.text))
    return (yield* parseMetrics(text, Metrics)).digest
  }).pipe(Effect.orElseSucceed(() => undefined))
