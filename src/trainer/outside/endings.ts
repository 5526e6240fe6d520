/**
 * Ends the runs of a trainer whose orchestrators work in other processes. A run has ended when it has reached its last step
 * and the validation of that step is in its folder.
 */
import { Effect, type FileSystem, type Path, type Scope } from "effect"
import type * as Lms from "../../agents/lm/Lms.ts"
import { onlyKnown } from "../../base/trust/Trust.ts"
import { openRunFolder } from "../runs/guardedFolder.ts"
import * as Layout from "../Layout.ts"
import { hasValidation } from "../records/reports.ts"
import { openRunParts } from "../config/runParts.ts"
import { makeRunFibers } from "../orchestrator/runFibers.ts"
import { Runs } from "../runs/Runs.ts"
import type { RunSlot } from "../runs/RunSlot.ts"
import { isGone } from "../TrainerError.ts"

/** Waits until the validation of a run's last step exists, if the run has validations. */
const awaitValidation = Effect.fnUntraced(function* (run: RunSlot, lastStep: number) {
  const { validation, validationDataset } = run.config
  if (validationDataset === null || validation.every === 0) return
  const folder = yield* openRunFolder(run)
  while (!(yield* hasValidation(folder, lastStep))) yield* Effect.sleep("100 millis")
})

/**
 * Registers the hooks that end runs: when a run is trained and validated, calls `conclude` and frees the run's index for a
 * waiting run. Also checks that the agent and the data sets of each config can be opened; otherwise the config is invalid.
 * `play` runs while a run is trained. `baseDir` is the folder that relative paths start from.
 */
export const registerEndings = Effect.fnUntraced(function* (
  baseDir: string,
  conclude: (run: RunSlot) => Effect.Effect<void, { readonly message: string }>,
  play: (run: RunSlot) => Effect.Effect<never>,
) {
  const runs = yield* Runs
  const context = yield* Effect.context<Lms.LmNeeds | FileSystem.FileSystem | Path.Path | Scope.Scope>()
  const fibers = yield* makeRunFibers
  yield* runs.register({
    validation: ({ id, directory, config }) => {
      const place = { from: { source: `${directory}/${Layout.configs}` }, baseDir, model: id }
      return onlyKnown(Effect.asVoid(Effect.provideContext(openRunParts(config, place), context)))
    },
    postCreation: Effect.fnUntraced(function* (run) {
      const { maxSteps } = run.config
      if (maxSteps === null) return yield* fibers.start(run, play(run))
      const ending = Effect.andThen(awaitValidation(run, maxSteps), conclude(run)).pipe(
        Effect.andThen(runs.finish(run.index)),
        // A run whose folder is gone is not failed here: `Runs` notices that by itself.
        Effect.catchIf(isGone, () => Effect.void),
        Effect.provideContext(context),
      )
      yield* fibers.start(run, Effect.raceFirst(ending, play(run)))
    }),
    deletion: fibers.stop,
  })
})
