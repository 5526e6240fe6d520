/**
 * Makes tasks of arithmetic, such as `What is 48*713?`, with a tool `calculator` that computes an expression. A small model
 * cannot compute products of large numbers by itself, so it has to learn to call the tool and to answer with the result. The
 * answer is right if the last number in it is right.
 *
 * @example
 * ```yaml
 * train_dataset: { type: arithmetic, num_tasks: 10000, seed: 1, max_digits: 3, operators: ["+", "*"] }
 * ```
 */
import { Schema } from "effect"
import { intBetween, withDefault } from "../../../base/config/fields.ts"
import { constantOf } from "../answers/expression.ts"
import { numeric } from "../answers/score.ts"
import * as EnvTool from "../EnvTool.ts"
import { make as makeEnv, type TextEnv } from "../TextEnv.ts"
import { levelFields, levelKind, oneOf } from "./levels.ts"

const calculator = EnvTool.make({
  name: "calculator",
  description: "Computes an expression, such as 48*713.",
  parameters: Schema.Struct({ expression: Schema.String }),
  run: (state: null, { expression }) => {
    const value = constantOf(expression)
    return value === undefined
      ? { problem: `"${expression}" has no value; expected an expression such as 48*713` }
      : { state, content: String(value) }
  },
})

const Operator = Schema.Literals(["+", "-", "*"])

interface ArithmeticTaskOptions {
  readonly id: string
  /** The expression to compute, which must have a value. */
  readonly expression: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** Makes a task, whose demonstration calls the tool and answers with its result. */
const make = ({ id, expression, metadata = {} }: ArithmeticTaskOptions): TextEnv => {
  const target = String(constantOf(expression))
  return makeEnv<null>({
    id,
    type: "arithmetic",
    metadata,
    maxSteps: 1,
    ...EnvTool.all([calculator]),
    // The answer is the result of the tool, whether it was the task's own or an agent's.
    demonstrate: (_seen, _random, made) =>
      made === 0 ? { name: calculator.spec.name, arguments: JSON.stringify({ expression }) } : target,
    begin: () => ({ state: null, observation: `What is ${expression}?` }),
    step: (state, answer) => ({
      state,
      observation: null,
      feedback: numeric(answer, { targets: [target] }),
      terminated: true,
    }),
  })
}

const Config = Schema.Struct({
  type: withDefault(Schema.Literal("arithmetic"), "arithmetic"),
  ...levelFields,
  /** The largest number of digits of a number. */
  maxDigits: withDefault(intBetween(1, 6), 3),
  /** The operators to draw from. */
  operators: withDefault(Schema.NonEmptyArray(Operator), ["+", "-", "*"]),
})
export const kind = levelKind("arithmetic", Config, ({ maxDigits, operators }, id, level, random) => {
  const number = (): number => random.integer(10 ** (1 + random.integer(maxDigits)))
  const expression = `${number()}${oneOf(operators, random)}${number()}`
  return make({ id, expression, metadata: { level, expression } })
})
