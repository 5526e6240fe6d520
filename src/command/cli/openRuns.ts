/** Opens the runs that the user named, on disk or in a bucket of S3, for commands that read them. */
import { Effect } from "effect"
import type { FileSource } from "../../run/read/FileSource.ts"
import type { CopyOptions, NamedRuns } from "./bucket/localCopy.ts"
import { warningSource } from "./findRun.ts"
import { isBucket } from "./flags.ts"

/**
 * Runs `body` with a source of the runs in a folder, or at the address of a bucket of S3. The source reports damaged files.
 */
export const readingRunsIn = <A, E, R>(place: string, body: (source: FileSource) => Effect.Effect<A, E, R>) =>
  isBucket(place)
    ? // The code for buckets is loaded only when it is needed.
      Effect.flatMap(
        Effect.promise(() => import("./bucket/readBucket.ts")),
        ({ readingBucket }) => readingBucket(place, ({ source }) => body(source)),
      )
    : body(warningSource)

/**
 * Runs `body` with the runs that the user named, for commands that read a run from disk: a run in a bucket is copied first.
 */
export const withRunsOnDisk = <A, E, R>(
  named: NamedRuns,
  options: CopyOptions,
  body: (named: NamedRuns) => Effect.Effect<A, E, R>,
) =>
  isBucket(named.resultsDir) || named.runs.some(isBucket)
    ? Effect.flatMap(
        Effect.promise(() => import("./bucket/localCopy.ts")),
        ({ withCopies }) => withCopies(named, options, body),
      )
    : body({ runs: named.runs, resultsDir: named.resultsDir })
