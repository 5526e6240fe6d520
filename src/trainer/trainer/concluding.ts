/** Begins runs, ends their steps and saves them, wherever their gradients are computed. */
import { Effect } from "effect"
import { meanMetrics } from "../../rl/losses/Losses.ts"
import type { Runs } from "../runs/Runs.ts"
import { isAtEnd, type RunSlot } from "../runs/RunSlot.ts"
import { beginRun, endRun, repairRun, saveRun, tidyRun, type TrainedRuns } from "./trainedRuns.ts"

/** Describes one update of a run. */
export interface Updated {
  readonly run: RunSlot
  /** The number of updates of the run, including this one. */
  readonly step: number
  /** The loss, the learning rate, the norm of the gradient, and the metrics of the objective. */
  readonly metrics: Readonly<Record<string, number>>
}

/** Registers the hooks that begin, record and end runs. */
export const registerRuns = Effect.fnUntraced(function* (runs: Runs["Service"], trained: TrainedRuns) {
  const { records } = trained
  yield* runs.register({
    discovered: (run) => repairRun(trained, run),
    creation: (run) => beginRun(trained, run),
    deletion: (run) => endRun(trained, run),
  })
  if (!runs.isMaster) return
  if (records !== undefined)
    yield* runs.register({
      creation: (run) => records.begin(run, run.own.training?.recorded),
      deletion: records.end,
    })
  yield* runs.register({ creation: tidyRun })
})

/** The parts of a trainer that learn of each update. */
interface Concluding {
  readonly isMaster: boolean
  readonly trained: TrainedRuns
  /** Receives each update, before a checkpoint of its step is saved. */
  readonly report: (update: Updated) => Effect.Effect<void, { readonly message: string }>
  /** Makes new weights of a run available. */
  readonly publish: (run: RunSlot) => Effect.Effect<void, { readonly message: string }>
}

/** Ends the step of a run after its update: reports it, and saves a checkpoint if one is due. */
export const conclude = Effect.fnUntraced(function* (
  { isMaster, trained, report, publish }: Concluding,
  run: RunSlot,
  figures: Readonly<Record<string, number>>,
) {
  const { progress, config, own } = run
  const { training } = own
  if (training === undefined) return
  training.boundary = { ...progress }
  const metrics = { ...figures, "losses/loss": training.loss, ...meanMetrics(training.sums) }
  training.loss = 0
  training.sums = { tokens: 0 }
  yield* report({ run, step: progress.step, metrics })
  const { every } = config.checkpoint
  if (isAtEnd(run) || (every > 0 && progress.step % every === 0)) yield* saveRun(trained, run)
  // The last weights are published later, after all updates of the turn: publishing them ends the run, so all files of the last
  // step must be written before.
  if (isMaster && !isAtEnd(run)) yield* publish(run)
})

/** Publishes the last weights of the runs that have reached their last step, which ends these runs. */
export const publishLast = (
  { isMaster, fail }: Pick<Runs["Service"], "isMaster" | "fail">,
  updated: ReadonlyArray<RunSlot>,
  publish: Concluding["publish"],
) =>
  Effect.forEach(
    isMaster ? updated.filter(isAtEnd) : [],
    (run) => Effect.catch(publish(run), (error) => fail(run.index, error)),
    { discard: true },
  )

/** Saves a checkpoint of each run. A failure is only logged, so that the other runs are saved. */
export const saveAll = ({ slots }: Pick<Runs["Service"], "slots">, trained: TrainedRuns): Effect.Effect<void> =>
  Effect.suspend(() =>
    Effect.forEach(
      slots(),
      (run) =>
        Effect.catch(saveRun(trained, run), ({ message }: { readonly message: string }) =>
          Effect.logWarning(`${run.id}: its checkpoint cannot be saved: ${message}`),
        ),
      { discard: true },
    ),
  )
