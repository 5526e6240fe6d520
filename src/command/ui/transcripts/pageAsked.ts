/** Decodes the query of a request for a part (a page) of the list of episodes, for the server. */
import { Option, Schema } from "effect"
import { orders } from "./Episode.ts"
import type { PageAsked } from "./transcripts.ts"

/** The largest number of episodes on a page. */
const mostOnAPage = 1000

/** Makes a Schema that decodes a text to an integer from `least` to `most`. */
const whole = (least: number, most: number) =>
  Schema.FiniteFromString.check(Schema.isInt(), Schema.isBetween({ minimum: least, maximum: most }))

const Query = Schema.Struct({
  text: Schema.optionalKey(Schema.String),
  phase: Schema.optionalKey(Schema.String),
  least: Schema.optionalKey(Schema.FiniteFromString),
  most: Schema.optionalKey(Schema.FiniteFromString),
  leastAdvantage: Schema.optionalKey(Schema.FiniteFromString),
  mostAdvantage: Schema.optionalKey(Schema.FiniteFromString),
  failed: Schema.optionalKey(Schema.Literal("1")),
  order: Schema.optionalKey(Schema.Literals(orders)),
  from: Schema.optionalKey(whole(0, Number.MAX_SAFE_INTEGER)),
  count: Schema.optionalKey(whole(1, mostOnAPage)),
  at: Schema.optionalKey(Schema.String),
})

const decode = Schema.decodeUnknownOption(Query)

/** The request for all episodes of a run. */
export const everything: PageAsked = {
  text: "",
  phase: "",
  least: null,
  most: null,
  leastAdvantage: null,
  mostAdvantage: null,
  failed: false,
  order: "oldest",
  from: 0,
  count: Infinity,
  at: null,
}

/** Reads the query of an address; undefined if it is invalid. Missing and empty values get their defaults. */
export const pageAsked = (query: URLSearchParams): PageAsked | undefined => {
  const asked = Option.getOrUndefined(decode(Object.fromEntries([...query].filter(([, value]) => value.trim() !== ""))))
  return asked && { ...everything, count: 100, ...asked, failed: asked.failed !== undefined }
}
