/** Compiles formats of texts that are no JSON: texts that match a regular expression, and a list of texts. */
import { addTexts } from "./jsonParts.ts"
import { formatError, NetworkBuilder, type Networks } from "./Network.ts"
import { RegexWriter } from "./regex/RegexWriter.ts"
import type { TextFormat } from "./TextFormat.ts"

/** The largest number of texts to choose from. */
const mostChoices = 10_000

/** Compiles a format. Throws an `EngineError` if it cannot be used. */
export const compileTextFormat = (format: TextFormat): Networks => {
  const builder = new NetworkBuilder(format.type)
  const { first, last } = builder.network()
  if (format.type === "regex") {
    const regex = new RegexWriter(builder, { quoted: false })
    regex.add({ source: format.regex, path: "regex", search: false }, first, last)
  } else {
    const { length } = format.choices
    if (length > mostChoices) throw formatError("choice", `expected at most ${mostChoices} texts, found ${length}`)
    addTexts(builder, first, format.choices, last)
  }
  const networks = builder.finish()
  if (networks.needs[first] === Infinity) throw formatError(format.type, "no text fits")
  return networks
}
