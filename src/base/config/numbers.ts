/**
 * Reads numbers with underscores between their digits, such as `50_000`. YAML reads them as texts, so this file
 * converts them wherever a config expects a number, whether they were written in a file, on the command line or in
 * code. It only computes.
 */
import * as SchemaAST from "effect/SchemaAST"
import { membersOf } from "./choices.ts"
import { isPlain } from "./plain.ts"

/** Removes the underscores from a number in words; returns any other text unchanged. */
export const withoutUnderscores = (text: string): string =>
  /^[-+]?\d+(_\d+)*(\.\d+(_\d+)*)?(e[-+]?\d+)?$/i.test(text) ? text.replaceAll("_", "") : text

const isText = (ast: SchemaAST.AST): boolean => SchemaAST.isString(ast) || SchemaAST.isTemplateLiteral(ast)

const numberIn = (members: ReadonlyArray<SchemaAST.AST>, text: string): unknown => {
  const plain = withoutUnderscores(text)
  return plain !== text && members.some(SchemaAST.isNumber) && !members.some(isText) ? Number(plain) : text
}

/**
 * Returns a config in which texts such as `50_000` are numbers wherever the Schema allows a number and no text.
 * `schemas` describe the config as people write it (`SchemaAST.toEncoded`).
 */
export const withNumbers = (schemas: ReadonlyArray<SchemaAST.AST>, value: unknown): unknown => {
  if (typeof value !== "string" && !Array.isArray(value) && !isPlain(value)) return value
  const members = schemas.flatMap(membersOf)
  if (typeof value === "string") return numberIn(members, value)
  if (Array.isArray(value)) {
    const lists = members.filter(SchemaAST.isArrays)
    const items = value.map((item: unknown, at) =>
      withNumbers(
        lists.flatMap(({ elements, rest }) => (at < elements.length ? [elements[at]] : rest.slice(0, 1))),
        item,
      ),
    )
    return items.every((item, at) => item === value[at]) ? value : items
  }
  const objects = members.filter(SchemaAST.isObjects)
  const changed = Object.entries(value).flatMap(([key, item]) => {
    const types = objects.flatMap(({ propertySignatures, indexSignatures }) => {
      const own = propertySignatures.filter(({ name }) => name === key)
      return own.length > 0 ? own.map(({ type }) => type) : indexSignatures.map(({ type }) => type)
    })
    const read = withNumbers(types, item)
    return read === item ? [] : [[key, read] as const]
  })
  return changed.length === 0 ? value : { ...value, ...Object.fromEntries(changed) }
}
