import { Effect, type FileSystem, type Path } from "effect"
import { fromPath } from "./identifier.ts"
import { type RunStoreError, runStoreError } from "./RunStoreError.ts"

/**
 * `index.txt`: every file of the runs below a folder, a line each, sorted, as `./relative/path`. By it a static web server
 * is enough for a page to find all runs. What lies beside runs is left out, since RLtools' viewer takes all for runs.
 * Whoever reads it meanwhile sees the old one or the new one. A run that ends replaces its own lines.
 */
export const indexRun = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  directory: string,
): Effect.fn.Return<void, RunStoreError> {
  const parts = path.resolve(directory).split(path.sep)
  const run = parts.slice(-4).join("/")
  // A run in another layout has no index.
  if (fromPath(run) === undefined) return
  const folder = parts.slice(0, -4).join(path.sep)
  const found = (yield* filesBelow(fs, path, folder, run)).map((file) => `./${file}`)
  const target = path.join(folder, "index.txt")
  const replace = Effect.gen(function* () {
    const before = yield* fs.readFileString(target).pipe(Effect.orElseSucceed(() => ""))
    const others = before.split("\n").filter((line) => line !== "" && !line.startsWith(`./${run}/`))
    const draft = `${target}.tmp`
    yield* fs.writeFileString(draft, `${[...others, ...found].sort().join("\n")}\n`)
    yield* fs.rename(draft, target)
  })
  yield* withTurn(fs, path.join(folder, ".index.lock"), replace).pipe(
    Effect.mapError((error) => runStoreError("write", target, error)),
  )
})

/**
 * One after another: of two that read the same lines, the later would lose the other's. Whoever is not let in for a second
 * takes the lock for one that a killed process left.
 */
const withTurn = <A, E>(fs: FileSystem.FileSystem, lock: string, body: Effect.Effect<A, E>): Effect.Effect<A, E> => {
  const claim = fs.writeFileString(lock, "", { flag: "wx" })
  const wait = claim.pipe(
    // Not the clock of the program, which a test may have stopped: other processes go by the real one.
    Effect.tapError(() => Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))),
    Effect.retry({ times: 50, while: (error) => error.reason._tag === "AlreadyExists" }),
    Effect.ignore,
  )
  return Effect.acquireUseRelease(
    wait,
    () => body,
    () => Effect.ignore(fs.remove(lock, { force: true })),
  )
}

const filesBelow = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  folder: string,
  below: string,
): Effect.fn.Return<ReadonlyArray<string>> {
  const files: Array<string> = []
  for (const name of yield* namesIn(fs, path.join(folder, below))) {
    if (isHidden(name)) continue
    const at = `${below}/${name}`
    const kind = yield* kindOf(fs, path.join(folder, at))
    if (kind === "Directory") files.push(...(yield* filesBelow(fs, path, folder, at)))
    else if (kind === "File") files.push(at)
  }
  return files
})

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
