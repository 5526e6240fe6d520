/** Finds the keys that a Schema allows in the sections of a config, for `ConfigError` and its suggestions. */
import type { Schema } from "effect"
import * as SchemaAST from "effect/SchemaAST"
import { convertPath } from "./plain.ts"

/** Returns the top-level keys that the Schema of a config allows, in camelCase. */
export const keysOf = (schema: Schema.Top): ReadonlyArray<string> => knownKeys(SchemaAST.toEncoded(schema.ast), [])

/** Returns the properties of a struct's Schema, or those of all members of a union. */
const propertiesOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.PropertySignature> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(propertiesOf)
  if (SchemaAST.isSuspend(ast)) return propertiesOf(ast.thunk())
  return SchemaAST.isObjects(ast) ? ast.propertySignatures : []
}

/** Returns the Schemas of the values whose keys the user chooses, such as the names of runs. */
const entriesOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(entriesOf)
  if (SchemaAST.isSuspend(ast)) return entriesOf(ast.thunk())
  return SchemaAST.isObjects(ast) ? ast.indexSignatures.map(({ type }) => type) : []
}

/** The text that hints show for a key that the user chooses. */
const anyName = "NAME"

/** Returns the keys that a Schema allows in the section at a path. */
export const knownKeys = (ast: SchemaAST.AST, path: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [key, ...rest] = path
  const properties = propertiesOf(ast)
  if (key === undefined) return properties.map(({ name }) => String(name))
  return properties.filter(({ name }) => name === key).flatMap(({ type }) => knownKeys(type, rest))
}

/** Returns a hint with the nearest section that allows a key: `it belongs below agent.lm_config`; undefined if none. */
export const sectionsOf = (
  whole: Schema.Top,
  key: string,
  { full, spell }: { readonly full: ReadonlyArray<string>; readonly spell: (key: string) => string },
): string | undefined => {
  // The keys of a section can depend on its type, so a section may have this key only for another type.
  const own = full.slice(0, -1).join(".")
  const sections = pathsTo(SchemaAST.toEncoded(whole.ast), key, []).filter((section) => section.join(".") !== own)
  const shared = (section: ReadonlyArray<string>): number => {
    const apart = section.findIndex((part, index) => part !== full[index])
    return apart < 0 ? section.length : apart
  }
  // The distance between two sections: how many sections to leave plus how many to enter.
  const distance = (section: ReadonlyArray<string>): number => full.length + section.length - 2 * shared(section)
  const shortest = Math.min(...sections.map(distance))
  const nearest = sections.filter((section) => distance(section) === shortest)
  const names = [
    ...new Set(
      nearest.map((section) => convertPath(section, (part) => (part === anyName ? part : spell(part))).join(".")),
    ),
  ]
  if (names.length === 0) return undefined
  return names.includes("") ? "it belongs at the top, in no section" : `it belongs below ${names.join(" or ")}`
}

/** The search for sections ends at this depth, since a Schema may be recursive. No config has more levels. */
const deepest = 4

/** Returns the paths of all sections that allow a key. `path` is the path of the section that `ast` describes. */
const pathsTo = (
  ast: SchemaAST.AST,
  key: string,
  path: ReadonlyArray<string>,
): ReadonlyArray<ReadonlyArray<string>> => {
  if (path.length > deepest) return []
  return [
    ...propertiesOf(ast).flatMap(({ name, type }) => [
      ...(name === key ? [path] : []),
      ...pathsTo(type, key, [...path, String(name)]),
    ]),
    ...entriesOf(ast).flatMap((type) => pathsTo(type, key, [...path, anyName])),
  ]
}
