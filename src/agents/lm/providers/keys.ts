/**
 * Finds the API keys of servers: in the config, where `${NAME}` names an environment variable, otherwise in the server's
 * default variable, e.g. `OPENAI_API_KEY`. A key never appears in a message, a log or a file.
 */
import { Config, Effect, Redacted } from "effect"
import { variableIn } from "../../../base/config/Config.ts"
import { shownKey } from "../../../base/config/secretFields.ts"
import { type LmError, lmError } from "../LmError.ts"

export interface ApiKey {
  readonly secret: Redacted.Redacted
  /** The variable or setting from which the key was read, for error messages. */
  readonly from: string
}

/**
 * Finds the key for a server. A key in the config is used as it is; if the config's `apiKey` is `${NAME}`, the key is the
 * value of the environment variable NAME; without `apiKey`, it is the value of `usualVariable`. Returns null if there is
 * neither `apiKey` nor `usualVariable`, because the server needs no key. Fails if the environment variable is not set.
 */
export const keyOf = Effect.fnUntraced(function* (
  model: string,
  apiKey: Redacted.Redacted | null | undefined,
  usualVariable: string | null,
) {
  const setting = apiKey === null || apiKey === undefined ? "" : Redacted.value(apiKey).trim()
  const configVariable = variableIn(setting)
  // A saved config has `shownKey` instead of the key, so the key must come from the environment.
  if (configVariable === undefined && setting !== "" && setting !== shownKey)
    return yield* checked(model, setting, "api_key")
  const name = configVariable ?? usualVariable
  if (name === null) return null
  const value = yield* Effect.orElseSucceed(Config.String(name), () => "")
  if (value.trim() !== "") return yield* checked(model, value.trim(), name)
  const problem =
    configVariable === undefined
      ? `no key; set the environment variable ${name}, or api_key: \${NAME} to use another variable`
      : `api_key: the environment variable ${name} is not set`
  return yield* lmError(model, "unauthorised", problem)
})

/**
 * Tells whether a config has the key itself, not the name of a variable. Short values such as `none` do not count as keys.
 */
export const isKeyItself = (apiKey: Redacted.Redacted | null): boolean => {
  const setting = apiKey === null ? "" : Redacted.value(apiKey).trim()
  return setting.length >= 8 && setting !== shownKey && variableIn(setting) === undefined
}

/** Fails if a key is not a valid header value, because the HTTP client's own error message would show the key. */
const checked = (model: string, value: string, from: string): Effect.Effect<ApiKey, LmError> =>
  /^[\x21-\x7e]+$/.test(value)
    ? Effect.succeed({ secret: Redacted.make(value), from })
    : Effect.fail(
        lmError(
          model,
          "unauthorised",
          `${from}: expected a key of visible ASCII characters, found whitespace or others in it`,
        ),
      )

/**
 * Replaces these secrets, and everything that looks like a key, by `<redacted>` in a server's text, which may quote the
 * request.
 */
export const withoutSecrets = (text: string, secrets: ReadonlyArray<string>): string =>
  secrets
    .filter((secret) => secret !== "")
    // Longer secrets first: a secret may be a part of a longer one.
    .sort((left, right) => right.length - left.length)
    .reduce((safe, secret) => safe.replaceAll(secret, shownKey), text)
    .replace(/\bBearer\s+\S+/gi, `Bearer ${shownKey}`)
    .replace(/\bsk-[\w*-]{8,}/g, shownKey)

/** Replaces the key, and everything that looks like a key, by `<redacted>` in a server's text. */
export const withoutKey = (text: string, key: ApiKey | null): string =>
  withoutSecrets(text, key === null ? [] : [Redacted.value(key.secret)])
