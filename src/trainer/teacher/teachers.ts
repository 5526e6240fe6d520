/** Opens the teachers of runs: a model in a folder, a model at a server, or the run's own model. */
import { Effect, Redacted, type Scope } from "effect"
import type * as Lms from "../../agents/lm/Lms.ts"
import * as PromptLogprobs from "../../agents/lm/providers/promptLogprobs.ts"
import type { TrainingSample } from "../batches/TrainingSample.ts"
import type { Language } from "../baseModel.ts"
import type { OwnWeights } from "../trainer/TrainedModel.ts"
import { TrainerError } from "../TrainerError.ts"
import type { SampleReaders } from "./sampleReaders.ts"
import type { TeacherConfig } from "./TeacherConfig.ts"
import { tokenProblem } from "./vocabularies.ts"

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
  /** The tokens of the run's model. */
  readonly language: Language
  /** The models of the trainer's process; undefined if the trainer works in another process. */
  readonly readers?: SampleReaders | undefined
}

type Needs = Lms.LmNeeds | Scope.Scope

/** Opens the teacher of a run. It works until the scope closes. */
export const openTeacher = (
  config: TeacherConfig,
  place: TeacherPlace,
): Effect.Effect<Teacher, { readonly message: string }, Needs> =>
  config.type === "server" ? serverTeacher(config, place) : localTeacher(config, place)

/** Opens a teacher that computes in this process. */
const localTeacher = Effect.fnUntraced(function* (
  config: Exclude<TeacherConfig, { readonly type: "server" }>,
  { run, readers }: TeacherPlace,
) {
  const refuse = (key: string, problem: string) => Effect.fail(TrainerError.at(run, `teacher.${key}: ${problem}`))
  if (readers === undefined)
    return yield* refuse(
      "type",
      `expected server, found ${config.type}: only a trainer with orchestrators: inside computes with a model itself`,
    )
  const [key, opening] = config.type === "self" ? ["type", readers.ofModel] : ["path", readers.ofFolder(config.path)]
  const teacher: Teacher = yield* Effect.catch(opening, ({ message }) => refuse(key, message))
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
      const problem = tokenProblem(tokenizer, tokens[at], token.text)
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
