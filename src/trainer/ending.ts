/**
 * Reads the end of a run from its folder: the weights of its last checkpoint, and its validations. A resumed trainer reads
 * runs that ended earlier from their folders, so its result does not depend on where it was interrupted.
 */
import { Effect, type FileSystem, type Path } from "effect"
import type { NamedArray } from "../tensor/graph/Parameters.ts"
import type { CheckpointError } from "../run/Checkpoint.ts"
import { digestOfArrays } from "../run/digest.ts"
import { type Evaluation, evaluationOf, summaryOf } from "../run/evaluation.ts"
import { type RunResult, speedOf } from "../run/RunResult.ts"
import { openRunFolder, type RunFolder, type RunFolderError } from "./runs/guardedFolder.ts"
import * as Layout from "./Layout.ts"
import { TrainerError } from "./TrainerError.ts"
import { type Validation, validationsIn } from "./records/reports.ts"
import type { Progress } from "./runs/TrainedRun.ts"
import { runStateIn } from "./trainer/checkpointParts.ts"
import { loadCheckpoint } from "./weights/checkpoints.ts"
import { highest } from "../base/statistics/extremes.ts"

/** The final state of a run. */
interface Ending {
  readonly id: string
  readonly progress: Readonly<Progress>
  /** The weights; none if they are on a server. */
  readonly weights: Readonly<Record<string, NamedArray>>
  readonly validations: ReadonlyArray<Pick<Validation, "step" | "scores">>
}

/**
 * Reads the progress and weights of a run's checkpoint at its last step, and its validations. If `lastStep` is left out, it
 * is read from the folder of a run that has ended.
 */
export const readEnding = Effect.fnUntraced(function* (
  run: Pick<RunFolder, "id" | "directory">,
  lastStep?: number,
): Effect.fn.Return<Ending, RunFolderError | CheckpointError, FileSystem.FileSystem | Path.Path> {
  const folder = yield* openRunFolder(run)
  const step = lastStep ?? Number(yield* folder.tree.readText(Layout.finished))
  const checkpoint = yield* loadCheckpoint(folder, step)
  if (checkpoint === undefined)
    return yield* new TrainerError({
      message: `${run.directory}: expected the checkpoint of its last step, found none`,
    })
  const { progress } = checkpoint
  const isOnServer = Object.hasOwn(checkpoint.parts, Layout.inCheckpoint.tinker)
  const { weights } = isOnServer ? { weights: {} } : yield* runStateIn(checkpoint.parts)
  const validations = yield* validationsIn(folder, { after: -1, upTo: progress.step })
  return { id: run.id, progress, weights, validations }
})

/** Makes episodes from the scores of a validation. Only their returns are real; lengths and flags are placeholders. */
export const episodesOf = (scores: ReadonlyArray<number>) =>
  scores.map((score) => ({ return: score, length: 1, terminated: true, truncated: false }))

/** Joins the validations that several runs had at the same step, so that there is one learning curve. */
const joined = (evaluations: ReadonlyArray<Evaluation>): ReadonlyArray<Evaluation> =>
  [...Map.groupBy(evaluations, ({ step }) => step)]
    .map(([step, group]) => ({
      step,
      returns: group.flatMap(({ returns }) => returns),
      lengths: group.flatMap(({ lengths }) => lengths),
      terminated: group.reduce((sum, { terminated }) => sum + terminated, 0),
    }))
    .sort((a, b) => a.step - b.step)

/** Joins the last validations of all runs, even if the runs ended at different steps. */
const lastOf = (endings: ReadonlyArray<Ending>): Evaluation | undefined => {
  const last = endings.flatMap(({ validations }) => validations.slice(-1))
  const step = highest(last.map((validation) => validation.step))
  return last.length === 0
    ? undefined
    : evaluationOf(step, { episodes: last.flatMap(({ scores }) => episodesOf(scores)) })
}

interface Spent {
  /** The folder that is named in the result. */
  readonly directory: string
  /** The number of updates that earlier processes made. */
  readonly firstStep: number
  /** The seconds that all processes have worked. */
  readonly seconds: number
  /** The seconds since this process began to train. */
  readonly secondsOfWork: number
}

/** Makes the result of runs that have ended: of a whole trainer, or of one run as if it had been trained alone. */
export const resultOf = Effect.fnUntraced(function* (
  endings: ReadonlyArray<Ending>,
  { directory, firstStep, seconds, secondsOfWork }: Spent,
) {
  const weights: Record<string, NamedArray> = {}
  for (const ending of endings)
    for (const [name, array] of Object.entries(ending.weights)) weights[`${ending.id}/${name}`] = array
  const evaluations = joined(
    endings.flatMap(({ validations }) =>
      validations.map(({ step, scores }) => evaluationOf(step, { episodes: episodesOf(scores) })),
    ),
  )
  const returns = evaluations.flatMap(({ returns }) => returns)
  const steps = endings.reduce((sum, { progress }) => sum + progress.step, 0)
  const metrics: RunResult = {
    runDir: directory,
    steps,
    episodes: endings.reduce((sum, { progress }) => sum + progress.totalSamples, 0),
    meanScore: null,
    meanReturn: null,
    validation: summaryOf(lastOf(endings)),
    failedValidations: 0,
    digest: yield* digestOfArrays({
      ...weights,
      validation: { shape: [returns.length], data: Float32Array.from(returns) },
    }),
    wallSeconds: seconds,
    stepsPerSecond: speedOf(Math.max(0, steps - firstStep), secondsOfWork),
  }
  return { metrics, evaluations }
})
