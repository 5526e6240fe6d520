/**
 * Names the files on which a job depends, and refuses to do the job where a file has another content. Jobs that load a
 * program of the user send its files in this way.
 *
 * @example
 * ```ts
 * const files = ["train.ts"].map(asSent) // where the job is asked for
 * yield* checkFiles("run", files) // where the job is done
 * ```
 */
import { readFileSync, statSync } from "node:fs"
import { isAbsolute, relative, resolve } from "node:path"
import { Effect } from "effect"
import { WorkerError } from "../../workers/WorkerError.ts"
import { digestOfBytes, digestWhenLoaded, loadedBesides } from "./loadedModules-node.ts"
import type { SentFile } from "./SentFile.ts"

/** Returns a path as it is sent: relative if it is below the working directory, which may differ between machines. */
export const sentPath = (path: string): string => {
  const below = relative(process.cwd(), resolve(path))
  return below.startsWith("..") || isAbsolute(below) ? resolve(path) : below
}

const digestOf = (file: string): string => digestOfBytes(readFileSync(file))

/** Describes a file for other machines, by its path and its digest. */
export const asSent = (file: string): SentFile => ({ path: sentPath(file), sha256: digestOf(file) })

/** Describes a program that this process has loaded: its module first, then the local files that it imports. */
export const asSentProgram = (file: string): readonly [SentFile, ...ReadonlyArray<SentFile>] => [
  asSent(file),
  ...loadedBesides(file).map(asSent),
]

/**
 * Fails if a file of the job differs from the file on the machine that asked for the job, or if this process has already
 * loaded an earlier version of it. The first file is not checked for the second case, because it is a module that can be
 * loaded again.
 */
export const checkFiles = (job: string, files: ReadonlyArray<SentFile>): Effect.Effect<void, WorkerError> =>
  Effect.suspend(() => {
    for (const [at, { path, sha256 }] of files.entries()) {
      const here = statSync(path, { throwIfNoEntry: false })?.isFile() === true ? digestOf(path) : undefined
      const before = at === 0 ? undefined : digestWhenLoaded(path)
      if (here === sha256 && before !== undefined && before !== sha256) {
        const message = `${resolve(path)}: a worker has loaded version ${before.slice(0, 12)} of this file, and now it has version ${sha256.slice(0, 12)}; start the worker again`
        return Effect.fail(WorkerError.dispatch(job, message))
      }
      if (here === sha256) continue
      const found = here === undefined ? "no such file" : `version ${here.slice(0, 12)}`
      const message = `${resolve(path)}: expected the file with which the run was started, version ${sha256.slice(0, 12)}; a worker found ${found}`
      return Effect.fail(WorkerError.dispatch(job, message))
    }
    return Effect.void
  })
