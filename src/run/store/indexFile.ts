/**
 * Writes `index.txt`, with which a page on a static web server finds all runs. It lists every file below the folder of all
 * runs, sorted, one per line, as `./relative/path`, like `find . -type f | sort`. It leaves out the index itself, `.git*`,
 * `.DS_Store`, the files of studies, locks and temporary files. `RunStore.ts` calls it when a run ends.
 *
 * RLtools' viewer reads this file, too. It assumes that every path with four levels is the folder of a run, and fails if a
 * file is at this level or above. So this library writes files only inside of runs' folders, and makes links at other levels.
 */
import { Effect, Path } from "effect"
import * as FileSystem from "effect/FileSystem"
import { mostBytes, namesIn, readText, statOf } from "../../base/files/files.ts"
import { fromPath } from "../identifier.ts"
import type { Owner } from "./lock.ts"
import { runStoreError } from "./RunStoreError.ts"
import * as Layout from "../Layout.ts"

/**
 * Writes the index after the run in `directory` ended. It lists the folders of this run and of unfinished runs. For other
 * finished runs whose folders still exist, it copies the lines of the previous index.
 */
export const indexRun = Effect.fnUntraced(function* (directory: string, owner?: Owner) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const parts = path.resolve(directory).split(path.sep)
  const run = parts.slice(-depth).join("/")
  // Only runs in RLtools' layout are indexed.
  if (fromPath(run) === undefined) return
  const folder = parts.slice(0, -depth).join(path.sep)
  const target = path.join(folder, Layout.resultsIndex)
  const ownFiles = yield* filesBelow(folder, run)
  const writeIndex = Effect.gen(function* () {
    const previousIndex = yield* Effect.orElseSucceed(readText(target, mostBytes.text), () => "")
    const files = yield* filesBelow(folder, "", runsOf(previousIndex).set(run, ownFiles))
    const temporary = `${target}.tmp`
    const lines = files.map((file) => `./${file}\n`).sort()
    // The folder may be somebody else's, with a link of this name.
    yield* fs.remove(temporary, { force: true })
    yield* fs.writeFileString(temporary, lines.join(""), { flag: "wx" })
    yield* fs.rename(temporary, target)
  })
  yield* Effect.mapError(withTurn(path.join(folder, Layout.resultsIndexLock), owner, writeIndex), (error) =>
    runStoreError("write", target, error),
  )
})

/** Times in milliseconds, for `withTurn`: the pause between two attempts, and its limits. */
const pause = 20
const second = 1000
const minute = 60 * second

/** The number of folders in the path of a run, below the folder of all runs. */
const depth = 4

/** Maps the folder of each finished run in the text of an index to the paths of its files. */
const runsOf = (index: string): Map<string, ReadonlyArray<string>> => {
  const files = index.split("\n").map((line) => line.slice("./".length))
  const runs = Map.groupBy(files, (file) => file.split("/", depth).join("/"))
  return new Map([...runs].filter(([run, runFiles]) => runFiles.includes(`${run}/${Layout.returns}`)))
}

/**
 * Runs `body` while this process holds the lock of the index, so that two processes don't overwrite each other's lines. While
 * another process holds it, waits up to a minute, or up to a second if it is unknown whether that process is alive.
 */
const withTurn = Effect.fnUntraced(function* <A, E, R>(
  lock: string,
  owner: Owner | undefined,
  body: Effect.Effect<A, E, R>,
) {
  const fs = yield* FileSystem.FileSystem
  const name = owner?.name ?? ""
  const claim = fs.writeFileString(lock, name, { flag: "wx" })
  const isHeld = readText(lock, mostBytes.config).pipe(
    Effect.flatMap((holder) => (owner === undefined || holder === "" ? Effect.undefined : owner.isAlive(holder))),
    Effect.orElseSucceed(() => undefined),
  )
  let attempts = 0
  const wait = claim.pipe(
    // Use a real timer: a test may have stopped the clock of the program, but it can't stop the other processes.
    Effect.tapError(() => Effect.promise(() => new Promise((resolve) => setTimeout(resolve, pause)))),
    Effect.retry({
      // Stop waiting after a minute: if the holder has died, a new process may have the same process number.
      times: minute / pause,
      while: ({ reason }) =>
        reason._tag === "AlreadyExists" && Effect.map(isHeld, (held) => held ?? ++attempts < second / pause),
    }),
    // Replace the lock instead of writing into it, because it may be a link.
    Effect.catch(() => Effect.ignore(Effect.andThen(fs.remove(lock, { force: true }), claim))),
  )
  return yield* Effect.acquireUseRelease(
    wait,
    () => body,
    () => Effect.ignore(fs.remove(lock, { force: true })),
  )
})

/** Lists the files below `folder/below`. Folders in `listed` (finished runs, with their files) are not read again. */
const filesBelow = Effect.fnUntraced(function* (
  folder: string,
  below: string,
  listed: ReadonlyMap<string, ReadonlyArray<string>> = new Map(),
): Effect.fn.Return<ReadonlyArray<string>, never, FileSystem.FileSystem> {
  const files: Array<string> = []
  for (const name of yield* namesIn(`${folder}/${below}`)) {
    if (isLeftOut(name)) continue
    const at = below === "" ? name : `${below}/${name}`
    const earlier = listed.get(at)
    const kind = earlier === undefined ? yield* kindOf(`${folder}/${at}`) : "Known"
    if (kind === "Directory") for (const file of yield* filesBelow(folder, at, listed)) files.push(file)
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
  Layout.lease,
  Layout.sweepLock,
  ...Object.values(Layout.study),
  ".DS_Store",
])

/** Tells whether the index leaves out a name: the index itself, files of git and of studies, locks, and temporary files. */
const isLeftOut = (name: string): boolean => unlisted.has(name) || /^(?:\.git.*|\..+\.(?:tmp|old))$/.test(name)

/** Returns the type of a file; undefined for a link, because its target is listed under its own path. */
const kindOf = Effect.fnUntraced(function* (file: string) {
  const isLink = yield* Effect.isSuccess((yield* FileSystem.FileSystem).readLink(file))
  return isLink ? undefined : (yield* statOf(file))?.type
})
