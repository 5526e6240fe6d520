import { Effect } from "effect"
import { isMap, isNode, isScalar, isSeq, Lexer, LineCounter, parseDocument, stringify } from "yaml"
import { ConfigError } from "./Config.ts"
import { messageOf } from "./text.ts"

/**
 * The one reader of YAML. A text may be made to take all memory or never to end, by aliases or by its mere size; so
 * what is read is of one document, a tree, and no larger than a config can be.
 */
export interface YamlDocument {
  /** Plain data. */
  readonly value: unknown
  /** The line of the value at a path. */
  readonly lineOf: (path: ReadonlyArray<string>) => number
  /** The line where a key itself is written; undefined for an item of a list. */
  readonly keyLineOf: (path: ReadonlyArray<string>) => number | undefined
}

export interface YamlProblem {
  /** The line where it is, if it is at one. */
  readonly line?: number
  readonly problem: string
}

/** Aliases are counted wherever they stand. */
const mostValues = 100_000
const deepest = 100

/** A YAML text as plain data with the places of its keys; or what is wrong with it. Never throws. */
export const parseYaml = (text: string): YamlDocument | YamlProblem => {
  const excess = excessOf(text)
  if (excess !== undefined) return { problem: excess }
  const lines = new LineCounter()
  try {
    const document = parseDocument(text, { lineCounter: lines, logLevel: "error" })
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
    // Its own limit counts the aliases alone, and throws.
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

/** A value as it is read again after it was saved: without what YAML doesn't know, such as keys that are undefined. */
export const asSaved = (value: unknown): unknown => {
  const document = parseYaml(stringify(value))
  return "value" in document ? document.value : value
}

/** Looked for when they are first asked for, all at once. */
const linesOf = (
  root: unknown,
  lineAt: (node: unknown) => number | undefined,
): Pick<YamlDocument, "lineOf" | "keyLineOf"> => {
  let found: { readonly keys: Map<string, number>; readonly values: Map<string, number> } | undefined
  const name = (path: ReadonlyArray<string>): string => path.join("\0")
  const look = () => {
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
      const { values } = (found ??= look())
      // What an alias stands for has its lines elsewhere.
      for (let length = path.length; length > 0; length--) {
        const line = values.get(name(path.slice(0, length)))
        if (line !== undefined) return line
      }
      return values.get("") ?? 1
    },
    keyLineOf: (path) => (found ??= look()).keys.get(name(path)),
  }
}

/** The same for a text that somebody gave, who is named in the error. */
export const readYamlText = (text: string, source: string): Effect.Effect<YamlDocument, ConfigError> =>
  Effect.suspend(() => {
    const document = parseYaml(text)
    if (!("problem" in document)) return Effect.succeed(document)
    const place = document.line === undefined ? source : `${source}:${document.line}`
    return Effect.fail(ConfigError.at({ source: place }, "", document.problem))
  })

const tooMany = `expected at most ${mostValues} keys and values, found more; a data set belongs into a .jsonl or .csv file`
const tooDeep = `expected at most ${deepest} sections inside each other, found more`

/** What V8 says where lists in lists use up the stack. */
const overflow = "Maximum call stack size exceeded"

/** What a text has more of than a config can, found before it is parsed, which takes much longer. */
const excessOf = (text: string): string | undefined => {
  // A text has no more values or brackets than characters.
  if (text.length <= deepest) return undefined
  const counts = new Map<string, number>()
  let depth = 0
  for (const token of new Lexer().lex(text)) {
    if (token === "[" || token === "{") depth++
    else if (token === "]" || token === "}") depth--
    else if (counted.has(token)) counts.set(token, (counts.get(token) ?? 0) + 1)
    if (depth > deepest) return tooDeep
    if ((counts.get(token) ?? 0) > mostValues) return tooMany
  }
  return undefined
}

/** What stands before a scalar, an item of a list, a value of a key, and between items. */
const counted = new Set(["\u001f", "-", ":", ","])

/** Aliases make a graph of a text; a config is a tree. */
const problemOf = (root: unknown): string | undefined => {
  let count = 0
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
      const problem = visit(item)
      if (problem !== undefined) return problem
      path.pop()
    }
    above.pop()
    return undefined
  }
  return visit(root)
}
