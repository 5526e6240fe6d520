/**
 * Makes the data sets with `type: qa`, from questions whose answers are scored. The questions come from a file or from the
 * config.
 */
import { Context, Effect, Schema } from "effect"
import { choiceHint } from "../../base/text/closest.ts"
import { withDefault } from "../../base/config/fields.ts"
import { choiceOf, exact, f1, letterOf, mcq, numeric } from "./answers/score.ts"
import { open, recordFields, templateOf } from "./data/fileSet.ts"
import { readQuestion, type AskedQuestion } from "./data/question.ts"
import { make as makeKind, type DatasetKind } from "./DatasetKind.ts"
import { type AnyScorer, make as makeQuestion } from "./Question.ts"
import { ConfigError } from "../../base/config/Config.ts"

export type { AnyScorer as Scorer } from "./Question.ts"

/** The user's own scorers. A config selects one with `task_type: custom` and its name as `env_class`. */
export const Scorers = Context.Reference<Readonly<Record<string, AnyScorer>>>("effect-rl/task/Scorers", {
  defaultValue: () => ({}),
})

/**
 * Maps the names of classes in another program, which a config may use as `env_class`, to the task type with the same
 * scoring.
 */
const classes = { QAEnv: "exact", MathQAEnv: "numeric", MCQEnv: "mcq" } as const

const builtIn = { exact, f1, numeric, mcq } as const

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("qa"), "qa"),
  ...recordFields({ input: "question", target: "answer" }),
  /** How answers are compared: as texts, by common words, as numbers, as choices, or by the scorer `env_class`. */
  taskType: withDefault(Schema.Literals(["exact", "f1", "numeric", "mcq", "custom"]), "exact"),
  /**
   * The name of one of the user's scorers, or of a class of another program whose scoring is built in (`QAEnv`, `MathQAEnv`,
   * `MCQEnv`). It is used instead of `task_type`; null uses `task_type`.
   */
  envClass: withDefault(Schema.NullOr(Schema.String), null),
})
export type QaConfig = typeof Config.Type

/** Returns the last part of a dotted path, e.g. of a Python class. */
const lastPart = (path: string): string => path.replace(/^.*[.:]/s, "")

const scorerOf = (
  config: QaConfig,
  own: Readonly<Record<string, AnyScorer>>,
): { readonly name: string; readonly score: AnyScorer } | { readonly problem: string } => {
  const { taskType, envClass } = config
  if (envClass === null) {
    return taskType === "custom"
      ? { problem: "expected the name of a scorer for task_type: custom, found nothing" }
      : { name: taskType, score: builtIn[taskType] }
  }
  const name = lastPart(envClass)
  if (Object.hasOwn(own, name)) return { name, score: own[name] }
  const scorer = Object.entries(classes).find(([other]) => other === name)?.[1]
  if (scorer !== undefined) return { name: scorer, score: builtIn[scorer] }
  const names = [...Object.keys(classes), ...Object.keys(own)]
  return {
    problem: `unknown class "${envClass}"; ${choiceHint(name, names)}; provide your own scorers with Qa.Scorers`,
  }
}

/** Returns the reason why a record's answer cannot be scored by the task's scorer; undefined if it can. */
const problemOf = (task: string, { key }: AskedQuestion): string | undefined => {
  const { targets, choices } = key
  if (task !== "mcq" || choices === undefined) return undefined
  const odd = targets.find((target) => choiceOf(target, choices) === undefined)
  return odd === undefined
    ? undefined
    : `expected the answer to be one of the choices, or its letter, found ${JSON.stringify(odd)}`
}

const withChoices = (question: string, choices: ReadonlyArray<string> | undefined): string =>
  choices === undefined
    ? question
    : `${question}\n\n${choices.map((choice, index) => `${letterOf(index)}. ${choice}`).join("\n")}`

export const kind: DatasetKind = makeKind({
  type: "qa",
  schema: Config,
  open: (config, context) =>
    Effect.gen(function* () {
      const scorer = scorerOf(config, yield* Scorers)
      if ("problem" in scorer) return yield* ConfigError.at(context.from, "envClass", scorer.problem)
      const applyTemplate = yield* templateOf(config, context)
      return yield* open(config, context, (fields, index) => {
        const question = readQuestion(fields, config)
        if (typeof question === "string") return question
        const problem = problemOf(scorer.name, question)
        if (problem !== undefined) return problem
        return makeQuestion({
          id: question.id ?? `qa-${index + 1}`,
          content: question.content,
          type: "qa",
          metadata: { task_type: scorer.name, ...question.metadata },
          observation: applyTemplate(withChoices(question.question, question.key.choices)),
          key: question.key,
          score: scorer.score,
        })
      })
    }),
})
