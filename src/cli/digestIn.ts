import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"

const Metrics = Schema.fromJsonString(Schema.Struct({ digest: Schema.String }))

/** The digest of a run that is finished. */
export const digestIn = (run: string): Effect.Effect<string | undefined> =>
  Effect.promise(async () => {
    const text = await readFile(join(run, "metrics.json"), "utf8").catch(() => undefined)
    if (text === undefined || !existsSync(join(run, "return.json"))) return undefined
    return Option.getOrUndefined(Schema.decodeUnknownOption(Metrics)(text))?.digest
  })
