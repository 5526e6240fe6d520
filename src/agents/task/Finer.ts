/** Makes the data sets with `type: finer`, from records that ask which tag fits a number in a financial report. */
import { Effect, Schema } from "effect"
import type { Plain } from "../../base/config/Config.ts"
import { withDefault } from "../../base/config/fields.ts"
import { exact } from "./answers/score.ts"
import { open, recordFields, templateOf } from "./data/fileSet.ts"
import { readQuestion } from "./data/question.ts"
import { type DatasetKind, make as makeKind } from "./DatasetKind.ts"
import { make as makeQuestion } from "./Question.ts"

export const Config = Schema.Struct({
  type: Schema.Literal("finer"),
  ...recordFields({ input: "context", target: "target", split: "test" }),
  /** Whether every question begins with the list of tags. */
  prependOptions: withDefault(Schema.Boolean, false),
  /** The tags that are listed before each question if `prepend_options`; null lists all that are an answer in this data set. */
  options: withDefault(Schema.NullOr(Schema.Array(Schema.String)), null),
})

export const kind: DatasetKind = makeKind({
  type: "finer",
  schema: Config,
  open: (config, context) =>
    Effect.gen(function* () {
      const applyTemplate = yield* templateOf(config, context)
      const answers = new Set<string>()
      let cached: string | undefined
      // The list is made when the first question is asked, because all records have been read by then.
      const options = (): string => (cached ??= (config.options ?? [...answers].toSorted()).join(", "))
      const tags = config.prependOptions
        ? (question: string) => `The tags to choose from: ${options()}.\n\n${question}`
        : (question: string) => question
      // True while `open` checks all records. Later, tasks are made on demand.
      let reading = true
      const task = (fields: Plain, index: number) => {
        const question = readQuestion(fields, config)
        // A string is the problem with the record.
        if (typeof question === "string") return question
        if (reading && config.prependOptions) for (const target of question.key.targets) answers.add(target)
        return makeQuestion({
          id: question.id ?? `finer-${index + 1}`,
          content: question.content,
          type: "finer",
          metadata: question.metadata,
          observation: reading ? "" : applyTemplate(tags(question.question)),
          key: question.key,
          score: exact,
        })
      }
      const tasks = yield* open(config, context, task)
      reading = false
      return tasks
    }),
})
