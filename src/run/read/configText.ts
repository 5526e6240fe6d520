/** Reads keys from texts of `config.yaml`, fast enough for thousands of runs. `RunReader.ts` reads the files. */
import { isPlain } from "../../base/config/Config.ts"
import { parseYaml } from "../../base/config/yaml.ts"
import { dataAt } from "../find/Value.ts"

/** The number of parsed blocks that are kept: enough for a sweep, and little memory for ten thousand different runs. */
const mostBlocks = 5000

/**
 * Makes a reader of single keys for many similar configs. Only the block of a key (its top-level key with all lines below it)
 * is parsed, and equal blocks are parsed only once, because runs often differ only in their seed. Its two functions throw if
 * a text is not a YAML mapping.
 */
export const configReader = () => {
  const parsed = new Map<string, unknown>()
  const parseOnce = (text: string): unknown => {
    if (parsed.has(text)) return parsed.get(text)
    if (parsed.size >= mostBlocks) parsed.clear()
    const value = valueIn(text)
    parsed.set(text, value)
    return value
  }
  let last: { readonly text: string; readonly blocks: Blocks | undefined } | undefined
  const blocksOf = (text: string): Blocks | undefined => {
    // Callers read several keys of one text before the next text, so remembering one text is enough.
    if (last?.text !== text) last = { text, blocks: divided(text) }
    return last.blocks
  }
  return {
    /** Reads the value at a path of keys. */
    at: (text: string, path: ReadonlyArray<string>): unknown => {
      const blocks = blocksOf(text)
      if (blocks === undefined) return dataAt(parseConfig(text), path)
      const block = blocks.get(path[0])
      return block === undefined ? undefined : dataAt(parseOnce(block), path)
    },
    /** Reads a whole config. */
    tree: (text: string): unknown => {
      const blocks = blocksOf(text)
      return blocks === undefined ? parseConfig(text) : Object.assign({}, ...[...blocks.values()].map(parseOnce))
    },
  }
}

const valueIn = (text: string): unknown => {
  const document = parseYaml(text)
  if ("problem" in document) throw new Error(document.problem)
  return document.value
}

/** Parses a whole config. Throws if it is not a mapping of keys to values. */
const parseConfig = (text: string): unknown => {
  const value = valueIn(text)
  if (!isPlain(value)) throw new Error("expected keys and values")
  return value
}

/** Maps each top-level key to its block, the text of the key and of all lines below it. */
type Blocks = ReadonlyMap<string, string>

/** Divides a config into blocks; undefined if it lacks the form that this library writes, and must be parsed whole. */
const divided = (text: string): Blocks | undefined => {
  // `&` and `*` can mark an alias, by which one block refers to another.
  if (/[&*]/.test(text)) return undefined
  const blocks = new Map<string, string>()
  let key: string | undefined
  for (const line of text.split("\n")) {
    const next = /^([A-Za-z_]\w*):(?: |$)/.exec(line)?.[1]
    if (next !== undefined) {
      if (blocks.has(next)) return undefined
      key = next
      blocks.set(next, line)
    } else if (key !== undefined && (line === "" || line.startsWith(" "))) {
      blocks.set(key, `${blocks.get(key) ?? ""}\n${line}`)
    } else if (line !== "" && !line.startsWith("#")) return undefined
  }
  return blocks
}
