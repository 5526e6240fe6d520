/** Declares what the parts of the compiler of JSON Schemas get from it. */
import type { SharedNetworks } from "./jsonParts.ts"
import type { NetworkBuilder } from "./Network.ts"
import type { RegexWriter } from "./regex/RegexWriter.ts"

export interface Compiler {
  readonly builder: NetworkBuilder
  readonly shared: SharedNetworks
  /** Adds the characters of strings with a `pattern` or a `format`. */
  readonly regex: RegexWriter
  /** The whole schema, into which references lead. */
  readonly root: unknown
  /** Adds the values that fit a schema, which has read at least one byte before. */
  readonly value: (schema: unknown, from: number, to: number, path: string) => void
  /** Makes a network of the values that fit a schema. */
  readonly network: (schema: unknown, path: string) => number
}
