import { Effect, type FileSystem, type Path } from "effect"
import { mostBytes, readTextFrom } from "../../config/files.ts"
import { fromPath } from "../identifier.ts"
import type { Owner } from "./lock.ts"
import { type RunStoreError, runStoreError } from "./RunStoreError.ts"
import * as Layout from "../Layout.ts"

/**
 * `index.txt`: every file below the folder of all runs, a line each, sorted, as `./relative/path`: what
 * `find . -type f | sort` says there. By it a static web server is enough for a page to find all runs. Left out are
 * itself, `.git*`, `.DS_Store`, and what only is there while somebody writes.
 *
 * RLtools' viewer takes whatever lies four folders deep for a run's folder, and stops at a file there or above. So this
 * library has files only in runs' folders: what is said of several seeds is a link to a file in one of them, and a link
 * is none of `find`'s files. Whoever puts a file of their own beside runs has it listed, and that viewer stops at it.
 *
 * A run that ends has its lines made anew, and so have others that are not finished; of a finished one it is seen that it is
 * still there.
 */
export const indexRun = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  directory: string,
  owner?: Owner,
): Effect.fn.Return<void, RunStoreError> {
  const parts = path.resolve(directory).split(path.sep)
  const run = parts.slice(-depth).join("/")
  // A run in another layout has no index.
  if (fromPath(run) === undefined) return
  const folder = parts.slice(0, -depth).join(path.sep)
  const target = path.join(folder, Layout.resultsIndex)
  const own = yield* filesBelow(fs, path, folder, run)
  const replace = Effect.gen(function* () {
    const before = yield* readTextFrom(fs, target, mostBytes.text).pipe(Effect.orElseSucceed(() => ""))
    const files = yield* filesBelow(fs, path, folder, "", runsOf(before).set(run, own))
    const draft = `${target}.tmp`
    const lines = files.map((file) => `./${file}\n`).sort()
    yield* fs.writeFileString(draft, lines.join(""))
    yield* fs.rename(draft, target)
  })
  yield* withTurn(fs, path.join(folder, Layout.resultsIndexLock), owner, replace).pipe(
    Effect.mapError((error) => runStoreError("write", target, error)),
  )
})

const pause = 20
const second = 1000
const minute = 60 * second

/** A run's folder has so many names, from the folder of all runs on. */
const depth = 4

/** The files of each run that is in an index and had finished, by its folder. */
const runsOf = (index: string): Map<string, ReadonlyArray<string>> => {
  const files = index.split("\n").map((line) => line.slice("./".length))
  const runs = Map.groupBy(files, (file) => file.split("/", depth).join("/"))
  return new Map([...runs].filter(([run, those]) => those.includes(`${run}/${Layout.returns}`)))
}

/**
 * One after another: of two that read the same lines, the later would lose the other's. Over thousands of runs that takes
 * its time, so who holds the lock is waited for while it lives; where nobody knows who that is, for a second.
 */
const withTurn = <A, E>(
  fs: FileSystem.FileSystem,
  lock: string,
  owner: Owner | undefined,
  body: Effect.Effect<A, E>,
): Effect.Effect<A, E> => {
  const name = owner?.name ?? ""
  const claim = fs.writeFileString(lock, name, { flag: "wx" })
  const isHeld = readTextFrom(fs, lock, mostBytes.config).pipe(
    Effect.flatMap((holder) =>
      owner === undefined || holder === "" ? Effect.succeed(undefined) : owner.isAlive(holder),
    ),
    Effect.orElseSucceed(() => undefined),
  )
  let tried = 0
  const wait = claim.pipe(
    // Not the clock of the program, which a test may have stopped: other processes go by the real one.
    Effect.tapError(() => Effect.promise(() => new Promise((resolve) => setTimeout(resolve, pause)))),
    Effect.retry({
      // A holder that has gone, but whose number another process has by now, looks like one that lives.
      times: minute / pause,
      while: ({ reason }) =>
        reason._tag === "AlreadyExists" && Effect.map(isHeld, (held) => held ?? ++tried < second / pause),
    }),
    Effect.catch(() => Effect.ignore(fs.writeFileString(lock, name))),
  )
  return Effect.acquireUseRelease(
    wait,
    () => body,
    () => Effect.ignore(fs.remove(lock, { force: true })),
  )
}

/** The files below a folder, which itself is below another; those of known folders are not looked for again. */
const filesBelow = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  folder: string,
  below: string,
  known: ReadonlyMap<string, ReadonlyArray<string>> = new Map(),
): Effect.fn.Return<ReadonlyArray<string>> {
  const files: Array<string> = []
  for (const name of yield* namesIn(fs, path.join(folder, below))) {
    if (isLeftOut(name)) continue
    const at = below === "" ? name : `${below}/${name}`
    const earlier = known.get(at)
    const kind = earlier === undefined ? yield* kindOf(fs, path.join(folder, at)) : "Known"
    if (kind === "Directory") for (const file of yield* filesBelow(fs, path, folder, at, known)) files.push(file)
    else if (kind === "File") files.push(at)
    else for (const file of earlier ?? []) files.push(file)
  }
  return files
})

const unlisted: ReadonlySet<string> = new Set([
  Layout.resultsIndex,
  `${Layout.resultsIndex}.tmp`,
  Layout.resultsIndexLock,
  Layout.lock,
  Layout.sweepLock,
  ".DS_Store",
])

/** The index, what no index has, locks, and drafts (those of `FileTree.ts` and the index's own). */
const isLeftOut = (name: string): boolean => unlisted.has(name) || /^(?:\.git.*|\..+\.(?:tmp|old))$/.test(name)

/** A folder that another process removes meanwhile is empty. */
const namesIn = (fs: FileSystem.FileSystem, folder: string): Effect.Effect<ReadonlyArray<string>> =>
  fs.readDirectory(folder).pipe(Effect.orElseSucceed((): ReadonlyArray<string> => []))

/** Links are none: what they point to is listed where it is. */
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
