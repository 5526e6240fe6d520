/** Makes JSON Schemas of configs accept all spellings that the library reads, such as `learningRate`. */
import { camelCase, isPlain, type Plain } from "../src/base/config/Config.ts"

/** Returns a regular expression for all spellings of a key: those that `Config.camelCase` converts to the same text. */
const spellingsOf = (key: string): string =>
  `${key.replace(/_([a-z0-9])/g, (_, first: string) => `(?:_+${first}|${first.toUpperCase()})`)}_*`

/** Returns a JSON Schema that also allows other spellings of its keys. The value of a key spelled so is not checked. */
export const withSpellings = (document: Plain): Plain => {
  const visited = visit(document)
  return isPlain(visited) ? visited : {}
}

/** Returns a part of a JSON Schema with other spellings allowed in all its closed objects. */
const visit = (tree: unknown): unknown => {
  if (Array.isArray(tree)) return tree.map(visit)
  if (!isPlain(tree)) return tree
  const entries = Object.entries(tree).map(([key, item]) => [key, key === "default" ? item : visit(item)])
  const visited = Object.fromEntries(entries)
  if (!isPlain(tree.properties) || tree.additionalProperties !== false) return visited
  // A key that begins with an underscore has only one spelling.
  const keys = Object.keys(tree.properties).filter((key) => !key.startsWith("_"))
  if (keys.length === 0) return visited
  // The keys themselves are excluded, because `properties` checks them.
  const pattern = `^(?!(?:${keys.join("|")})$)(?:${keys.map(spellingsOf).join("|")})$`
  return { ...visited, patternProperties: { [pattern]: true }, ...required(tree.required) }
}

/** Returns the requirements of a schema, in which a required key of several words may be in snake_case or camelCase. */
const required = (names: unknown): Plain => {
  const keys = (Array.isArray(names) ? names : []).filter((key) => typeof key === "string")
  const several = keys.filter((key) => camelCase(key) !== key)
  if (several.length === 0) return {}
  return {
    required: keys.filter((key) => !several.includes(key)),
    allOf: several.map((key) => ({ anyOf: [key, camelCase(key)].map(having) })),
  }
}

/** Returns a schema that only requires a key. Strict validators want a required key to be in `properties`, too. */
const having = (key: string): Plain => ({ properties: { [key]: {} }, required: [key] })
