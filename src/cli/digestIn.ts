import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { mostBytes } from "../config/files.ts"
import { readTextWithin } from "../config/files-node.ts"

const Metrics = Schema.fromJsonString(Schema.Struct({ digest: Schema.String }))

/** The digest of a run that is finished. */
export const digestIn = (run: string): Effect.Effect<string | undefined> =>
  Effect.promise(async () => {
    const text = await readTextWithin(join(run, "metrics.json"), mostBytes.text).catch(() => undefined)
    if (text === undefined || !existsSync(join(run, "return.json"))) return undefined
    return Option.getOrUndefined(Schema.decodeUnknownOption(Metrics)(text))?.digest
  })
