/** Reads the config of a gateway and opens its model, so that `execute.ts` can start it. Nothing is sent or written yet. */
import { Effect, Schema } from "effect"
import { decode, overridden, type Override, type Plain } from "../../../base/config/Config.ts"
import { isPlain } from "../../../base/config/plain.ts"
import { openParts } from "../../evaluate/openParts.ts"
import { shownKey } from "../../../base/config/secretFields.ts"
import { limited } from "../../lm/middleware/limited.ts"
import { tokenCounter } from "./counting.ts"
import { embedder } from "./embedding.ts"
import { GatewayConfig } from "./GatewayConfig.ts"
import type { PreparedGateway } from "./execute.ts"

interface PrepareOptions {
  /** The name of the config in error messages. */
  readonly source: string
  readonly overrides: ReadonlyArray<Override>
  /** Where each key was written, for error messages. */
  readonly lines?: ReadonlyMap<string, string>
  /** The folder from which relative paths start. */
  readonly baseDir?: string
}

const encode = Schema.encodeSync(GatewayConfig)

/** Reads a config, and opens the model that it describes. */
export const prepare = Effect.fnUntraced(function* (
  config: unknown,
  { source, overrides, lines = new Map(), baseDir = "." }: PrepareOptions,
) {
  // Saved configs have a placeholder instead of an API key. An override with this placeholder is ignored.
  const usable = overrides.filter(({ value }) => !String(value).includes(shownKey))
  const { value, from } = yield* overridden(config, { lines, overrides: usable, source, whole: GatewayConfig })
  const settings = yield* decode(GatewayConfig, value, from)
  const { spent, openLm } = yield* openParts(from, baseDir)
  const limiting = limited(settings.lmConfig.limits)
  const lm = yield* openLm(settings.lmConfig, ["lmConfig"], { limiting, responses: settings.responses })
  const embed = yield* embedder(settings, { spent, limiting })
  const count = yield* tokenCounter(settings, limiting)
  const encoded: unknown = encode(settings)
  const effective: Plain = isPlain(encoded) ? encoded : {}
  const prepared: Omit<PreparedGateway, "key" | "listen" | "onListening"> = {
    config: settings,
    effective,
    lm,
    embed,
    count,
    spent,
  }
  return prepared
})
