/** Starts and ends the orchestrators of the runs that are trained, each with the agent and the data sets of its run. */
import { Cause, Effect, Fiber, Option, References, type Scope } from "effect"
import { messageOf } from "../../config/text.ts"
import { Engine } from "../../inference/Engine.ts"
import type { Answer, LmRequest } from "../../lm/Chat.ts"
import * as EngineLm from "../../lm/engine/EngineLm.ts"
import { writtenAnswer } from "../../lm/engine/writtenAnswer.ts"
import { Lm } from "../../lm/Lm.ts"
import { lmError } from "../../lm/LmError.ts"
import type * as Lms from "../../lm/Lms.ts"
import type { BaseModel } from "../baseModel.ts"
import * as Layout from "../Layout.ts"
import type { MultiRunConfig } from "../MultiRunConfig.ts"
import { Runs } from "../Runs.ts"
import { openRunParts } from "../runParts.ts"
import type { DiscoveredRun, RunSlot } from "../RunSlot.ts"
import { orchestrate, type Orchestration } from "./Orchestrator.ts"

/** The parts of a trainer that orchestrators need. */
interface Prepared {
  readonly base: BaseModel
  /** The folder that relative paths start from. */
  readonly baseDir: string
  readonly settings: Pick<MultiRunConfig, "trainer">
}

type Parts = Omit<Orchestration, "run" | "awaitWeights">

/**
 * Makes an orchestrator for each run while it is trained, calls `conclude` when the run has reached its last step and is
 * validated, and `forget` when it leaves. An orchestrator that fails evicts its run.
 */
export const registerOrchestrators = Effect.fnUntraced(function* (
  prepared: Prepared,
  forget: (generation: number) => void,
  orchestrationOf: (run: RunSlot, parts: Parts) => Orchestration,
  conclude: (run: RunSlot) => Effect.Effect<void, { readonly message: string }>,
) {
  const runs = yield* Runs
  const engine = yield* Engine
  const fibers = new Map<number, Fiber.Fiber<void>>()
  const context = yield* Effect.context<Engine | Lms.Needs | Scope.Scope>()
  const partsOf = (run: DiscoveredRun) => Effect.provideContext(openRun(prepared, run), context)
  yield* runs.register({
    validation: (run) => Effect.asVoid(partsOf(run)),
    postCreation: Effect.fnUntraced(function* (run) {
      const orchestration = orchestrationOf(run, yield* partsOf(run))
      const { maxSteps } = run.config
      const ending =
        maxSteps === null
          ? Effect.void
          : orchestration
              .awaitWeights(maxSteps)
              .pipe(Effect.andThen(conclude(run)), Effect.andThen(runs.finish(run.index)))
      const playing = orchestrate(orchestration, run.progress.step).pipe(
        Effect.andThen(ending),
        // Agents warn of every answer that is cut off, which is usual while a model learns; rewards count them.
        Effect.provideService(References.MinimumLogLevel, "Error"),
        Effect.catchCause((cause) =>
          Cause.hasInterruptsOnly(cause)
            ? Effect.failCause(cause)
            : runs.evict(run.index, `its orchestrator failed: ${reasonOf(cause)}`),
        ),
        Effect.orDie,
      )
      fibers.set(run.generation, yield* Effect.provideContext(Effect.forkScoped(playing), context))
    }),
    deletion: Effect.fnUntraced(function* ({ generation, id }) {
      const fiber = fibers.get(generation)
      fibers.delete(generation)
      if (fiber !== undefined) yield* Fiber.interrupt(fiber)
      forget(generation)
      if (prepared.settings.trainer.lora !== null) yield* Effect.ignore(engine.unloadAdapter(id))
    }),
  })
})

/** Returns the message of an error, or of a defect. */
const reasonOf = (cause: Cause.Cause<{ readonly message: string }>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onSome: ({ message }) => message,
    onNone: () => messageOf(Cause.squash(cause)),
  })

/** Opens the agent and the data sets of a run. */
const openRun = Effect.fnUntraced(function* (
  { base, baseDir, settings }: Prepared,
  { id, directory, config }: DiscoveredRun,
) {
  const engine = yield* Engine
  const { topP, topK, minP, stopTokenIds } = config.sampling
  // Without adapters, the model itself is trained.
  const model = settings.trainer.lora === null ? base.name : id
  const from = { source: `${directory}/${Layout.configs}` }
  const { train, validation, agent } = yield* openRunParts(config, { from, baseDir, model })
  const sampling = { topP, minP, stopTokenIds, ...(topK === null ? {} : { topK }) }
  const provider = EngineLm.make({ engine, chat: base.chat, model, sampling })
  const encode = (request: LmRequest, move: Answer) =>
    Effect.mapError(writtenAnswer(base.chat, request, move, { eos: base.eosIds[0] ?? null }), ({ message }) =>
      lmError(id, "rejected", message, { attempts: 1 }),
    )
  return {
    tasks: train.tasks,
    validation: validation?.tasks ?? null,
    agentOf: (lm) => Effect.provideService(agent.make, Lm, lm),
    policy: provider,
    encode,
  } satisfies Parts
})
