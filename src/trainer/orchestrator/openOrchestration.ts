/** Opens all that an orchestrator needs besides a model: the run's data sets and agent, and the model's tokens. */
import { Effect } from "effect"
import { type ChatAnswer, LmRequest } from "../../agents/lm/Chat.ts"
import { writtenAnswer } from "../../decoder/engine/writtenAnswer.ts"
import { Lm } from "../../agents/lm/Lm.ts"
import { lmError } from "../../agents/lm/LmError.ts"
import { promptOf } from "../../decoder/engine/EngineLm.ts"
import type * as Lms from "../../agents/lm/Lms.ts"
import { openFeatures } from "../critic/criticised.ts"
import { openTeacher } from "../teacher/teachers.ts"
import type { SampleReaders } from "../teacher/sampleReaders.ts"
import type { Language } from "../baseModel.ts"
import * as Layout from "../Layout.ts"
import { openRunParts } from "../config/runParts.ts"
import type { Orchestration } from "./Orchestrator.ts"

interface OrchestrationPlace {
  /** The tokens and the chat template of the run's model. */
  readonly language: Language
  /** The folder that relative paths start from. */
  readonly baseDir: string
  /** The name of the run's model in the engine. */
  readonly model: string
  /** The largest number of tokens of a sample. */
  readonly width: number
  /** The models of the trainer's process; undefined if the trainer works in another process. */
  readonly readers?: SampleReaders | undefined
}

/** Opens the tasks and the agent of a run. */
export const openOrchestration = Effect.fnUntraced(function* (
  { id, directory, config }: Orchestration["run"],
  { language, baseDir, model, width, readers }: OrchestrationPlace,
) {
  const from = { source: `${directory}/${Layout.configs}` }
  const { train, validation, pairs, agent } = yield* openRunParts(config, { from, baseDir, model })
  const encode = (request: LmRequest, move: ChatAnswer) =>
    Effect.mapError(writtenAnswer(language.chat, request, move, { eos: language.eosIds[0] ?? null }), ({ message }) =>
      lmError(id, "rejected", message, { attempts: 1 }),
    )
  const context = yield* Effect.context<Lms.LmNeeds>()
  const { teacher: taught } = config
  const teacher =
    taught === null ? null : Effect.provideContext(openTeacher(taught, { run: id, language, readers }), context)
  const features = config.critic === null ? null : openFeatures(id, readers)
  return {
    tasks: train.tasks,
    validation: validation?.tasks ?? null,
    pairs,
    agentOf: (lm) => Effect.provideService(agent.make, Lm, lm),
    encode,
    teacher,
    features,
    renderHint: (content) =>
      Effect.map(
        promptOf(
          language.chat,
          { ...LmRequest.defaults, messages: [{ role: "system", content }] },
          { addGenerationPrompt: false },
        ),
        ({ ids }) => ids,
      ),
    width,
  } satisfies Partial<Orchestration>
})
