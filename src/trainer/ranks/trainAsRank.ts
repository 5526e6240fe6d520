/**
 * Trains as a rank other than the master: computes the gradients of its micro-batches, and applies the gradients of all
 * ranks, so that it has the same weights as the master. It does not generate, save or report.
 */
import { Duration, Effect } from "effect"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { openBaseModel } from "../baseModel.ts"
import { replayedExperts } from "../batches/routerReplay.ts"
import { makeTrainer } from "../trainer/Trainer.ts"
import { rankParts } from "./rankParts.ts"
import { isStopped } from "../TrainerError.ts"
import { isLoss } from "./RankProcesses.ts"
import { storeAt } from "./rankStore.ts"
import type { RankTask } from "./RankTask.ts"

/** Trains until the master interrupts it. */
export const trainAsRank = Effect.fnUntraced(
  function* ({ rank, model: modelConfig, trainer: sizes, seed, baseDir, outputDirectory, store: place }: RankTask) {
    const base = yield* openBaseModel(modelConfig, { baseDir, seed })
    const settings = { trainer: sizes }
    const shape = { ...sizes, replayed: replayedExperts(sizes, base.decoder) }
    const { model, services } = rankParts({ settings, base, outputDirectory, rank, store: storeAt(place) })
    const training = Effect.gen(function* () {
      const nothing = () => Effect.void
      const { ranks, rankDeadline: seconds } = shape
      const rankDeadline = Duration.seconds(seconds)
      const trainer = yield* makeTrainer({ model, shape, seed, ranks, rankDeadline, publish: nothing, report: nothing })
      return yield* Effect.forever(trainer.turn)
    })
    return yield* training.pipe(
      // The master has failed with this error, and is about to end all ranks.
      Effect.catchIf(isStopped, () => Effect.never),
      Effect.scoped,
      Effect.provide(services),
    )
  },
  (training, { rank }) =>
    Effect.mapError(training, (error) => {
      const message = `rank ${rank}: ${error.message}`
      return isLoss(error) ? WorkerError.lost(message) : WorkerError.failed(message)
    }),
)
