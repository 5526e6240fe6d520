/**
 * Keys of models' servers: from a config, where `${NAME}` names a variable of the environment, or from the variable that
 * a server's own programs read. A key is in no message, no log and no file.
 */
import { Config, Effect, Option, Redacted } from "effect"
import { shownKey, variableIn } from "../LmConfig.ts"
import { LmError } from "../LmError.ts"

export interface Key {
  readonly secret: Redacted.Redacted
  /** Where it was found, for messages. */
  readonly from: string
}

export interface KeyOptions {
  readonly model: string
  readonly apiKey?: Redacted.Redacted | null | undefined
  /** The variable that is looked for where `apiKey` says nothing; null: no key is sent. */
  readonly variable: string | null
}

/**
 * The key to be sent.
 *
 * @example
 * ```ts
 * const key = yield* keyOf({ model: "gpt-4.1", apiKey: Redacted.make("${MY_KEY}"), variable: "OPENAI_API_KEY" })
 * ```
 */
export const keyOf = Effect.fnUntraced(function* ({
  model,
  apiKey,
  variable,
}: KeyOptions): Effect.fn.Return<Key | null, LmError> {
  const said = apiKey === null || apiKey === undefined ? "" : Redacted.value(apiKey).trim()
  const named = variableIn(said)
  if (named === undefined && said !== "" && said !== shownKey) return yield* checked(model, said, "api_key")
  const name = named ?? variable
  if (name === null) return null
  const found = yield* Config.Redacted(name).pipe(
    Config.option,
    Effect.orElseSucceed(() => Option.none<Redacted.Redacted>()),
  )
  const value = Option.match(found, { onNone: () => "", onSome: (secret) => Redacted.value(secret).trim() })
  if (value !== "") return yield* checked(model, value, name)
  return yield* new LmError({
    model,
    reason: "unauthorised",
    attempts: 0,
    message:
      named === undefined
        ? `${model}: no key: expected ${name} in the environment, or api_key: \${NAME} with the name of another variable`
        : `${model}: api_key: expected ${name} in the environment, found none`,
  })
})

/** Whether a config holds a key itself rather than a variable's name; `none` and the like, for servers of one's own, are none. */
export const isKeyItself = (apiKey: Redacted.Redacted | null): boolean => {
  const said = apiKey === null ? "" : Redacted.value(apiKey).trim()
  return said.length >= 8 && said !== shownKey && variableIn(said) === undefined
}

/** A header that can't be sent is told of with the header in it, so what can't stand in one never gets there. */
const checked = (model: string, value: string, from: string): Effect.Effect<Key, LmError> =>
  /^[\x21-\x7e]+$/.test(value)
    ? Effect.succeed({ secret: Redacted.make(value), from })
    : Effect.fail(
        new LmError({
          model,
          reason: "unauthorised",
          attempts: 0,
          message: `${model}: ${from}: expected a key of letters, digits and signs, found blanks or others between them`,
        }),
      )

/** Text of a server without the key, in case that it says the key back, and without what looks like one. */
export const withoutKey = (text: string, key: Key | null): string => {
  const looked = text.replace(/\bBearer\s+\S+/gi, `Bearer ${shownKey}`).replace(/\bsk-[\w*-]{8,}/g, shownKey)
  return key === null ? looked : looked.replaceAll(Redacted.value(key.secret), shownKey)
}
