/** Reads the progress of a run: from its metrics or, if these are missing, from the ends of its files. */
import { Effect } from "effect"
import { numberAt } from "../find/Value.ts"
import * as Layout from "../Layout.ts"
import { type ScoreLine, scoreLine } from "../record/scoreLine.ts"
import type { FolderFacts, SharedReading } from "./folderFacts.ts"
import { once } from "./once.ts"
import type { ScoreFacts } from "./scoreFacts.ts"
import { highest } from "../../base/statistics/extremes.ts"

/** The numbers of bytes to read from the end of a score file. The second is used if the first has no whole line of scores. */
const tailBytes = [4096, 1024 * 1024]

export const progressFacts = (
  { at, warn, has, located, tailOf, metrics, configAt, isFinished }: FolderFacts,
  { curve, lastScored }: ScoreFacts,
  { source, lineCount }: SharedReading,
) => {
  const checkpoints = once(function* () {
    const names = yield* source.list(at(yield* located(Layout.checkpoints)))
    return names.flatMap((name) => Layout.checkpointOf(name) ?? [])
  })
  const checkpointSteps = Effect.map(checkpoints, (all) =>
    all.flatMap(({ unit, count }) => (unit === "step" ? count : [])),
  )

  /** The last whole line of the training scores, and the number of steps up to it; undefined if there is none. */
  const newestScore = once(function* () {
    const file = yield* located(Layout.trainScores)
    for (const bytes of tailBytes) {
      const text = yield* tailOf(Layout.trainScores, bytes)
      if (text === undefined) return undefined
      const { line, isDamaged } = newestIn(text)
      if (isDamaged) yield* warn(file, "it has lines that are no scores")
      if (line === undefined) continue
      if (line.update !== null) return { line, steps: line.update }
      // A language-model agent writes one line per step, so the number of lines is the number of steps. A run of a
      // multi-run trainer is counted in updates.
      const updates = line.update === null ? undefined : line.update + 1
      return { line, steps: line.of === "episode" ? line.step : (updates ?? (yield* lineCount(at(file)))) }
    }
    return undefined
  })

  /** The largest step in an unfinished run's scores, validations, checkpoints and step folders; undefined if none. */
  const stepsSoFar = Effect.gen(function* () {
    const trained = (yield* newestScore)?.steps
    // Trainings of language-model agents number their validations by episodes, so these numbers are not steps.
    const isAgentTraining = (yield* configAt(["agent"])) !== undefined
    const validated = isAgentTraining ? undefined : (yield* lastScored).at(-1)?.step
    const stepNames = (yield* has(Layout.steps)) ? yield* source.list(at(Layout.steps)) : []
    const kept = stepNames.flatMap((name) => Layout.stepOf(name) ?? [])
    const reached = [...(yield* checkpointSteps), ...kept, trained, validated].filter((step) => step !== undefined)
    return reached.length === 0 ? undefined : highest(reached)
  })

  const steps = once(function* () {
    const result = yield* metrics
    const total = numberAt(result, ["steps"]) ?? numberAt(result, ["train_steps"])
    if (total !== undefined) return total
    return (yield* isFinished) ? ((yield* curve).at(-1)?.step ?? (yield* stepsSoFar)) : yield* stepsSoFar
  })

  /** The number of training episodes. */
  const episodes = once(function* () {
    const result = yield* metrics
    const total = numberAt(result, ["train_episodes"]) ?? numberAt(result, ["episodes"])
    if (total !== undefined || (yield* isFinished)) return total
    const line = (yield* newestScore)?.line
    // Agents count their episodes from 1 and write a line per step; other trainings count from 0.
    return line === undefined ? undefined : line.of === "step" ? (line.episode ?? 0) : (line.episode ?? 0) + 1
  })

  return { checkpoints, steps, episodes }
}

/**
 * Returns the last whole line with a score at the end of a score file. `isDamaged` tells whether later lines are not scores.
 * An incomplete last line is ignored, because it is still being written.
 */
const newestIn = (text: string): { readonly line: ScoreLine | undefined; readonly isDamaged: boolean } => {
  const whole = text.split("\n").slice(0, -1)
  for (let at = whole.length - 1; at >= 0; at--) {
    const line = scoreLine(whole[at])
    if (line !== undefined) return { line, isDamaged: at < whole.length - 1 }
  }
  return { line: undefined, isDamaged: whole.length > 0 }
}
