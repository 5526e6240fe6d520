/** Reads the validations of a run. Each score file is read only once, when it is first needed. */
import { Effect } from "effect"
import { jsonValue } from "../../base/text/text.ts"
import { dataAt, numberAt } from "../find/Value.ts"
import * as Layout from "../Layout.ts"
import type { ScoreLine } from "../record/scoreLine.ts"
import type { FolderFacts, SharedReading } from "./folderFacts.ts"
import { once } from "./once.ts"
import { attempt } from "./attempt.ts"
import {
  agentsIn,
  bestCandidateIn,
  curveOf,
  type ValidationReturn,
  playedIn,
  scoreLines,
  type ValidationPoint,
} from "./validations.ts"

export type ScoreFacts = ReturnType<typeof scoreFacts>

export const scoreFacts = (
  { at, has, warn, located, metrics, evaluations, isFinished }: FolderFacts,
  { source }: SharedReading,
) => {
  const validationFiles = once(function* () {
    const folder = yield* located(Layout.validationScoresFolder)
    return Layout.validationFilesIn(yield* source.list(at(folder))).map((name) => `${folder}/${name}`)
  })

  const linesOf = (file: string, text: string | undefined): Effect.Effect<ReadonlyArray<ScoreLine>> => {
    const { lines, damaged } = scoreLines(text ?? "")
    return damaged ? Effect.as(warn(file, "it has lines that are no scores"), lines) : Effect.succeed(lines)
  }

  /** Reads the episodes in a score file of validations. Each file is read once, although several facts need it. */
  const episodesIn = Effect.fnUntraced(function* (file: string) {
    const before = played.get(file)
    if (before !== undefined) return before
    const episodes = playedIn(Layout.fileName(file), yield* linesOf(file, yield* source.text(at(file))))
    played.set(file, episodes)
    return episodes
  })
  const played = new Map<string, ReadonlyArray<ValidationReturn>>()

  const scored = (files: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<ValidationPoint>> =>
    Effect.map(Effect.forEach(files, episodesIn), (episodes) => curveOf(episodes.flat()))

  const curve = once(function* () {
    return (yield* evaluations) ?? (yield* scored(yield* validationFiles))
  })

  /** The last validation of an unfinished run, from its newest score file or, if that is empty, from the one before. */
  const lastScored = once(function* () {
    const files = yield* validationFiles
    const validations = yield* scored(files.slice(-1))
    return validations.length > 0 ? validations : yield* scored(files.slice(-2, -1))
  })

  /** The validation of the best candidate of a run that learns prompts; undefined for other runs. */
  const bestCandidate = once(function* () {
    if (!(yield* has(Layout.prompts.candidates))) return undefined
    const best = numberAt(yield* metrics, ["best"])
    // A finished run has a validation for each candidate.
    if (best !== undefined && (yield* isFinished)) return (yield* curve).at(best)
    const text = (yield* source.text(at(Layout.prompts.candidates))) ?? ""
    const data = attempt(() => jsonValue(text))
    return (
      ("value" in data ? bestCandidateIn(data.value) : undefined) ??
      (yield* warn(Layout.prompts.candidates, "expected candidates with scores"))
    )
  })

  /**
   * The mean return of the last validation; undefined if there is none. For a run that learns prompts, that of the best
   * candidate's validation.
   */
  const validation = once(function* () {
    const result = yield* metrics
    const last = numberAt(result, ["validation", "mean_return"])
    if (last !== undefined) return last
    // A null in metrics.json means that the run ended without a validation.
    if (result !== undefined && dataAt(result, ["validation"]) === null) return undefined
    const best = yield* bestCandidate
    if (best !== undefined) return best.mean
    return (yield* (yield* isFinished) ? curve : lastScored).at(-1)?.mean
  })

  /** The score of each agent of a game in the last validation; empty for other runs. */
  const agents = once(function* () {
    const result = yield* metrics
    if (result !== undefined) return agentsIn(dataAt(result, ["validation", "agents"]), "mean_return")
    return (yield* lastScored).at(-1)?.agents ?? []
  })

  return { curve, lastScored, bestCandidate, validation, agents }
}
