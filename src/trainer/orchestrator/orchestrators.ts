/** Starts an orchestrator in this process for each run that is trained, and stops it when the run leaves. */
import { Effect, References, type Scope } from "effect"
import { isMachineFault } from "../../base/config/files.ts"
import { Engine } from "../../decoder/inference/Engine.ts"
import * as EngineLm from "../../decoder/engine/EngineLm.ts"
import type * as Lms from "../../agents/lm/Lms.ts"
import { onlyKnown } from "../../base/trust/Trust.ts"
import type { BaseModel } from "../baseModel.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { persistently } from "../outside/persistence.ts"
import { Runs } from "../runs/Runs.ts"
import type { DiscoveredRun, RunSlot } from "../runs/RunSlot.ts"
import { openOrchestration } from "./openOrchestration.ts"
import { orchestrate, type Orchestration } from "./Orchestrator.ts"
import { makeRunFibers } from "./runFibers.ts"

/** The parts of a trainer that orchestrators need. */
export interface Prepared {
  readonly base: BaseModel
  /** The folder that relative paths start from. */
  readonly baseDir: string
  readonly settings: Pick<MultiRunConfig, "trainer">
}

type Parts = Omit<Orchestration, "run" | "awaitWeights">

/**
 * Registers the hooks that start and stop orchestrators. Calls `conclude` when a run has reached its last step and is
 * validated. If an orchestrator fails, its run is evicted.
 */
export const registerOrchestrators = Effect.fnUntraced(function* (
  prepared: Prepared,
  orchestrationOf: (run: RunSlot, parts: Parts) => Orchestration,
  conclude: (run: RunSlot) => Effect.Effect<void, { readonly message: string }>,
) {
  const runs = yield* Runs
  const engine = yield* Engine
  const fibers = yield* makeRunFibers
  const context = yield* Effect.context<Engine | Lms.LmNeeds | Scope.Scope>()
  const partsOf = (run: DiscoveredRun) => onlyKnown(Effect.provideContext(openRun(prepared, run), context))
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
      let fault = { message: "" }
      const played = Effect.suspend(() => orchestrate(orchestration, run.progress.step)).pipe(
        Effect.as({ _tag: "Complete" as const }),
        Effect.catchIf(isMachineFault, (error) => {
          fault = error
          return Effect.succeed({ _tag: "Again" as const, step: run.progress.step, reason: error.message })
        }),
      )
      const again = (reason: string) => Effect.logError(`${run.id}: its orchestrator begins again: ${reason}`)
      const playing = persistently(played, again).pipe(
        Effect.flatMap((outcome) => (outcome._tag === "Complete" ? ending : Effect.fail(fault))),
        // Agents log a warning for every answer that is cut off, which is common while a model learns; the rewards count
        // these.
        Effect.provideService(References.MinimumLogLevel, "Error"),
        Effect.provideContext(context),
        onlyKnown,
      )
      yield* fibers.start(run, playing, (message) => `its orchestrator failed: ${message}`)
    }),
    deletion: Effect.fnUntraced(function* (run) {
      yield* fibers.stop(run)
      if (prepared.settings.trainer.lora !== null) yield* Effect.ignore(engine.unloadAdapter(run.id))
    }),
  })
})

/** Opens the agent and the data sets of a run; its model is in the trainer's engine. */
const openRun = Effect.fnUntraced(function* ({ base, baseDir, settings }: Prepared, run: DiscoveredRun) {
  const engine = yield* Engine
  const { topP, topK, minP, stopTokenIds } = run.config.sampling
  // Without adapters, the run trains the base model itself.
  const model = settings.trainer.lora === null ? base.name : run.id
  const { trainer: sizes } = settings
  const trainer = { base, sizes }
  const parts = yield* openOrchestration(run, { language: base, baseDir, model, width: sizes.width, trainer })
  const sampling = { topP, minP, stopTokenIds, ...(topK === null ? {} : { topK }) }
  return { ...parts, policy: EngineLm.make({ engine, chat: base.chat, model, sampling }) } satisfies Parts
})
