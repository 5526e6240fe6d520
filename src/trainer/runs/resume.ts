/** Determines where a run begins: at the checkpoint that its config names, or at the newest complete one. */
import { Effect, Result, Schema } from "effect"
import { systemMessage } from "../../base/files/files.ts"
import { parsedJson, shortened } from "../../base/text/text.ts"
import * as Layout from "../Layout.ts"
import type { OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import type { RunFolders } from "./runFolder.ts"
import { Progress } from "./TrainedRun.ts"
import { TrainerError } from "../TrainerError.ts"

const isProgress = Schema.is(Progress)

/**
 * Parses the text of a checkpoint's `progress.json`. Returns the progress, or what is wrong with the text. A checkpoint of
 * another program has no such file (undefined): then the totals of tokens and samples begin at 0.
 */
export const progressIn = (text: string | undefined, step: number): Result.Result<Progress, string> => {
  if (text === undefined) return Result.succeed({ step, totalTokens: 0, totalSamples: 0 })
  const progress = parsedJson(text)
  if (!isProgress(progress)) {
    const expected = `{"step": ${step}, "totalTokens": …, "totalSamples": …}`
    return Result.fail(`expected ${expected}, found ${shortened(text.trim())}`)
  }
  return progress.step === step
    ? Result.succeed({ ...progress })
    : Result.fail(`expected step ${step}, found ${progress.step}`)
}

/**
 * Returns the config with which a run begins. `resume_step` counts only once: if the run has already gone back to it and
 * saved a checkpoint since, the result has −1, so the run resumes from its newest checkpoint.
 */
export const withPendingResume = Effect.fnUntraced(function* <C extends Pick<OrchestratorConfig, "resumeStep">>(
  folders: RunFolders,
  directory: string,
  config: C,
) {
  if (config.resumeStep === -1) return config
  const applied = yield* folders.read(directory, Layout.resumed)
  const isApplied = applied._tag === "Text" && applied.text.trim() === String(config.resumeStep)
  return isApplied ? { ...config, resumeStep: -1 } : config
})

/** Returns what is wrong with `max_steps` if it is less than the step at which the run begins; otherwise undefined. */
export const overrunProblem = (
  { step }: Pick<Progress, "step">,
  { maxSteps }: Pick<OrchestratorConfig, "maxSteps">,
): string | undefined =>
  maxSteps === null || step <= maxSteps
    ? undefined
    : `the run has done ${step} steps already; expected at least as many, found ${maxSteps}; to go back, set resume_step (0 begins again)`

/** Returns what is wrong with `resume_step` if the run has no checkpoint of this step; otherwise undefined. */
export const missingProblem = (steps: ReadonlyArray<number>, resumeStep: number): string | undefined => {
  if (resumeStep <= 0 || steps.includes(resumeStep)) return undefined
  const choice = steps.length === 0 ? "there is none" : `there are ${steps.join(", ")}`
  return `expected the step of a complete checkpoint (${choice}), 0 or -1, found ${resumeStep}`
}

/** A usable checkpoint, and the reasons why newer ones are not usable. */
interface Usable<A, Damage> {
  readonly value: A
  readonly skipped: ReadonlyArray<Damage>
}

/**
 * Finds the newest usable checkpoint. `look` returns the content of a checkpoint, or its damage. Returns undefined if there
 * are no checkpoints. If all are damaged, fails with the damage of the newest, because starting again at step 0 would
 * overwrite them.
 */
export const newestUsable = Effect.fnUntraced(function* <A, Damage, E>(
  steps: ReadonlyArray<number>,
  look: (step: number) => Effect.Effect<Result.Result<A, Damage>, E>,
): Effect.fn.Return<Usable<A, Damage> | undefined, Damage | E> {
  const skipped: Array<Damage> = []
  for (const step of steps.toReversed()) {
    const found = yield* look(step)
    if (Result.isSuccess(found)) return { value: found.success, skipped }
    skipped.push(found.failure)
  }
  return skipped.length === 0 ? undefined : yield* Effect.fail(skipped[0])
})

/**
 * Returns the progress with which a run begins. Reads only `progress.json`; the other files of the checkpoint are checked
 * when it is loaded.
 */
export const startingProgress = Effect.fnUntraced(function* (
  folders: RunFolders,
  directory: string,
  { resumeStep }: Pick<OrchestratorConfig, "resumeStep">,
): Effect.fn.Return<Progress, TrainerError> {
  const fromStart: Progress = { step: 0, totalTokens: 0, totalSamples: 0 }
  if (resumeStep === 0) return fromStart
  const place = folders.at(directory, Layout.checkpoints)
  const steps = yield* Effect.mapError(folders.completeCheckpoints(directory), (error) =>
    TrainerError.at(place, `cannot read the checkpoints: ${systemMessage(error)}`),
  )
  const missing = missingProblem(steps, resumeStep)
  if (missing !== undefined) return yield* TrainerError.at(place, `resume_step: ${missing}`)
  const look = Effect.fnUntraced(function* (step: number) {
    const file = `${Layout.checkpoint(step)}/${Layout.inCheckpoint.progress}`
    const content = yield* folders.read(directory, file)
    const progress =
      content._tag === "Failed"
        ? Result.fail(content.problem)
        : progressIn(content._tag === "Text" ? content.text : undefined, step)
    return Result.mapError(progress, (problem) => TrainerError.at(folders.at(directory, file), problem))
  })
  const found = yield* newestUsable(resumeStep === -1 ? steps : [resumeStep], look)
  return found?.value ?? fromStart
})
