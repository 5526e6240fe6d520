/**
 * Declares the service that plays the tasks of a trainer's runs on other machines, for a trainer with `orchestrators:
 * outside`. `orchestratorJobs-node.ts` implements it. Without this service, another program such as `effect orchestrate` must
 * play them.
 *
 * @example
 * ```ts
 * const { play, failed } = yield* openPlacement({ outputDirectory: "outputs", deadlineSeconds: 120 })
 * yield* Effect.raceAllFirst([training, play({ id: "run_a" }), failed])
 * ```
 */
import { Context, Effect, Option, type Scope } from "effect"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { Dispatcher } from "../../spread/cluster/Dispatcher.ts"
import { TrainerError } from "../TrainerError.ts"

/** A trainer whose runs are played on other machines. */
export interface PlacedTrainer {
  /** The folder that holds the folders of the runs. */
  readonly outputDirectory: string
  /** The number of seconds without a sign of life from the trainer after which its orchestrators end. */
  readonly deadlineSeconds: number
}

/** The orchestrators of a trainer on other machines. */
export interface Placement {
  /** Lets another machine play the tasks of a run, until it is interrupted. A lost machine is replaced. */
  readonly play: (run: { readonly id: string }) => Effect.Effect<never>
  /** Fails when no machine can play the tasks, and another attempt would fail, too. */
  readonly failed: Effect.Effect<never, TrainerError>
}

/** Places orchestrators on other machines, until the scope closes. */
export class PlacedOrchestrators extends Context.Service<
  PlacedOrchestrators,
  { readonly open: (trainer: PlacedTrainer) => Effect.Effect<Placement, TrainerError, Scope.Scope> }
>()("effect-rl/multirun/PlacedOrchestrators") {}

/** Opens the orchestrators of a trainer on other machines. Without the service, nothing is started and nothing fails. */
export const openPlacement = Effect.fnUntraced(function* (trainer: PlacedTrainer) {
  const service = yield* Effect.serviceOption(PlacedOrchestrators)
  if (Option.isSome(service)) return yield* service.value.open(trainer)
  return { play: () => Effect.never, failed: Effect.never } satisfies Placement
})

/** Fails if the service is provided but the config keeps the orchestrators in the trainer's process. */
export const checkPlacement = Effect.fnUntraced(function* ({ orchestrators }: Pick<MultiRunConfig, "orchestrators">) {
  if (orchestrators === "outside" || Option.isNone(yield* Effect.serviceOption(PlacedOrchestrators))) return
  return yield* new TrainerError({
    message: "orchestrators: expected outside, found inside; only then can other machines play the tasks of the runs",
  })
})

/** Returns a warning if the user named a cluster that the trainer does not use. */
export const idleCluster = Effect.fnUntraced(function* ({ trainer: { ranks } }: Pick<MultiRunConfig, "trainer">) {
  const hasJobs = ranks > 1 || Option.isSome(yield* Effect.serviceOption(PlacedOrchestrators))
  if (hasJobs || (yield* Dispatcher).inFlight === undefined) return []
  return [
    "the cluster has nothing to do: other machines compute as ranks (trainer.ranks above 1), or play the tasks of runs (orchestrators: outside, and --server)",
  ]
})
