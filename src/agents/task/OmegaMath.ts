/** Makes the data sets with `type: omega_math`, from mathematical problems. */
import { Effect, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import { isPlain, type Plain, ConfigError } from "../../base/config/Config.ts"
import { parsedJson } from "../../base/text/text.ts"
import { bounded, nonNegative, withDefault } from "../../base/config/fields.ts"
import type { LmService } from "../lm/Lm.ts"
import { LmConfig, request } from "../lm/LmConfig.ts"
import { math, modes } from "./answers/math.ts"
import { type AnswerKey, type AnswerScorer, verdict } from "./answers/score.ts"
import { open, recordFields, templateOf } from "./data/fileSet.ts"
import { readQuestion, fieldOf } from "./data/question.ts"
import { type DatasetKind, make as makeKind, type DatasetContext } from "./DatasetKind.ts"
import { type AnyScorer, make as makeQuestion } from "./Question.ts"
import type { Feedback } from "./Feedback.ts"
import { countFailure } from "./feedbackFailures.ts"

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("omega_math"), "omega_math"),
  ...recordFields({ input: "input", target: "target", split: "test" }),
  /**
   * How answers are compared; `auto` chooses by the form of the target: matrix, tuple, set, number, or, for any other
   * target, the same text.
   */
  evalMode: withDefault(Schema.Literals(modes), "auto"),
  /** The largest difference between two numbers that count as equal. */
  evalTolerance: withDefault(nonNegative, 1e-6),
  /** Whether the answer must be in `\boxed{…}` or be the whole text; if false, it may also be surrounded by other words. */
  expectBoxed: withDefault(Schema.Boolean, false),
  /** The form of an answer: `text`, or `json` for an object with `final_answer` and `rationale`. */
  outputType: withDefault(Schema.Literals(["text", "json"]), "text"),
  /**
   * The feedback after a wrong answer: the right answer, the record's `ground_truth_solution`, or a model's text made
   * from it.
   */
  feedbackType: withDefault(
    Schema.Literals(["final_answer", "ground_truth_solution", "llm_feedback_from_ground_truth_solution"]),
    "final_answer",
  ),
  /** The model that writes the feedback, with the same keys as the agent's. */
  feedbackLmConfig: withDefault(Schema.NullOr(LmConfig), null),
  /** Whether the model writes the feedback; if false, the feedback is the solution itself. */
  enableLlmFeedback: withDefault(Schema.Boolean, true),
  /** The number of subsets that are used, in the order of the records; null uses all. */
  numSubsets: withDefault(Schema.NullOr(bounded("countOrNone")), null),
  /** The number of records of each subset that are used, in the order of the records; null uses all. */
  samplesPerSubset: withDefault(Schema.NullOr(bounded("countOrNone")), null),
})
export type OmegaMathConfig = typeof Config.Type

/** Returns the name of the subset to which a record belongs. */
const subsetOf = (fields: Plain): string => {
  const named = ["setting_key", "subset", "category", "group", "task"].map((name) => fieldOf(fields, name))
  return named.find((value): value is string => typeof value === "string" && value.trim() !== "") ?? "default"
}

/**
 * Limits the number of subsets, and of records in each subset. First call `note` for each record of the file. Then call
 * `pick` for each record in the order of the tasks: it counts the record, and returns whether the record is within the
 * limits.
 */
const subsets = ({ numSubsets, samplesPerSubset }: OmegaMathConfig) => {
  const numbers = new Map<string, number>()
  const ofRecord: Array<number> = []
  const taken = new Map<number, number>()
  return {
    note: (index: number, name: string): void => {
      const number = numbers.get(name) ?? numbers.size
      numbers.set(name, number)
      ofRecord[index] = number
    },
    pick: (index: number): boolean => {
      const number = ofRecord[index]
      if (!taken.has(number) && taken.size >= (numSubsets ?? Infinity)) return false
      const before = taken.get(number) ?? 0
      if (before >= (samplesPerSubset ?? Infinity)) return false
      taken.set(number, before + 1)
      return true
    },
  }
}

const Answer = Schema.Struct({
  final_answer: Schema.Union([Schema.String, Schema.Finite]),
  rationale: Schema.optionalKey(Schema.String),
})
const readAnswer = Schema.decodeUnknownOption(jsonText(Answer))

/** Removes the code fence (```) that models often put around JSON. */
const unfenced = (text: string): string => {
  const trimmed = text.trim()
  const [opening] = /^```(?:json)?(?=\s)/.exec(trimmed) ?? []
  if (opening === undefined || !trimmed.endsWith("```")) return text
  return trimmed.slice(opening.length, -3).trim()
}

const jsonInstruction =
  'Answer with one JSON object and nothing else: {"final_answer": "the answer alone", "rationale": "how you got it"}'

/** Makes a scorer that scores the `final_answer` in a JSON answer with `score`. An answer without it gets 0. */
const ofJson =
  (score: AnswerScorer): AnswerScorer =>
  (answer, key) => {
    const read = readAnswer(unfenced(answer))
    if (read._tag === "Some") return score(String(read.value.final_answer), key)
    return verdict(0, key.targets[0], answer, "expected a JSON object with final_answer and rationale")
  }

/** Returns the solution in a record: a text, or the `rationale` of an object (in CSV, the object is JSON). */
const solutionOf = (fields: Plain): string | undefined => {
  const raw = fieldOf(fields, "ground_truth_solution")
  const parsed = typeof raw === "string" && raw.trim().startsWith("{") ? (parsedJson(raw) ?? raw) : raw
  const text = isPlain(parsed) ? parsed["rationale"] : parsed
  return typeof text === "string" && text.trim() !== "" ? text.trim() : undefined
}

const withSolution = (feedback: Feedback, fields: Plain): Feedback => {
  const solution = solutionOf(fields)
  if (feedback.score > 0 || solution === undefined) return feedback
  return { ...feedback, message: `${feedback.message}\nA solution: ${solution}` }
}

const tutor = [
  "You teach mathematics. You are given a problem, how it is solved, and a student's answer, which is wrong.",
  "In two or three sentences, tell the student where the answer went wrong and what to look at to get it right.",
].join(" ")

const describe = (answer: string, { question = "", targets, fields = {} }: AnswerKey): string => {
  const solution = solutionOf(fields)
  return [
    `Problem:\n${question}`,
    `Right answer:\n${targets.join(" or ")}`,
    ...(solution === undefined ? [] : [`Solution:\n${solution}`]),
    `The student's answer:\n${answer}`,
  ].join("\n\n")
}

/**
 * Makes a scorer in which a model explains a wrong answer. If the call of the model fails, the feedback shows the solution.
 */
const byModel =
  (score: AnswerScorer, lm: LmService, config: LmConfig): AnyScorer =>
  (answer, key) => {
    const feedback = score(answer, key)
    if (feedback.score > 0) return Effect.succeed(feedback)
    const plain = withSolution(feedback, key.fields ?? {})
    const messages = [
      { role: "system", content: tutor },
      { role: "user", content: describe(answer, key) },
    ] as const
    return lm.complete(request(config, messages)).pipe(
      Effect.map(({ content }): Feedback => {
        const words = content.trim()
        const extra = { template_message: feedback.message, feedback_model: config.model }
        return words === "" ? plain : { ...feedback, message: `Incorrect. ${words}`, extra }
      }),
      Effect.catchTag("LmError", ({ message }) =>
        Effect.as(countFailure(message), { ...plain, extra: { feedback_error: message } } satisfies Feedback),
      ),
    )
  }

const scorerOf = (config: OmegaMathConfig, { from, openLm }: DatasetContext) =>
  Effect.gen(function* () {
    const { evalMode: mode, evalTolerance: tolerance, expectBoxed, outputType, feedbackType } = config
    const plain = math({ mode, tolerance, expectBoxed })
    const score = outputType === "json" ? ofJson(plain) : plain
    if (feedbackType === "final_answer") return score
    const solved: AnswerScorer = (answer, key) => withSolution(score(answer, key), key.fields ?? {})
    if (feedbackType === "ground_truth_solution" || !config.enableLlmFeedback) return solved
    const { feedbackLmConfig } = config
    if (feedbackLmConfig === null) {
      const problem = `expected a model for feedback_type: ${feedbackType}, found null; set a model, or enable_llm_feedback: false`
      return yield* ConfigError.at(from, "feedbackLmConfig", problem)
    }
    if (openLm === undefined) {
      const problem = "this program opens no language models; set enable_llm_feedback: false"
      return yield* ConfigError.at(from, "feedbackLmConfig", problem)
    }
    return byModel(score, yield* openLm(feedbackLmConfig), feedbackLmConfig)
  })

/**
 * Returns the config, with the field names `messages` and `ground_truth` if a record has these fields instead of the
 * config's.
 */
const namesFor = (config: OmegaMathConfig, fields: Plain): OmegaMathConfig =>
  fieldOf(fields, config.inputField) === undefined &&
  fieldOf(fields, config.targetField) === undefined &&
  fieldOf(fields, "messages") !== undefined &&
  fieldOf(fields, "ground_truth") !== undefined
    ? { ...config, inputField: "messages", targetField: "ground_truth" }
    : config

export const kind: DatasetKind = makeKind({
  type: "omega_math",
  schema: Config,
  open: (config, context) =>
    Effect.gen(function* () {
      const score = yield* scorerOf(config, context)
      const applyTemplate = yield* templateOf(config, context)
      const { note, pick } = subsets(config)
      const task = (fields: Plain, index: number) => {
        const question = readQuestion(fields, namesFor(config, fields))
        if (typeof question === "string") return question
        const subset = subsetOf(fields)
        note(index, subset)
        const observation = applyTemplate(question.question)
        return makeQuestion({
          id: question.id ?? `omega_math-${index + 1}`,
          content: question.content,
          type: "omega_math",
          metadata: { subset, eval_mode: config.evalMode, ...question.metadata },
          observation: config.outputType === "json" ? `${observation}\n\n${jsonInstruction}` : observation,
          key: question.key,
          score,
        })
      }
      const limited = config.numSubsets !== null || config.samplesPerSubset !== null
      return yield* open(config, context, task, limited ? pick : undefined)
    }),
})
