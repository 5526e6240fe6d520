/** Allows keys in other spellings than the one that editors offer: `learningRate` and `lambda_` are read as well. */
import { camelCase, isPlain, type Plain } from "../src/config/Config.ts"

/**
 * Writes a pattern of the keys that `Config.camelCase` reads as this one: words joined by underscores or capitals,
 * underscores at the end.
 */
const readAs = (key: string): string =>
  `${key.replace(/_([a-z0-9])/g, (_, first: string) => `(?:_+${first}|${first.toUpperCase()})`)}_*`

/**
 * Returns a JSON Schema whose closed objects also take their keys in other spellings. Editors don't offer these, and
 * leave the check of their values to the command.
 */
export const withSpellings = (document: Plain): Plain => {
  const visited = visit(document)
  return isPlain(visited) ? visited : {}
}

const visit = (tree: unknown): unknown => {
  if (Array.isArray(tree)) return tree.map(visit)
  if (!isPlain(tree)) return tree
  const entries = Object.entries(tree).map(([key, item]) => [key, key === "default" ? item : visit(item)])
  const visited = Object.fromEntries(entries)
  if (!isPlain(tree.properties) || tree.additionalProperties !== false) return visited
  // A key that begins with an underscore has only one spelling.
  const keys = Object.keys(tree.properties).filter((key) => !key.startsWith("_"))
  if (keys.length === 0) return visited
  const pattern = `^(?!(?:${keys.join("|")})$)(?:${keys.map(readAs).join("|")})$`
  return { ...visited, patternProperties: { [pattern]: true }, ...required(tree.required) }
}

/** Allows a required key of several words in either spelling. */
const required = (names: unknown): Plain => {
  const keys = (Array.isArray(names) ? names : []).filter((key) => typeof key === "string")
  const several = keys.filter((key) => camelCase(key) !== key)
  if (several.length === 0) return {}
  return {
    required: keys.filter((key) => !several.includes(key)),
    allOf: several.map((key) => ({ anyOf: [key, camelCase(key)].map(having) })),
  }
}

/** Writes a schema that requires a key. Strict validators require that the key is also listed in `properties`. */
const having = (key: string): Plain => ({ properties: { [key]: {} }, required: [key] })
