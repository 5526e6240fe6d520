/** Finds the texts that a Schema allows for a setting, for messages about a value that is none of them. */
import * as SchemaAST from "effect/SchemaAST"
import { closest } from "../text/closest.ts"

/**
 * Returns all members of a union, including those of unions inside it. Any other Schema counts as its own only member.
 */
export const membersOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(membersOf)
  return SchemaAST.isSuspend(ast) ? membersOf(ast.thunk()) : [ast]
}

/** Returns the Schemas of the value at a path: several if the path passes through a union. */
const schemasAt = (ast: SchemaAST.AST, path: ReadonlyArray<string>): ReadonlyArray<SchemaAST.AST> => {
  const [key, ...rest] = path
  const members = membersOf(ast)
  if (key === undefined) return members
  return members.flatMap((member) =>
    SchemaAST.isObjects(member)
      ? member.propertySignatures.filter(({ name }) => name === key).flatMap(({ type }) => schemasAt(type, rest))
      : [],
  )
}

/** Returns the texts that are allowed at a path; empty if none is named. */
export const textsAt = (ast: SchemaAST.AST, path: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(
    schemasAt(ast, path).flatMap((one) =>
      SchemaAST.isLiteral(one) && typeof one.literal === "string" ? [one.literal] : [],
    ),
  ),
]

/** Returns the key whose text tells the members of a union apart, such as `type`; undefined if there is none. */
export const tagAt = (ast: SchemaAST.AST, path: ReadonlyArray<string>): string | undefined => {
  const [first = [], ...others] = schemasAt(ast, path).flatMap((one) =>
    SchemaAST.isObjects(one)
      ? [one.propertySignatures.flatMap(({ name }) => (textsAt(one, [String(name)]).length > 0 ? [String(name)] : []))]
      : [],
  )
  return others.length === 0 ? undefined : first.find((key) => others.every((keys) => keys.includes(key)))
}

/**
 * Describes which texts are allowed for a setting, and which of them was probably meant. `found` is the value as the
 * message shows it.
 */
export const choiceProblem = (texts: ReadonlyArray<string>, value: unknown, found: string): string => {
  const near = typeof value === "string" ? closest(value, texts) : undefined
  const hint = near === undefined ? "" : `; did you mean "${near}"?`
  return `expected ${texts.map((text) => `"${text}"`).join(" | ")}, found ${found}${hint}`
}
