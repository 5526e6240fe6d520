import { Effect } from "effect"
import { isSameName } from "../identifier.ts"
import { RunsError } from "./RunsError.ts"
import { compareText } from "./RunEntry.ts"
import { numberOf, type Value } from "./Value.ts"

/** One condition on runs: `seed=7`, `algorithm.learning_rate<1e-3`, `time>2026-02`. */
export interface Filter {
  readonly key: string
  readonly operator: Operator
  readonly value: string
}

const operators = ["!=", "<=", ">=", "=", "<", ">"] as const
export type Operator = (typeof operators)[number]

const isOperator = (text: string): text is Operator => operators.some((operator) => operator === text)

/** `KEY OPERATOR VALUE`: the first operator divides it, spaces around it don't count, `==` is `=`. */
export const parseFilter = (text: string): Effect.Effect<Filter, RunsError> => {
  const [, key = "", operator = "", value = ""] = /^(.*?)(!=|<=|>=|==|=|<|>)(.*)$/s.exec(text) ?? []
  const plain = operator === "==" ? "=" : operator
  return key.trim() !== "" && isOperator(plain)
    ? Effect.succeed({ key: key.trim(), operator: plain, value: value.trim() })
    : Effect.fail(new RunsError({ message: `${text}: expected KEY=VALUE, or one of != < > <= >= between them` }))
}

export const formatFilter = ({ key, operator, value }: Filter): string => `${key}${operator}${value}`

/**
 * Whether a run with this value passes. Numbers are compared as numbers (`1e-3` is `0.001`), texts as texts; a run that
 * doesn't have the key passes only `!=`. In a name, an environment and an algorithm `_` and `-` are the same.
 */
export const passes = ({ key, operator, value: wanted }: Filter, found: Value | undefined): boolean => {
  if (found === undefined) return operator === "!="
  const isName = names.has(key.replace(/^population\./, ""))
  const order = isName && isSameName(String(found), wanted) ? 0 : orderOf(found, wanted)
  switch (operator) {
    case "=":
      return order === 0
    case "!=":
      return order !== 0
    case "<":
      return order < 0
    case ">":
      return order > 0
    case "<=":
      return order <= 0
    case ">=":
      return order >= 0
  }
}

/** What is called after files, agents' types and data sets, in which `history_agent` is `history-agent`. */
const names = new Set(["name", "environment", "algorithm"])

/** NaN where one isn't before, at or after the other: of a number and a text, or of null and anything else. */
const orderOf = (found: Value, wanted: string): number => {
  if (typeof found === "string") return compareText(found, wanted)
  if (typeof found !== "number") return String(found) === wanted ? 0 : NaN
  const number = numberOf(wanted)
  return number === undefined ? NaN : found - number
}
