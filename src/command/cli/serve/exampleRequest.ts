/**
 * Makes the example request that `effect serve` shows for a trainer: a request of the run's own agent in one of its own
 * tasks.
 */
import { join } from "node:path"
import { Effect } from "effect"
import * as SingleAgent from "../../../agents/episode/protocols/SingleAgent.ts"
import type { LmRequest } from "../../../agents/lm/Chat.ts"
import { Lm, type LmService } from "../../../agents/lm/Lm.ts"
import { lmError } from "../../../agents/lm/LmError.ts"
import { parse } from "../../../trainer/config/OrchestratorConfig.ts"
import { openRunParts } from "../../../trainer/config/runParts.ts"
import { makeRunFolders } from "../../../trainer/runs/runFolder.ts"
import { runsIn, type TrainerFolder } from "../../../trainer/trainerFolder.ts"
import { platform } from "../../../node.ts"
import { onlyKnown } from "../../../base/trust/Trust.ts"

/** Returns the first request of a run's agent in its first task; undefined if the run's config cannot be used. */
const firstRequest = Effect.fnUntraced(function* (directory: string, run: string) {
  const folders = yield* makeRunFolders
  const found = yield* folders.readConfig(join(directory, run))
  if (found?.read._tag !== "Text") return undefined
  const config = yield* parse(found.read.text, found.file)
  const place = { from: { source: found.file }, baseDir: directory, model: run }
  const { agent, train, validation } = yield* openRunParts(config, place)
  let asked: LmRequest | undefined
  const asking: LmService = {
    complete: (request) =>
      Effect.suspend(() => {
        asked ??= request
        return Effect.fail(lmError(run, "rejected", "only the request is needed"))
      }),
  }
  const made = yield* Effect.provideService(agent.make, Lm, asking)
  const env = yield* (validation ?? train).tasks.at(0)
  yield* Effect.ignore(SingleAgent.make(made).play({ id: "example", env, envSeed: config.seed, samplingSeed: 0 }))
  return asked && { messages: asked.messages, max_tokens: config.sampling.maxTokens }
})

/**
 * Makes the body of a request to one of the served models that a run of the trainer has trained. Returns undefined if no
 * run is served yet.
 */
export const exampleRequest = Effect.fnUntraced(function* (
  { directory, run: named }: TrainerFolder,
  models: ReadonlyArray<string>,
) {
  for (const run of named === null ? yield* runsIn(directory) : [named]) {
    if (!models.includes(run)) continue
    const request = yield* onlyKnown(Effect.orElseSucceed(firstRequest(directory, run), () => undefined))
    if (request === undefined) continue
    const messages = request.messages.map(({ role, content }) => ({ role, content }))
    return { model: run, temperature: 0, messages, max_tokens: request.max_tokens, clip_max_tokens: true }
  }
  return undefined
}, Effect.provide(platform))
