/** Declares the settings of a server of OpenEnv, which data sets and envs share. */
import * as Schema from "effect/Schema"
import { bounded, positiveBelow, withDefault } from "../../base/config/fields.ts"

const isAddress = (text: string): boolean => {
  const url = URL.parse(text)
  if (url === null || !/^(https?|wss?):$/.test(url.protocol)) return false
  return [url.username, url.password, url.search, url.hash].every((part) => part === "")
}

export const serverFields = {
  /** The address of the server, such as `http://127.0.0.1:8000`. */
  url: Schema.String.check(
    Schema.makeFilter(isAddress, {
      expected: "an address that begins with http or https, without a user name, a password, ? and #",
    }),
  ),
  /** The name of the environment variable with the bearer token for the server; null sends none. */
  tokenVariable: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The number of sessions at the same time. The server must allow as many; many servers allow only one. */
  sessions: withDefault(bounded("atOnce"), 1),
  /** The number of seconds after which a request without an answer fails. A server without a free session gets as long. */
  timeoutSeconds: withDefault(positiveBelow("seconds"), 60),
  /** The largest size of a message of the server. */
  maxMessageMb: withDefault(positiveBelow("megabytes"), 16),
}
const ServerSettings = Schema.Struct(serverFields)
export type ServerSettings = typeof ServerSettings.Type
