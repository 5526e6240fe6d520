/** Settings with secrets: API keys, and addresses that may hold a password. Files contain their shown form. */
import { Redacted, Schema, SchemaGetter } from "effect"
import { shownSecret, variableIn } from "./Config.ts"

/** The text that a run's files contain instead of an API key. As the value of `api_key`, it means that there is no key. */
export const shownKey = shownSecret

/** The Schema of an API key. Files contain only the name of its environment variable. */
export const Secret = Schema.String.pipe(
  Schema.decodeTo(Schema.Redacted(Schema.String), {
    decode: SchemaGetter.transform((key: string) => Redacted.make(key)),
    // Configs are saved in files, but keys must not be. `${NAME}` is saved, because a repeated run needs the name of the
    // variable.
    encode: SchemaGetter.transform((key: Redacted.Redacted) =>
      variableIn(Redacted.value(key)) === undefined ? shownKey : Redacted.value(key),
    ),
  }),
)

/** Removes the user name and the password from an address: all text between `https://` and the last `@`. */
export const withoutUser = (url: string): string => url.replace(/^([a-z][a-z\d+.-]*:(?=[\\/]))?([\\/]*).*@/is, "$1$2")

/**
 * Removes the user name and the password from an address, and the keys from its query, so that the address can be saved in a
 * file.
 */
const shownUrl = (address: string): string => {
  const url = URL.parse(address)
  const hasNoUser = url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === ""
  return (hasNoUser ? address : withoutUser(address)).replace(/([?&][^?=&#]*=)[^&#]*/g, (whole, name: string) =>
    /key|token|secret|sig|pass|code|auth/i.test(name) ? `${name}${shownKey}` : whole,
  )
}

/** The Schema of an address whose saved form has no password and no keys. */
export const Address = Schema.String.pipe(
  Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transform((address: string) => address),
    encode: SchemaGetter.transform(shownUrl),
  }),
)
