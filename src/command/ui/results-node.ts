/** Opens a results folder for the server and the static export. It writes nothing. */
import { Effect } from "effect"
import { type Confined, confinedByName, confinedTo } from "../../run/read/confined-node.ts"
import { makeCurves } from "./curves/curves.ts"
import { isRunFolder, makeIndex } from "./runIndex.ts"
import { makeMetrics } from "./curves/runMetrics.ts"
import { makePromptsReports } from "./promptsReport.ts"
import { makeSettings } from "./settings.ts"
import { makeTranscripts } from "./transcripts/transcripts.ts"
import { CommandError } from "../CommandError.ts"

/** A results folder in the form that the server and the static export read. */
export type ResultsFolder = ReturnType<typeof resultsOf>

/** Opens the runs of a source that is not on disk, such as a bucket. */
export const resultsOf = (files: Confined) => {
  const index = makeIndex(files)
  return {
    files,
    index,
    curves: makeCurves(files),
    transcripts: makeTranscripts(files),
    metrics: makeMetrics(files),
    settings: makeSettings(index),
    prompts: makePromptsReports(files),
  }
}

/**
 * Opens a results folder, or the folder of a single run, whose path is then its name. It reads nothing outside of the folder.
 */
export const openResults = Effect.fn("openResults")(
  function* (directory: string) {
    const folder = yield* confinedTo(directory)
    return resultsOf(isRunFolder(yield* folder.entries("")) ? yield* confinedByName(folder) : folder)
  },
  (opened, directory) =>
    Effect.mapError(opened, ({ message }) => CommandError.failed(`${directory} cannot be read: ${message}`)),
)
