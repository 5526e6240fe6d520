/** Lists the formats of strings, as regular expressions of texts that have the format. Not every such text is among them. */
import { formatError } from "./Network.ts"

const text = String.raw

const year = text`(?:000[1-9]|00[1-9]\d|0[1-9]\d\d|[1-9]\d{3})`
const leapYear = text`(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)`
const day = text`(?:0[1-9]|1\d|2[0-8])`
const date = [
  text`${year}-(?:(?:0[1-9]|1[0-2])-${day}|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)`,
  text`${leapYear}-02-29`,
].join("|")

const hour = text`(?:[01]\d|2[0-3])`
const time = text`${hour}:[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]${hour}:[0-5]\d)`

const label = (most: number): string => text`[A-Za-z0-9](?:[A-Za-z0-9-]{0,${most - 2}}[A-Za-z0-9])?`
// Eight labels with the points between them have at most 247 characters; 253 are allowed.
const hostname = text`${label(30)}(?:\.${label(30)}){0,7}`
const local = text`[A-Za-z0-9_%+-]{1,20}`
// At most 242 characters; 254 are allowed.
const email = text`${local}(?:\.${local}){0,2}@(?:${label(30)}\.){1,5}[A-Za-z]{2,24}`

const byte = text`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
const ipv4 = text`${byte}(?:\.${byte}){3}`

const group = "[0-9A-Fa-f]{1,4}"
const ipv6 = [
  `(?:${group}:){7}${group}`,
  `(?:${group}:){1,7}:`,
  ...[1, 2, 3, 4, 5, 6].map((after) => `(?:${group}:){1,${7 - after}}(?::${group}){1,${after}}`),
  `:(?::${group}){1,7}`,
  "::",
].join("|")

const hex = "[0-9A-Fa-f]"
const character = text`(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%${hex}{2})`
const uri = text`[A-Za-z][A-Za-z0-9+.-]{0,15}://(?:${hostname})(?::[1-9]\d{0,3})?(?:/${character}*)*(?:\?(?:${character}|[/?])*)?(?:#(?:${character}|[/?])*)?`

const formats: Readonly<Record<string, string>> = {
  date,
  time,
  "date-time": `(?:${date})T${time}`,
  uuid: `${hex}{8}-${hex}{4}-${hex}{4}-${hex}{4}-${hex}{12}`,
  email,
  hostname,
  ipv4,
  ipv6,
  uri,
}

/** Returns the regular expression of a format. Throws an `EngineError` if there is none. */
export const regexOfFormat = (format: unknown, path: string): string => {
  if (typeof format === "string" && Object.hasOwn(formats, format)) return formats[format]
  throw formatError(path, `expected one of ${Object.keys(formats).join(", ")}; write others as a pattern`)
}
