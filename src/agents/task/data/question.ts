/** Reads a question with its answers, choices, id and metadata from a record, for `Qa`, `OmegaMath` and `Finer`. */
import { Schema } from "effect"
import { camelCase, display, isPlain, type Plain, snakeCase } from "../../../base/config/Config.ts"
import { Sha256 } from "../../../base/text/sha256.ts"
import { parsedJson } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { closest } from "../../../base/text/closest.ts"
import type { AnswerKey } from "../answers/score.ts"

/** The config's keys that name a record's fields. */
interface FieldNames {
  readonly inputField: string
  readonly targetField: string
  readonly choicesField: string | null
  readonly idField: string | null
  readonly metaFields: ReadonlyArray<string>
}

/** A question from a record. Its `key` decides how answers are scored. */
export interface AskedQuestion {
  readonly question: string
  readonly key: AnswerKey
  readonly id: string | null
  /** Identifies a question without an id by its text and choices; undefined for a question with an id. */
  readonly content: string | undefined
  readonly metadata: Readonly<Record<string, unknown>>
}

/**
 * Returns the field with this name in camelCase or snake_case, because the keys of records in a config (`items`) may have
 * been converted from one to the other.
 */
export const fieldOf = (fields: Plain, name: string): unknown =>
  [name, camelCase(name), snakeCase(name)]
    .map((key) => (Object.hasOwn(fields, key) ? fields[key] : undefined))
    .find((value) => value !== undefined)

/** Describes the problem of a record that has no field `name`; `setting` is the config key that names the field. */
const missing = (fields: Plain, name: string, setting: string): string => {
  const names = Object.keys(fields)
  const near = closest(name, names)
  const hint = near === undefined ? "" : `; did you mean "${near}"?`
  return `expected a field "${name}", found ${names.map((key) => `"${key}"`).join(", ") || "none"}${hint} (set ${setting} to choose another)`
}

const isMessages = Schema.is(Schema.Array(Schema.Struct({ role: Schema.String, content: Schema.String })))

/** Joins messages up to the user's last one, each after its role if there are several; undefined for other values. */
const textOfMessages = (messages: unknown): string | undefined => {
  if (!isMessages(messages)) return undefined
  const shown = messages.slice(0, messages.findLastIndex(({ role }) => role === "user") + 1)
  if (shown.length === 0) return undefined
  return shown.length === 1 ? shown[0].content : shown.map(({ role, content }) => `${role}: ${content}`).join("\n\n")
}

const questionOf = (value: unknown): string | undefined => {
  if (typeof value === "string") return value
  if (typeof value === "number") return String(value)
  return textOfMessages(value)
}

const scalar = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : undefined

/** Returns the items of a list as texts; undefined if it is not a list of texts, numbers and booleans. */
const scalars = (value: unknown): ReadonlyArray<string> | undefined => {
  if (!Array.isArray(value)) return undefined
  const all = value.map(scalar).filter((item) => item !== undefined)
  return all.length === value.length ? all : undefined
}

/** Reads choices: a list, an object (`{ A: … }` or `{ text: […] }`), JSON of these, or texts separated by `|`. */
const choicesOf = (value: unknown): ReadonlyArray<string> | undefined => {
  if (typeof value === "string") {
    return /^\s*[[{]/.test(value) ? choicesOf(parsedJson(value)) : value.split("|").map((choice) => choice.trim())
  }
  if (isPlain(value)) return choicesOf(value["text"] ?? Object.values(value))
  return scalars(value)
}

/** Reads the question of a record. Returns a description of the problem if it cannot be read. */
export const readQuestion = (fields: Plain, names: FieldNames): AskedQuestion | string => {
  const input = fieldOf(fields, names.inputField)
  if (input === undefined) return missing(fields, names.inputField, "input_field")
  const question = questionOf(input)
  if (question === undefined) {
    return `"${names.inputField}": expected text or a list of { role, content } with one of the user, found ${display(input)}`
  }
  if (question.trim() === "") return `"${names.inputField}": expected text, found an empty one`

  const target = fieldOf(fields, names.targetField)
  if (target === undefined) return missing(fields, names.targetField, "target_field")
  // One right answer, or a list of them.
  const targets = scalars(Array.isArray(target) ? target : [target])
  if (targets === undefined || targets.length === 0) {
    return `"${names.targetField}": expected text, a number or a list of such, found ${display(target)}`
  }

  let choices: ReadonlyArray<string> | undefined
  if (names.choicesField !== null) {
    const listed = fieldOf(fields, names.choicesField)
    if (listed === undefined) return missing(fields, names.choicesField, "choices_field")
    choices = choicesOf(listed)
    if (choices === undefined || choices.length < 2 || choices.length > 26) {
      return `"${names.choicesField}": expected a list of 2 to 26 texts, found ${display(listed)}`
    }
  }

  const id = names.idField === null ? undefined : fieldOf(fields, names.idField)
  if (names.idField !== null && scalar(id) === undefined) return missing(fields, names.idField, "id_field")
  return {
    question,
    key: { targets, ...(choices === undefined ? {} : { choices }), question, fields },
    id: scalar(id) ?? null,
    content: scalar(id) === undefined ? digestOf(JSON.stringify([question, choices ?? null])) : undefined,
    metadata: Object.fromEntries(names.metaFields.map((name) => [name, fieldOf(fields, name) ?? null])),
  }
}

/** Returns the beginning of a SHA-256 digest, which is long enough for the questions of a data set. */
const digestOf = (text: string): string => {
  const hash = new Sha256()
  hash.update(utf8.encode(text))
  return hash.hex().slice(0, 16)
}

/** Inserts a question into a text at `{question}`; `{{` and `}}` in the text become single braces. */
export type Template = (question: string) => string

/** Makes a template from its text. Returns the problem if the text is not valid. */
export const template = (text: string): Template | { readonly problem: string } => {
  const parts: Array<string | null> = []
  const token = /\{\{|\}\}|\{question\}|\{[^{}]*\}?|\}/g
  let from = 0
  for (const match of text.matchAll(token)) {
    parts.push(text.slice(from, match.index))
    from = match.index + match[0].length
    if (match[0] === "{question}") parts.push(null)
    else if (match[0] === "{{" || match[0] === "}}") parts.push(match[0][0])
    else return { problem: `expected {question}, or {{ and }} for braces, found ${match[0]}` }
  }
  parts.push(text.slice(from))
  if (!parts.includes(null)) return { problem: "expected {question} somewhere in it" }
  return (question) => parts.map((part) => part ?? question).join("")
}
