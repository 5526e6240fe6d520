/** Starts an orchestrator in this process for each run that is trained, and stops it when the run leaves. */
import { Effect, References, type Scope } from "effect"
import { isMachineFault } from "../../base/files/files.ts"
import type { LmService } from "../../agents/lm/Lm.ts"
import type * as Lms from "../../agents/lm/Lms.ts"
import { onlyKnown } from "../../base/trust/Trust.ts"
import type { BaseModel } from "../baseModel.ts"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { persistently } from "../outside/persistence.ts"
import { Runs } from "../runs/Runs.ts"
import type { DiscoveredRun, RunSlot } from "../runs/RunSlot.ts"
import { makeSampleReaders, type SampleReaders } from "../teacher/sampleReaders.ts"
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

/** The models of the runs, which play their tasks. */
interface RunPolicies {
  readonly of: (run: DiscoveredRun) => LmService
  /** Frees the model of a run that has left. */
  readonly release: (run: RunSlot) => Effect.Effect<void>
}

/**
 * Registers the hooks that start and stop orchestrators. Calls `conclude` when a run has reached its last step and is
 * validated. If an orchestrator fails, its run is evicted.
 */
export const registerOrchestrators = Effect.fnUntraced(function* (
  prepared: Prepared,
  policies: RunPolicies,
  orchestrationOf: (run: RunSlot, parts: Parts) => Orchestration,
  conclude: (run: RunSlot) => Effect.Effect<void, { readonly message: string }>,
) {
  const runs = yield* Runs
  const fibers = yield* makeRunFibers
  const context = yield* Effect.context<Lms.LmNeeds | Scope.Scope>()
  const { base, baseDir, settings } = prepared
  const { trainer: sizes } = settings
  // If the weights are on a server, nothing can be computed with them here.
  const readers = sizes.type === "local" ? yield* makeSampleReaders({ base, baseDir, sizes }) : undefined
  const partsOf = (run: DiscoveredRun) =>
    onlyKnown(Effect.provideContext(openRun(prepared, policies, run, readers), context))
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
      yield* policies.release(run)
    }),
  })
})

/** Returns the name of a run's model: its id or, without adapters, the name of the base model, which it trains itself. */
export const modelNameOf = ({ base, settings }: Pick<Prepared, "base" | "settings">, { id }: DiscoveredRun): string =>
  settings.trainer.lora === null ? base.name : id

/** Opens the agent and the data sets of a run. */
const openRun = Effect.fnUntraced(function* (
  prepared: Prepared,
  policies: RunPolicies,
  run: DiscoveredRun,
  readers: SampleReaders | undefined,
) {
  const { base, baseDir, settings } = prepared
  const model = modelNameOf(prepared, run)
  const { width, enableRouterReplay: routerReplay } = settings.trainer
  const parts = yield* openOrchestration(run, { language: base, baseDir, model, width, readers })
  return { ...parts, policy: policies.of(run), routerReplay } satisfies Parts
})
