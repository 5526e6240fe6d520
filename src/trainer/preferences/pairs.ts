/**
 * Reads pairs of answers, of which one is better: the data of direct preference optimisation (`objective: { type: dpo }`). Each
 * record has a prompt, a chosen answer and a rejected one, as texts or as lists of messages with `role` and `content`.
 *
 * @example
 * ```ts
 * const pairs = yield* openPairs({ datasetPath: "pairs.jsonl", promptField: "prompt", chosenField: "chosen", rejectedField: "rejected" }, ".")
 * const { prompt, chosen, rejected } = yield* pairs.at(0)
 * ```
 */
import { Effect, Option, Schema } from "effect"
import { ofFile } from "../../agents/task/data/Records.ts"
import { DatasetError } from "../../agents/task/TaskSet.ts"
import type { Plain } from "../../base/config/Config.ts"
import { withDefault } from "../../base/config/fields.ts"

/** The pairs that a run with the objective `dpo` learns from. */
export const PairsConfig = Schema.Struct({
  /** The file of the pairs, as JSON lines or CSV. A relative path starts at the config's folder. */
  datasetPath: Schema.NonEmptyString,
  /** The key, in each record, of the prompt: the user's text, or a list of messages with `role` and `content`. */
  promptField: withDefault(Schema.NonEmptyString, "prompt"),
  /** The key, in each record, of the better answer: a text, or a list with one message of the assistant. */
  chosenField: withDefault(Schema.NonEmptyString, "chosen"),
  /** The key, in each record, of the worse answer. */
  rejectedField: withDefault(Schema.NonEmptyString, "rejected"),
})
export type PairsConfig = typeof PairsConfig.Type

/** The messages before an answer. */
const Prompt = Schema.Union([
  Schema.NonEmptyString,
  Schema.NonEmptyArray(
    Schema.Struct({ role: Schema.Literals(["system", "user", "assistant"]), content: Schema.String }),
  ),
])

const Answer = Schema.Union([
  Schema.String,
  Schema.Tuple([Schema.Struct({ role: Schema.Literal("assistant"), content: Schema.String })]),
])

/** Two answers to one prompt. */
interface Pair {
  readonly prompt: ReadonlyArray<{ readonly role: "system" | "user" | "assistant"; readonly content: string }>
  readonly chosen: string
  readonly rejected: string
  /** The place of the record, for messages, such as `pairs.jsonl:17`. */
  readonly place: string
}

/** A file of pairs. */
export interface Pairs {
  readonly size: number
  /** Reads the pair at an index from 0 to `size` − 1. */
  readonly at: (index: number) => Effect.Effect<Pair, DatasetError>
}

const promptIn = Schema.decodeUnknownOption(Prompt)
const answerIn = Schema.decodeUnknownOption(Answer)

/** Reads a pair from a record, or describes what is wrong with the record. */
const pairOf = (config: PairsConfig, fields: Plain): Omit<Pair, "place"> | string => {
  const { promptField, chosenField, rejectedField } = config
  const wrong = (key: string, expected: string): string =>
    `${key}: expected ${expected}, found ${key in fields ? JSON.stringify(fields[key]).slice(0, 60) : "none"}`
  const prompt = Option.getOrUndefined(promptIn(fields[promptField]))
  if (prompt === undefined) return wrong(promptField, "a text, or a list of messages with role and content")
  const texts: Array<string> = []
  for (const key of [chosenField, rejectedField]) {
    const answer = Option.getOrUndefined(answerIn(fields[key]))
    if (answer === undefined) return wrong(key, "a text, or a list with one message of the assistant")
    const text = typeof answer === "string" ? answer : answer[0].content
    if (text === "") return `${key}: expected an answer, found an empty one`
    texts.push(text)
  }
  const [chosen, rejected] = texts
  if (chosen === rejected)
    return `${rejectedField}: expected another answer than ${chosenField}, found the same one: there is nothing to learn from it`
  return { prompt: typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt, chosen, rejected }
}

/** Opens a file of pairs, and checks every record. `baseDir` is the folder that a relative path starts from. */
export const openPairs = Effect.fnUntraced(function* (config: PairsConfig, baseDir: string) {
  const { size, at } = yield* ofFile(config.datasetPath, baseDir, (fields) => {
    const pair = pairOf(config, fields)
    return typeof pair === "string" ? pair : undefined
  })
  const pairs: Pairs = {
    size,
    at: (index) =>
      Effect.flatMap(at(index), ({ fields, place }) => {
        const pair = pairOf(config, fields)
        // Every record was checked when the file was opened, so this one was changed since.
        return typeof pair === "string"
          ? Effect.fail(new DatasetError({ path: config.datasetPath, message: `${place}: ${pair}` }))
          : Effect.succeed({ ...pair, place })
      }),
  }
  return pairs
})
