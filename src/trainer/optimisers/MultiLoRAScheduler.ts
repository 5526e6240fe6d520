/**
 * Sets the learning rates of all runs of a multi-run trainer, by the schedule in each run's config. The rate depends only on
 * the number of steps that the run has made, so a resumed run continues with the same rates.
 *
 * @example
 * ```ts
 * const scheduler = MultiLoRAScheduler.make(optimizer)
 * yield* optimizer.step(ready)
 * scheduler.step(ready) // the runs that were ready get the learning rate of their next step
 * ```
 */
import { Effect, Schema } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { naturalInt } from "../../base/config/fields.ts"
import { GraphError } from "../../tensor/graph/GraphError.ts"
import { learningRateOf } from "../config/OrchestratorConfig.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import type { MultiLoRAOptimizer, RunReference } from "./MultiLoRAOptimizer.ts"
import { TrainerError } from "../TrainerError.ts"

/** The state of a run's schedule in a checkpoint. */
export const SchedulerState = Schema.Struct({ step: naturalInt })
export type SchedulerState = typeof SchedulerState.Type

interface Scheduled {
  readonly rateOf: (step: number) => number
  step: number
}

export interface MultiLoRAScheduler {
  /** Adds a step to each run that was updated, and sets the learning rate of its next step. */
  readonly step: (ready: ReadonlyArray<RunReference>) => void
  /** Returns the number of steps of a run, for its checkpoint; undefined if the run has no optimiser. */
  readonly stateDictOf: (run: RunReference) => SchedulerState | undefined
  /** Sets the number of steps of a run, and the learning rate of its next step. */
  readonly loadStateDict: (run: RunReference, state: SchedulerState) => Effect.Effect<void, TrainerError>
}

/** Makes the schedules. A run begins with the step of its progress, which a resumed run has from its checkpoint. */
export const make = (optimizer: MultiLoRAOptimizer): MultiLoRAScheduler => {
  const schedules = new WeakMap<RunSlot, Scheduled>()
  const goTo = (slot: RunSlot, scheduled: Scheduled, step: number): void => {
    scheduled.step = step
    optimizer.setLearningRate(slot, scheduled.rateOf(step))
  }
  optimizer.registerPostCreationCallback((_, slot) =>
    Effect.map(
      attempt(() => learningRateOf(slot.config), GraphError),
      (rateOf) => {
        const scheduled = { rateOf, step: 0 }
        schedules.set(slot, scheduled)
        goTo(slot, scheduled, slot.progress.step)
      },
    ),
  )
  const find = ({ index, generation }: RunReference) => {
    const slot = optimizer.slots().find((slot) => slot.index === index && slot.generation === generation)
    const scheduled = slot === undefined ? undefined : schedules.get(slot)
    return slot === undefined || scheduled === undefined ? undefined : { slot, scheduled }
  }
  return {
    step: (ready) => {
      for (const { slot, scheduled } of ready.flatMap((run) => find(run) ?? []))
        goTo(slot, scheduled, scheduled.step + 1)
    },
    stateDictOf: (run) => {
      const scheduled = find(run)?.scheduled
      return scheduled === undefined ? undefined : { step: scheduled.step }
    },
    loadStateDict: (run, { step }) =>
      Effect.suspend(() => {
        const entry = find(run)
        if (entry === undefined)
          return Effect.fail(TrainerError.at(`run ${run.index}, generation ${run.generation}`, "it has no schedule"))
        goTo(entry.slot, entry.scheduled, step)
        return Effect.void
      }),
  }
}
