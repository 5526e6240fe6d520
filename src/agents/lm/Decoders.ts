/**
 * Declares the service that opens a language model in this process for `lm_config: { model: "decoder:FOLDER" }`. The
 * Layer `decoders` of `effect-rl/node` provides it; without it, such a config is an error.
 *
 * @example
 * ```ts
 * const config = LmConfig.make({ model: "decoder:models/small", maxOutputTokens: 16 })
 * const lm = yield* Lms.open(config)
 * const { content } = yield* lm.complete(LmConfig.request(config, [{ role: "user", content: "Hello" }]))
 * ```
 */
import { Context, Effect } from "effect"
import type { Provider } from "./providers/Provider.ts"

export interface DecodersService {
  /**
   * Opens the model in a folder, whose path is absolute. If a model is opened twice, both share one engine. The message of a
   * failure names the file, the key or tensor, and what was expected.
   */
  readonly open: (folder: string) => Effect.Effect<Provider, { readonly message: string }>
}

export const Decoders = Context.Reference<DecodersService>("effect-rl/lm/Decoders", {
  defaultValue: () => ({
    open: (folder) =>
      Effect.fail({ message: `${folder}: a model in this process needs the Layer decoders of effect-rl/node` }),
  }),
})
