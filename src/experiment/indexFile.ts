import { Effect, type FileSystem, type Path } from "effect"
import { fromPath } from "./identifier.ts"
import { type RunStoreError, runStoreError } from "./RunStoreError.ts"

/**
 * `index.txt`: every file of the runs below a folder, a line each, sorted, as `./relative/path`. By it a static web server
 * is enough for a page to find all runs. What lies beside runs is left out, since RLtools' viewer takes all for runs.
 * Whoever reads it meanwhile sees the old one or the new one.
 */
export const writeIndex = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  folder: string,
  writer: string,
): Effect.fn.Return<void, RunStoreError> {
  const files: Array<string> = []
  const walk = (below: string): Effect.Effect<void, RunStoreError> =>
    Effect.gen(function* () {
      for (const name of yield* namesIn(fs, path.join(folder, below))) {
        if (isHidden(name)) continue
        const at = below === "" ? name : `${below}/${name}`
        const kind = yield* kindOf(fs, path.join(folder, at))
        if (kind === "Directory") yield* walk(at)
        else if (kind === "File" && isOfRun(at)) files.push(`./${at}`)
      }
    })
  yield* walk("")
  const target = path.join(folder, "index.txt")
  const draft = path.join(folder, `.index.${writer}.tmp`)
  const text = files.length === 0 ? "" : `${files.sort().join("\n")}\n`
  yield* fs.writeFileString(draft, text).pipe(
    Effect.andThen(fs.rename(draft, target)),
    Effect.mapError((error) => runStoreError("write", target, error)),
  )
})

const isOfRun = (file: string): boolean => {
  const parts = file.split("/")
  return parts.length > 4 && fromPath(parts.slice(0, 4).join("/")) !== undefined
}

/** Drafts, locks and links' targets that are there already (`latest`) are nobody's business. */
const isHidden = (name: string): boolean => name.startsWith(".") || name === "run.lock"

/** A folder that another process removes meanwhile is empty. */
const namesIn = (fs: FileSystem.FileSystem, folder: string): Effect.Effect<ReadonlyArray<string>> =>
  fs.readDirectory(folder).pipe(Effect.orElseSucceed((): ReadonlyArray<string> => []))

const kindOf = (fs: FileSystem.FileSystem, file: string): Effect.Effect<string | undefined> =>
  fs.readLink(file).pipe(
    Effect.as(undefined),
    Effect.catch(() =>
      fs.stat(file).pipe(
        Effect.map(({ type }): string | undefined => type),
        Effect.orElseSucceed(() => undefined),
      ),
    ),
  )
