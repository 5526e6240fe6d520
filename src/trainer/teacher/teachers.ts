/** Opens the teachers of runs: a model in a folder, a model at a server, or the run's own model. */
import { Effect, Option, Redacted, Result, type Scope } from "effect"
import type * as Lms from "../../agents/lm/Lms.ts"
import * as PromptLogprobs from "../../agents/lm/providers/promptLogprobs.ts"
import type { Tokenizer } from "../../base/tokens/Tokenizer.ts"
import { Backend } from "../../tensor/backend/Backend.ts"
import type { TrainingSample } from "../batches/TrainingSample.ts"
import { type BaseModel, type Language, openBaseModel } from "../baseModel.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import type { OwnWeights } from "../trainer/TrainedModel.ts"
import { TrainerError } from "../TrainerError.ts"
import { compileScorer } from "./compileScorer.ts"
import type { TeacherConfig } from "./TeacherConfig.ts"

/** A teacher that is open. */
export interface Teacher {
  /**
   * Computes the log-probability of each token of the samples that the mask selects. `own` has the current weights of the run,
   * which only its own model as a teacher needs.
   */
  readonly score: (
    samples: ReadonlyArray<TrainingSample>,
    own: OwnWeights | undefined,
  ) => Effect.Effect<ReadonlyArray<Float32Array>, { readonly message: string }>
}

interface TeacherPlace {
  /** The id of the run, for messages. */
  readonly run: string
  /** The folder that relative paths start from. */
  readonly baseDir: string
  /** The tokens of the run's model. */
  readonly language: Language
  /** The trainer of this process; undefined if the trainer works in another process. */
  readonly trainer?: { readonly base: BaseModel; readonly sizes: MultiRunConfig["trainer"] } | undefined
}

type Needs = Lms.LmNeeds | Scope.Scope

/** Returns how the vocabulary of a teacher differs from the model's; undefined if both are equal. */
const vocabularyProblem = (own: Tokenizer, teacher: Tokenizer): string | undefined => {
  const expected = "expected a teacher with the tokens of the trained model"
  if (own.vocabSize !== teacher.vocabSize)
    return `${expected}, which has ${own.vocabSize}; found ${teacher.vocabSize} tokens`
  const shown = (tokenizer: Tokenizer, id: number) => JSON.stringify(tokenizer.decode([id], { keepSpecial: true }))
  for (let id = 0; id < own.vocabSize; id++) {
    const [mine, other] = [shown(own, id), shown(teacher, id)]
    if (mine !== other || own.bytesOf(id).join() !== teacher.bytesOf(id).join())
      return `${expected}; token ${id} is ${other} instead of ${mine}`
  }
  return undefined
}

/** Opens the teacher of a run. It works until the scope closes. */
export const openTeacher = (
  config: TeacherConfig,
  place: TeacherPlace,
): Effect.Effect<Teacher, { readonly message: string }, Needs> =>
  config.type === "server" ? serverTeacher(config, place) : localTeacher(config, place)

/** Opens a teacher that computes in this process. */
const localTeacher = Effect.fnUntraced(function* (
  config: Exclude<TeacherConfig, { readonly type: "server" }>,
  { run, baseDir, language, trainer }: TeacherPlace,
) {
  const backend = yield* Effect.serviceOption(Backend)
  const refuse = (key: string, problem: string) => Effect.fail(TrainerError.at(run, `teacher.${key}: ${problem}`))
  if (trainer === undefined || Option.isNone(backend))
    return yield* refuse(
      "type",
      `expected server, found ${config.type}: only a trainer with orchestrators: inside computes with a model itself`,
    )
  const { base, sizes } = trainer
  const compiled = Effect.fnUntraced(function* () {
    if (config.type === "self") {
      const adapters = sizes.lora === null ? null : { rank: sizes.lora.rank, targets: sizes.lora.targets }
      return yield* compileScorer(sizes, { config: base.decoder, weights: base.weights, adapters })
    }
    const opened = yield* Effect.result(openBaseModel({ type: "folder", path: config.path }, { baseDir, seed: 0 }))
    if (Result.isFailure(opened)) return yield* refuse("path", opened.failure.message)
    const { decoder, weights, tokenizer } = opened.success
    const problem = vocabularyProblem(language.tokenizer, tokenizer)
    if (problem !== undefined) return yield* refuse("path", `${config.path}: ${problem}`)
    if (decoder.maxPositions < sizes.width)
      return yield* refuse(
        "path",
        `${config.path}: expected a teacher for at least ${sizes.width} tokens (trainer.width), found ${decoder.maxPositions}`,
      )
    return yield* compileScorer(sizes, { config: decoder, weights, adapters: null })
  })
  const { score } = yield* Effect.provideService(compiled(), Backend, backend.value)
  const teacher: Teacher = { score }
  return teacher
})

/** Opens a teacher at a server. */
const serverTeacher = Effect.fnUntraced(function* (
  { model, baseUrl, apiKey, timeoutS, concurrency }: Extract<TeacherConfig, { readonly type: "server" }>,
  { run, language: { tokenizer } }: TeacherPlace,
) {
  const key = apiKey === null ? null : Redacted.make(apiKey)
  const client = yield* PromptLogprobs.make({ model, baseUrl, timeoutS, apiKey: key, keyVariable: null })
  const scoreOne = Effect.fnUntraced(function* ({ id, tokens, mask }: TrainingSample) {
    const scored = yield* client.score([...tokens])
    return yield* Effect.forEach(mask, (counts, at) => {
      const token = scored[at]
      if (counts === 0 || token === null) return Effect.succeed(0)
      const problem = textProblem(tokenizer, tokens[at], token.text)
      return problem === undefined
        ? Effect.succeed(token.logprob)
        : Effect.fail(TrainerError.at(run, `teacher ${model}: sample ${id}: ${problem}`))
    })
  })
  const teacher: Teacher = {
    score: (samples) =>
      Effect.forEach(samples, (sample) => Effect.map(scoreOne(sample), (all) => Float32Array.from(all)), {
        concurrency,
      }),
  }
  return teacher
})

/** Returns a problem if the server has another text for a token. Texts with parts of characters are not compared. */
const textProblem = (tokenizer: Tokenizer, id: number, text: string | null): string | undefined => {
  const own = tokenizer.decode([id])
  const isComparable = text !== null && text !== "" && own !== "" && !`${own}${text}`.includes("\uFFFD")
  return isComparable && own.trim() !== text.trim()
    ? `expected a teacher with the tokens of the trained model; token ${id} is ${JSON.stringify(text)} instead of ${JSON.stringify(own)}`
    : undefined
}
