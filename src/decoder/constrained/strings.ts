/** Adds strings to networks: of any characters, or those that a pattern or a format allows. */
import type { Plain } from "../../base/config/plain.ts"
import type { Compiler } from "./Compiler.ts"
import { addText } from "./jsonParts.ts"
import { countedLength, type Lengths, lengthsOf } from "./lengths.ts"
import { formatError } from "./Network.ts"
import { regexOfFormat } from "./stringFormats.ts"

/** Adds the strings that fit a schema. */
export const addString = (compiler: Compiler, schema: Plain, from: number, to: number, path: string): void => {
  const { builder, shared, regex } = compiler
  const lengths = lengthsOf(schema, { least: "minLength", most: "maxLength" }, path)
  const { pattern, format } = schema
  if (pattern === undefined && format === undefined) {
    if (lengths.least === 0 && lengths.most === Infinity) return builder.call(from, shared.string, to)
    return addCounted(compiler, lengths, from, to)
  }
  if (pattern !== undefined && format !== undefined)
    throw formatError(`${path}.format`, "not supported beside pattern; leave one of them out")
  const limits = { least: lengths.least, most: lengths.most === Infinity ? Infinity : countedLength(lengths) }
  const end = builder.state()
  const text =
    pattern === undefined
      ? { source: regexOfFormat(format, `${path}.format`), path: `${path}.format`, search: false }
      : { source: pattern, path: `${path}.pattern`, search: true }
  regex.add({ ...text, limits }, addText(builder, from, '"'), end)
  builder.jump(addText(builder, end, '"'), to)
}

/** Adds strings whose number of characters has a limit. */
const addCounted = ({ builder, shared }: Compiler, lengths: Lengths, from: number, to: number): void => {
  const { least, most } = lengths
  // Without a way from one state to the other, no value fits.
  if (least > most) return
  const end = builder.state()
  builder.jump(addText(builder, end, '"'), to)
  let at = addText(builder, from, '"')
  const last = most === Infinity ? least : countedLength(lengths)
  for (let count = 0; count < last; count++) {
    if (count >= least) builder.jump(at, end)
    const next = builder.state()
    builder.call(at, shared.character, next)
    at = next
  }
  if (most === Infinity) builder.call(at, shared.character, at)
  builder.jump(at, end)
}
