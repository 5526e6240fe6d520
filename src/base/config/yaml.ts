/**
 * Parses YAML, for all modules. A YAML text can exhaust memory or time by its size, or by aliases (`*name`, which
 * stands for a value elsewhere in the text). So a document must be a tree, and no larger than a config can be. This
 * module reads no files: callers pass the text.
 */
import { Effect } from "effect"
import { isMap, isNode, isPair, isScalar, isSeq, Lexer, LineCounter, type Node, parseDocument, stringify } from "yaml"
import { camelCase, ConfigError, convertPath } from "./Config.ts"
import { messageOf } from "../text/text.ts"

/** A YAML text after parsing: its value, and functions that find the lines of its keys. */
export interface YamlDocument {
  /** The value as plain data. */
  readonly value: unknown
  /** Returns the line of the value at a path. */
  readonly lineOf: (path: ReadonlyArray<string>) => number
  /** Returns the line on which a key is written; undefined for an item of a list. */
  readonly keyLineOf: (path: ReadonlyArray<string>) => number | undefined
}

interface YamlProblem {
  /** The line of the problem; undefined if no single line is wrong. */
  readonly line?: number
  readonly problem: string
}

/** The largest number of values in a document; a value behind an alias counts each time that the alias occurs. */
const mostValues = 100_000
/** The largest depth of nested sections. */
const deepest = 100
/** The largest number of anchors and aliases. The library looks for an alias's anchor among all of them. */
const mostAliases = 10_000
/** The largest number of characters of the paths of all values, which are kept to find the lines of keys. */
const mostPathCharacters = 2 ** 24

/**
 * The options of the library. YAML 1.1 and the tag `!!merge` have merge keys (`<<: [*a, *b]`), which copy sections into
 * sections while the document is converted: a few levels of them take hours, before any value could be counted.
 * The library's own check for repeated keys compares each key with all others, which takes minutes for a large section.
 */
const options = {
  version: "1.2",
  schema: "core",
  merge: false,
  resolveKnownTags: false,
  uniqueKeys: false,
  logLevel: "error",
} as const

/** Parses a YAML text into plain data with the places of its keys, or returns the problem. Never throws. */
export const parseYaml = (text: string): YamlDocument | YamlProblem => {
  const excess = excessOf(text)
  if (excess !== undefined) return { problem: excess }
  const lines = new LineCounter()
  try {
    const document = parseDocument(text, { ...options, lineCounter: lines })
    if (document.directives?.yaml.version === "1.1") return { problem: oldVersion }
    const [error] = document.errors
    if (error !== undefined) {
      if (error.message.startsWith(overflow)) return { problem: tooDeep }
      const line = error.linePos?.[0].line
      const problem =
        error.code === "MULTIPLE_DOCS"
          ? "expected one YAML document, found a second one; put it into a file of its own"
          : error.message.split("\n")[0].replace(/ at line \d+, column \d+:?$/, "")
      return line === undefined ? { problem } : { line, problem }
    }
    const wrong = wrongKey(document.contents)
    if (wrong !== undefined) {
      const line = wrong.range ? lines.linePos(wrong.range[0]).line : undefined
      const problem = isScalar(wrong) ? "Map keys must be unique" : "expected a text as a key, found a list or section"
      return line === undefined ? { problem } : { line, problem }
    }
    // The library's own limit counts only aliases, and throws.
    const value: unknown = document.toJS({ maxAliasCount: -1 })
    const problem = problemOf(value)
    if (problem !== undefined) return { problem }
    const lineAt = (node: unknown): number | undefined =>
      isNode(node) && node.range ? lines.linePos(node.range[0]).line : undefined
    return { value, ...linesOf(document.contents, lineAt) }
  } catch (error) {
    return { problem: error instanceof RangeError ? tooDeep : messageOf(error).split("; ")[0] }
  }
}

/**
 * Returns the first key that occurs twice in its section, or that is a list or a section; undefined if there is none.
 * The library would write the latter as texts, and each key that contains others once more.
 */
const wrongKey = (node: unknown): Node | undefined => {
  if (!isMap(node) && !isSeq(node)) return undefined
  const keys = new Set<unknown>()
  for (const item of node.items) {
    const key = isPair(item) ? item.key : undefined
    if (isMap(key) || isSeq(key)) return key
    if (isScalar(key) && keys.has(key.value)) return key
    if (isScalar(key)) keys.add(key.value)
    const inside = wrongKey(isPair(item) ? item.value : item)
    if (inside !== undefined) return inside
  }
  return undefined
}

/** Maps each key of a parsed file to its place: `agent.historyK` is at `conf.yaml:7`. */
export const keyPlaces = (
  { value, keyLineOf }: Pick<YamlDocument, "value" | "keyLineOf">,
  file: string,
): ReadonlyMap<string, string> => {
  const places = new Map<string, string>()
  const walk = (tree: unknown, path: ReadonlyArray<string>): void => {
    // `items` holds the user's own tasks, not settings.
    const isData = path.at(-1) === "items"
    if (isData || typeof tree !== "object" || tree === null) return
    for (const [key, item] of Object.entries(tree)) {
      const line = keyLineOf([...path, key])
      if (line !== undefined) places.set(convertPath([...path, key], camelCase).join("."), `${file}:${line}`)
      walk(item, [...path, key])
    }
  }
  walk(value, [])
  return places
}

/**
 * Returns a config in the form that a saved `config.yaml` has, so that the two can be compared. Keys whose value is
 * undefined are dropped.
 */
export const asSaved = (value: unknown): unknown => {
  const document = parseYaml(stringify(value))
  return "value" in document ? document.value : value
}

/** Returns functions that find a value's and a key's line. The first call visits the whole document. */
const linesOf = (
  root: unknown,
  lineAt: (node: unknown) => number | undefined,
): Pick<YamlDocument, "lineOf" | "keyLineOf"> => {
  let lines: { readonly keys: Map<string, number>; readonly values: Map<string, number> } | undefined
  const name = (path: ReadonlyArray<string>): string => path.join("\0")
  const findLines = () => {
    const [keys, values] = [new Map<string, number>(), new Map<string, number>()]
    const visit = (node: unknown, path: ReadonlyArray<string>): void => {
      const line = lineAt(node)
      if (line !== undefined) values.set(name(path), line)
      if (isSeq(node)) for (const [index, item] of node.items.entries()) visit(item, [...path, String(index)])
      if (!isMap(node)) return
      for (const { key, value } of node.items) {
        const below = [...path, isScalar(key) ? String(key.value) : String(key)]
        const keyLine = lineAt(key)
        if (keyLine !== undefined) keys.set(name(below), keyLine)
        visit(value, below)
      }
    }
    visit(root, [])
    return { keys, values }
  }
  return {
    lineOf: (path) => {
      const { values } = (lines ??= findLines())
      // A value behind an alias has no line of its own at this path, so look for the nearest key around it.
      for (let length = path.length; length > 0; length--) {
        const line = values.get(name(path.slice(0, length)))
        if (line !== undefined) return line
      }
      return values.get("") ?? 1
    },
    keyLineOf: (path) => (lines ??= findLines()).keys.get(name(path)),
  }
}

/** Parses a YAML text as `parseYaml` does, but fails with a `ConfigError` that names the source. */
export const readYamlText = (text: string, source: string): Effect.Effect<YamlDocument, ConfigError> =>
  Effect.suspend(() => {
    const document = parseYaml(text)
    if (!("problem" in document)) return Effect.succeed(document)
    const place = document.line === undefined ? source : `${source}:${document.line}`
    return Effect.fail(ConfigError.at({ source: place }, "", document.problem))
  })

const tooMany = `expected at most ${mostValues} keys and values, found more; a data set belongs into a .jsonl or .csv file`
const tooManyAliases = `expected at most ${mostAliases} anchors and aliases, found more; write the values out`
const tooLongPaths = "expected shorter keys: the paths of all values together are too long"
const oldVersion = "expected YAML 1.2, found the directive %YAML 1.1; remove it, and write merge keys (<<) out"
const tooDeep = `expected at most ${deepest} sections inside each other, found more`

/** V8 throws an error with this message when nested lists exhaust the stack. */
const overflow = "Maximum call stack size exceeded"

/** Returns the problem of a text with too many values or levels, without parsing it, which is slow; or undefined. */
const excessOf = (text: string): string | undefined => {
  // A text this short needs no check: it cannot have more values or brackets than characters.
  if (text.length <= deepest) return undefined
  const counts = new Map<string, number>()
  let depth = 0
  let aliases = 0
  for (const token of new Lexer().lex(text)) {
    if (token === "[" || token === "{") depth++
    else if (token === "]" || token === "}") depth--
    else if (counted.has(token)) counts.set(token, (counts.get(token) ?? 0) + 1)
    else if (token[0] === "&" || token[0] === "*") aliases++
    if (depth > deepest) return tooDeep
    if (aliases > mostAliases) return tooManyAliases
    if ((counts.get(token) ?? 0) > mostValues) return tooMany
  }
  return undefined
}

/** The tokens that count as values. The lexer puts U+001F before a text or number; `-`, `:` and `,` are YAML's own. */
const counted = new Set(["\u001f", "-", ":", ","])

/** Returns why a value cannot be a config (too many values, too deep, contains itself); undefined if it can be. */
const problemOf = (root: unknown): string | undefined => {
  let count = 0
  let characters = 0
  let length = 0
  const path: Array<string> = []
  const above: Array<unknown> = []
  const visit = (value: unknown): string | undefined => {
    if (++count > mostValues) return `${tooMany} (an alias counts as all that it stands for)`
    if (typeof value !== "object" || value === null) return undefined
    if (above.includes(value)) return `${path.join(".")}: expected a value, found an alias of what it is a part of`
    if (above.length >= deepest) return tooDeep
    above.push(value)
    for (const [key, item] of Object.entries(value)) {
      path.push(key)
      length += key.length + 1
      characters += length
      if (characters > mostPathCharacters) return tooLongPaths
      const problem = visit(item)
      if (problem !== undefined) return problem
      length -= key.length + 1
      path.pop()
    }
    above.pop()
    return undefined
  }
  return visit(root)
}
