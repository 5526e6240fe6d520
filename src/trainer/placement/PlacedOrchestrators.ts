/**
 * Declares the service by which a trainer with `orchestrators: outside` has the tasks of its runs played on other machines;
 * `orchestratorJobs-node.ts` implements it. Without it, somebody else plays them, such as `effect orchestrate`.
 *
 * @example
 * ```ts
 * const { play, failed } = yield* openPlacement({ outputDirectory: "outputs", deadlineSeconds: 120 })
 * yield* Effect.raceAllFirst([training, play(run), failed])
 * ```
 */
import { Context, Effect, Option, type Scope } from "effect"
import type { MultiRunConfig } from "../config/MultiRunConfig.ts"
import { Dispatcher } from "../../spread/cluster/Dispatcher.ts"
import { MultiRunError } from "../MultiRunError.ts"

/** The trainer whose runs are played elsewhere. */
export interface PlacedTrainer {
  /** The folder that holds the folders of the runs. */
  readonly outputDirectory: string
  /** The seconds without a sign of life of the trainer after which its orchestrators end. */
  readonly deadlineSeconds: number
}

/** The orchestrators of a trainer on other machines. */
export interface Placement {
  /** Has the tasks of a run played until it is interrupted. A machine that is lost is replaced by another one. */
  readonly play: (run: { readonly id: string }) => Effect.Effect<never>
  /** Fails when no machine can play the tasks, for a reason that another attempt does not remove. */
  readonly failed: Effect.Effect<never, MultiRunError>
}

/** Places orchestrators on other machines, until the scope closes. */
export class PlacedOrchestrators extends Context.Service<
  PlacedOrchestrators,
  { readonly open: (trainer: PlacedTrainer) => Effect.Effect<Placement, MultiRunError, Scope.Scope> }
>()("effect-rl/multirun/PlacedOrchestrators") {}

/** Opens the orchestrators of a trainer, if a service places them. */
export const openPlacement = Effect.fnUntraced(function* (trainer: PlacedTrainer) {
  const service = yield* Effect.serviceOption(PlacedOrchestrators)
  if (Option.isSome(service)) return yield* service.value.open(trainer)
  return { play: () => Effect.never, failed: Effect.never } satisfies Placement
})

/** Fails if orchestrators shall be placed on other machines, and the config keeps them in the trainer's process. */
export const checkPlacement = Effect.fnUntraced(function* ({ orchestrators }: Pick<MultiRunConfig, "orchestrators">) {
  if (orchestrators === "outside" || Option.isNone(yield* Effect.serviceOption(PlacedOrchestrators))) return
  return yield* new MultiRunError({
    message: "orchestrators: expected outside, found inside; only then can other machines play the tasks of the runs",
  })
})

/** Returns a warning if a cluster has nothing to do for a trainer. */
export const idleCluster = Effect.fnUntraced(function* ({ trainer: { ranks } }: Pick<MultiRunConfig, "trainer">) {
  const hasJobs = ranks > 1 || Option.isSome(yield* Effect.serviceOption(PlacedOrchestrators))
  if (hasJobs || (yield* Dispatcher).inFlight === undefined) return []
  return [
    "the cluster has nothing to do: other machines compute as ranks (trainer.ranks above 1), or play the tasks of runs (orchestrators: outside, and --server)",
  ]
})
