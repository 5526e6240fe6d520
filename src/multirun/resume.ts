/** Finds out where a run begins: at the checkpoint that its config names, or at the newest complete one. */
import { Effect, Schema } from "effect"
import { systemMessage } from "../config/files.ts"
import { parsedJson, shortened } from "../config/text.ts"
import * as Layout from "./Layout.ts"
import type { OrchestratorConfig } from "./OrchestratorConfig.ts"
import type { RunFolders } from "./runFolder.ts"
import { Progress } from "./RunSlot.ts"

/** A checkpoint from which the run cannot begin. The message is one line that names the file or the key. */
export class ResumeError extends Schema.TaggedError<ResumeError>()("ResumeError", { message: Schema.String }) {}

const isProgress = Schema.is(Progress)

/**
 * Returns the progress with which a run begins. A checkpoint without `progress.json`, which another program made, has
 * no totals of tokens and samples; these then begin at 0.
 */
export const startingProgress = Effect.fnUntraced(function* (
  folders: RunFolders,
  directory: string,
  { resumeStep }: Pick<OrchestratorConfig, "resumeStep">,
): Effect.fn.Return<Progress, ResumeError> {
  const fromStart: Progress = { step: 0, totalTokens: 0, totalSamples: 0 }
  if (resumeStep === 0) return fromStart
  const place = folders.at(directory, Layout.checkpoints)
  const steps = yield* Effect.mapError(
    folders.completeCheckpoints(directory),
    (error) => new ResumeError({ message: `${place}: cannot read the checkpoints: ${systemMessage(error)}` }),
  )
  if (resumeStep > 0 && !steps.includes(resumeStep)) {
    const choice = steps.length === 0 ? "there is none" : `there are ${steps.join(", ")}`
    const problem = `expected the step of a complete checkpoint (${choice}), 0 or -1, found ${resumeStep}`
    return yield* new ResumeError({ message: `${place}: resume_step: ${problem}` })
  }
  const step = resumeStep === -1 ? steps.at(-1) : resumeStep
  if (step === undefined) return fromStart
  const file = `${Layout.checkpoint(step)}/${Layout.inCheckpoint.progress}`
  const content = yield* folders.read(directory, file)
  if (content._tag === "Missing") return { ...fromStart, step }
  const failing = (problem: string) => new ResumeError({ message: `${folders.at(directory, file)}: ${problem}` })
  if (content._tag === "Failed") return yield* failing(content.problem)
  const progress = parsedJson(content.text)
  if (isProgress(progress) && progress.step === step) return { ...progress }
  const expected = `{"step": ${step}, "totalTokens": …, "totalSamples": …}`
  return yield* failing(`expected ${expected}, found ${shortened(content.text.trim())}`)
})
