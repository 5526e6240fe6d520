import { Effect, Schema } from "effect"
import { messageOf } from "../config/text.ts"
import { basename, dirname } from "node:path"
import { type Confined, confinedTo } from "./confined-node.ts"
import { type Curves, makeCurves } from "./curves-node.ts"
import { isRunFolder, makeIndex, type RunIndex } from "./index-node.ts"
import { makeMetrics, type MetricsReader } from "./metrics-node.ts"
import { makeSettings, type SettingsReader } from "./settings-node.ts"
import { makeTranscripts, type Transcripts } from "./transcripts/transcripts-node.ts"

/** The page cannot be served or written. */
export class DashboardError extends Schema.TaggedError<DashboardError>()("DashboardError", {
  message: Schema.String,
}) {}

/** A results folder, as the page and the static export read it. */
export interface Results {
  readonly files: Confined
  readonly index: RunIndex
  readonly curves: Curves
  readonly transcripts: Transcripts
  readonly metrics: MetricsReader
  readonly settings: SettingsReader
}

/** Opens a results folder, or a single run: that is called by the name of its folder, and nothing beside it can be read. */
export const openResults = (directory: string): Effect.Effect<Results, DashboardError> =>
  Effect.tryPromise({
    try: async () => {
      const files = await confinedTo(directory)
      if (!isRunFolder(await files.list(""))) return files
      return await confinedTo(dirname(files.root), basename(files.root))
    },
    catch: (error) => new DashboardError({ message: `${directory} cannot be read: ${messageOf(error)}` }),
  }).pipe(
    Effect.map((files) => ({
      files,
      index: makeIndex(files),
      curves: makeCurves(files),
      transcripts: makeTranscripts(files),
      metrics: makeMetrics(files),
      settings: makeSettings(files),
    })),
  )
