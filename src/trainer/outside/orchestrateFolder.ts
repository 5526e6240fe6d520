/**
 * Plays the tasks of the runs of a trainer that works in another process. An inference server gives the answers. The trainer
 * and this process communicate only through files in the trainer's folder, and a step's samples are written as a whole. So
 * this process can be stopped at any moment and started again: it skips steps whose samples are complete.
 *
 * @example
 * ```ts
 * const server = yield* connect({ url: "http://127.0.0.1:8000", apiKey: null, report: () => Effect.void })
 * yield* orchestrateFolder({ trainer, only: null, server, owner, report: () => Effect.void })
 * ```
 */
import { Cause, Deferred, Effect, Fiber, FileSystem, Path, References, type Scope } from "effect"
import { isMachineFault } from "../../base/files/files.ts"
import type * as LmDirectory from "../../decoder/huggingFace/LmDirectory.ts"
import type * as Lms from "../../agents/lm/Lms.ts"
import type { LmError } from "../../agents/lm/LmError.ts"
import { type Language, openLanguage } from "../baseModel.ts"
import { openRunFolder } from "../runs/guardedFolder.ts"
import * as Layout from "../Layout.ts"
import { isGone, TrainerError } from "../TrainerError.ts"
import { reasonOf } from "../orchestrator/failure.ts"
import { openOrchestration } from "../orchestrator/openOrchestration.ts"
import { orchestrate } from "../orchestrator/Orchestrator.ts"
import { makePause } from "../runs/pause.ts"
import { makeRunFolders } from "../runs/runFolder.ts"
import { newestStable } from "../runs/stepFolders.ts"
import type { FileTree } from "../../run/store/FileTree.ts"
import { refuseLinkOnPath } from "../../run/store/links.ts"
import { type Owner, tryLock } from "../../run/store/lock.ts"
import { RunStoreError, runStoreError } from "../../run/store/RunStoreError.ts"
import type { TrainerFolder } from "../trainerFolder.ts"
import { newestBroadcast } from "../weights/receive.ts"
import type { InferenceServer } from "./InferenceServer.ts"
import { type Attempt, type Outcome, persistently } from "./persistence.ts"
import { makeRunStates, type RunState, type TrainedRun } from "./runStates.ts"

/** An event of a run that this process reports to its user. */
export type PlayEvent =
  | { readonly _tag: "Begun"; readonly id: string; readonly step: number }
  /**
   * The run has left. `reason` is null if it has reached its last step. `isEvictedHere` tells whether this process evicted
   * it.
   */
  | { readonly _tag: "Ended"; readonly id: string; readonly reason: string | null; readonly isEvictedHere: boolean }
  /** The run's orchestrator begins again, because the trainer was restarted or the disk failed. */
  | { readonly _tag: "Again"; readonly id: string; readonly reason: string }
  /** The run's orchestrator has failed too often at the same step, so this process no longer plays the run. */
  | { readonly _tag: "GivenUp"; readonly id: string; readonly reason: string }

interface PlayOptions {
  readonly trainer: TrainerFolder
  /** The run to play, by the name of its folder; null plays all. */
  readonly only: string | null
  readonly server: InferenceServer
  /** The name of this process. It is written into the lock of each run, so that no two processes play the same run. */
  readonly owner: Owner
  readonly report: (event: PlayEvent) => Effect.Effect<void>
}

type PlayError = TrainerError | LmError | LmDirectory.OpenError

/** An orchestrator at work. It is complete when all samples and validations are written, or when the run was evicted. */
interface Playing {
  readonly token: string
  readonly fiber: Fiber.Fiber<Outcome>
}

/** Plays until every run has reached its last step, was evicted or was given up. Returns the states of the runs. */
export const orchestrateFolder = Effect.fnUntraced(function* ({
  trainer: { directory, settings },
  only,
  server,
  owner,
  report,
}: PlayOptions): Effect.fn.Return<ReadonlyArray<RunState>, PlayError, Lms.LmNeeds | Scope.Scope> {
  const language = yield* openLanguage(settings.model, directory)
  const readStates = yield* makeRunStates(directory)
  const pause = yield* makePause(directory, "500 millis", true)
  const playing = new Map<string, Playing>()
  const ended = new Set<string>()
  /** The runs that this process has evicted, because their orchestrators failed. */
  const evicted = new Set<string>()
  /** The runs whose orchestrators have failed too often. */
  const givenUp = new Set<string>()
  const conflict = yield* Deferred.make<never, TrainerError>()

  const begin = Effect.fnUntraced(function* (run: TrainedRun) {
    const attempt = lockRun(run, owner).pipe(
      Effect.catchTag("TrainerError", (error) => Effect.andThen(Deferred.fail(conflict, error), Effect.never)),
      Effect.andThen(play({ run, language, baseDir: directory, sizes: settings.trainer, server, evicted, report })),
      Effect.catch(({ message }) => Effect.succeed({ _tag: "Again", step: -1, reason: message } as const)),
      Effect.scoped,
    )
    const again = (reason: string) => report({ _tag: "Again", id: run.id, reason })
    playing.set(run.id, { token: run.origin.token, fiber: yield* Effect.forkScoped(persistently(attempt, again)) })
  })

  const stop = Effect.fnUntraced(function* (id: string) {
    const fiber = playing.get(id)?.fiber
    playing.delete(id)
    if (fiber !== undefined) yield* Fiber.interrupt(fiber)
  })

  /** Handles an orchestrator that has ended: if it has failed too often, gives its run up. */
  const collect = Effect.fnUntraced(function* (id: string, { fiber }: Playing) {
    const exit = fiber.pollUnsafe()
    if (exit === undefined) return
    const outcome = yield* exit
    // The fiber stays in the map, so that the run is not started again before the trainer has ended it.
    if (outcome._tag === "Complete" || givenUp.has(id)) return
    givenUp.add(id)
    yield* report({ _tag: "GivenUp", id, reason: outcome.reason })
  })

  const follow = Effect.fnUntraced(function* (state: RunState) {
    const { id } = state
    if (state._tag !== "Trained") {
      yield* stop(id)
      if (state._tag === "Waiting" || state._tag === "Unconfigured") return void ended.delete(id)
      if (ended.has(id)) return
      ended.add(id)
      const reason = "reason" in state ? state.reason : null
      return yield* report({ _tag: "Ended", id, reason, isEvictedHere: state._tag === "Evicted" && evicted.has(id) })
    }
    ended.delete(id)
    const before = playing.get(id)
    if (before?.token === state.run.origin.token) return
    givenUp.delete(id)
    yield* stop(id)
    yield* begin(state.run)
  })

  const following = Effect.gen(function* () {
    while (true) {
      for (const [id, one] of playing) yield* collect(id, one)
      const states = (yield* readStates).filter(({ id }) => only === null || id === only)
      for (const id of playing.keys()) if (!states.some((state) => state.id === id)) yield* stop(id)
      for (const state of states) yield* follow(state)
      if (isOver(states, givenUp)) return states
      yield* pause
    }
  })
  return yield* Effect.raceAllFirst([following, server.refused, Deferred.await(conflict)])
})

/** Locks a run, so that no other process writes the same samples. Fails if another living process plays the run. */
const lockRun = Effect.fnUntraced(function* ({ id, directory }: TrainedRun, owner: Owner) {
  const access = { fs: yield* FileSystem.FileSystem, path: yield* Path.Path }
  const file = access.path.join(directory, Layout.playerLock)
  yield* Effect.mapError(refuseLinkOnPath(access, directory, file, "any"), (error) =>
    runStoreError("lock", file, error),
  )
  const holder = yield* tryLock(file, owner)
  if (holder === undefined) return
  const remedy = `stop it, or play other runs with --run; if it no longer exists, remove ${file}`
  return yield* new TrainerError({ message: `${id}: ${holder} plays this run already: ${remedy}` })
})

/** Tells whether nothing is left to play. A folder without a config does not count as a run. */
const isOver = (states: ReadonlyArray<RunState>, givenUp: ReadonlySet<string>): boolean => {
  const runs = states.filter(({ _tag }) => _tag !== "Unconfigured")
  return runs.length > 0 && runs.every(({ _tag, id }) => givenUp.has(id) || (_tag !== "Waiting" && _tag !== "Trained"))
}

interface PlayedRun {
  readonly run: TrainedRun
  readonly language: Language
  readonly baseDir: string
  readonly sizes: Pick<TrainerFolder["settings"]["trainer"], "width" | "enableRouterReplay">
  readonly server: InferenceServer
  /** The ids of the runs that this process has evicted; this run is added if it is evicted. */
  readonly evicted: Set<string>
  readonly report: PlayOptions["report"]
}

/**
 * Returns the first step that has no samples. Samples that no checkpoint needs may be removed; but if a step has a broadcast,
 * all steps before it are trained.
 */
export const firstStepOf = Effect.fnUntraced(function* (tree: FileTree) {
  const played = (yield* newestStable(tree, Layout.rollouts)) ?? -1
  return Math.max(played + 1, (yield* newestBroadcast(tree)) ?? 0)
})

/** Tells whether an error is a failed write, for which the run is not to blame: a full disk may have space again later. */
const isFailedWrite = (error: unknown): boolean =>
  error instanceof RunStoreError && (error.operation === "write" || error.operation === "repair")

/**
 * Plays one run from the first step that has no samples. If the run is at fault, it is evicted with the reason; otherwise the
 * attempt can be repeated.
 */
const play = ({
  run,
  language,
  baseDir,
  sizes: { width, enableRouterReplay: routerReplay },
  server,
  evicted,
  report,
}: PlayedRun): Effect.Effect<Attempt, never, Lms.LmNeeds> => {
  let step = -1
  return Effect.gen(function* () {
    const { id, config } = run
    const parts = yield* openOrchestration(run, { language, baseDir, model: id, width })
    const model = yield* server.modelOf(id, config.sampling)
    const { tree } = yield* openRunFolder(run)
    yield* tree.repair(Layout.rollouts)
    step = yield* firstStepOf(tree)
    yield* report({ _tag: "Begun", id, step })
    yield* orchestrate({ run, ...parts, ...model, routerReplay }, step)
    return { _tag: "Complete" } as const
  }).pipe(
    // Agents log a warning for every answer that is cut off, which is common while a model learns; the rewards count these.
    Effect.provideService(References.MinimumLogLevel, "Error"),
    Effect.catch((error): Effect.Effect<Attempt, { readonly message: string }> => {
      const isOfRollouts = error instanceof TrainerError && error.reason === "rollouts"
      if (isOfRollouts || isGone(error) || isFailedWrite(error) || isMachineFault(error))
        return Effect.succeed({ _tag: "Again", step, reason: error.message })
      return Effect.fail(error)
    }),
    Effect.catchCause(
      Effect.fnUntraced(function* (cause): Effect.fn.Return<Attempt, never, Lms.LmNeeds> {
        if (Cause.hasInterruptsOnly(cause)) return yield* Effect.interrupt
        const { writeEviction } = yield* makeRunFolders
        const reason = `its orchestrator failed: ${reasonOf(cause)}`
        // Uninterruptible, because another fiber may see the file at once, and interrupt this one before the run is in the
        // set.
        const isWritten = yield* writeEviction(run.directory, run.origin, reason).pipe(
          Effect.tap((written) => Effect.sync(() => (written ? evicted.add(run.id) : evicted))),
          Effect.uninterruptible,
        )
        return isWritten ? { _tag: "Complete" } : { _tag: "Again", step, reason }
      }),
    ),
  )
}
