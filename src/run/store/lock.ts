/** Holds the lock file of a run (`run.lock`) or sweep (`sweep.lock`), so that only one process writes its folder. */
import { Effect, type PlatformError } from "effect"
import * as FileSystem from "effect/FileSystem"
import { type FileError, mostBytes, readText } from "../../base/files/files.ts"
import { RunStoreError, runStoreError } from "./RunStoreError.ts"

/** The process that writes a run, and how to tell whether another process is alive. */
export interface Owner {
  /** The line in `run.lock`, which no process on another machine has: `process 4711 on host (…)`. */
  readonly name: string
  /** Tells whether the process with this name is alive. The lock of a dead process is taken over. */
  readonly isAlive: (name: string) => Effect.Effect<boolean>
  /** Tells whether `isAlive` is certain about the process with this name, because it is of this machine. By default it never is. */
  readonly isLocal?: (name: string) => boolean
}

/** The process that holds a lock which expires when it is not renewed. */
export interface LeaseOwner {
  readonly name: string
  /**
   * Tells whether the process with this name was on this machine and has certainly ended. Otherwise, its lock must expire by
   * itself.
   */
  readonly hasEnded: (name: string) => Effect.Effect<boolean>
}

/** Tells whether the name in a lock file belongs to another living process. */
const isOther = (name: string, owner: Owner): Effect.Effect<boolean> =>
  // A lock file without a name was left by a process that was killed before it wrote its name.
  name === owner.name || name === "" ? Effect.succeed(false) : owner.isAlive(name)

/**
 * Writes the lock file, and removes it when the scope closes. Returns the name of the holder if another living process
 * holds the lock; otherwise undefined.
 */
export const tryLock = Effect.fnUntraced(function* (file: string, owner: Owner) {
  const fs = yield* FileSystem.FileSystem
  const claim = fs.writeFileString(file, owner.name, { flag: "wx" })
  const context = yield* Effect.context<FileSystem.FileSystem>()
  const readOwner = (path: string) => Effect.provideContext(readText(path, mostBytes.config), context)
  const aside = `${file}.${owner.name.replaceAll(/[^A-Za-z0-9]+/g, "-")}`
  /**
   * Takes over the lock of a dead process. Returns the name of the holder if it is alive. The file is renamed and read again
   * before it is removed: if another process has taken the lock over since the first read, that process gets it back.
   */
  const takeOver: Effect.Effect<string | undefined, PlatformError.PlatformError | FileError> = Effect.gen(function* () {
    const name = yield* readOwner(file)
    if (yield* isOther(name, owner)) return name
    yield* fs.rename(file, aside)
    if ((yield* readOwner(aside)) !== name)
      yield* Effect.catchReason(fs.link(aside, file), "PlatformError", "AlreadyExists", () => Effect.void)
    yield* fs.remove(aside, { force: true })
    return yield* acquire
  })
  const acquire: typeof takeOver = claim.pipe(
    Effect.as(undefined),
    Effect.catchReason("PlatformError", "AlreadyExists", () => takeOver),
  )
  const acquired = Effect.mapError(acquire, (error) => runStoreError("lock", file, error))
  // Another process may have taken the lock over because it assumed that this one was dead.
  const release = Effect.flatMap(readOwner(file), (name) =>
    name === owner.name ? fs.remove(file, { force: true }) : Effect.void,
  )
  return yield* Effect.acquireRelease(acquired, (holder) =>
    holder === undefined ? Effect.ignore(release) : Effect.void,
  )
})

/** Writes the lock file, and removes it when the scope closes. Fails if another living process holds the lock. */
export const holdLock = Effect.fnUntraced(function* (file: string, owner: Owner) {
  const holder = yield* tryLock(file, owner)
  if (holder !== undefined) return yield* heldBy(file, holder)
})

/**
 * Fails if another living process holds the lock, as `holdLock` does, but only reads the file. A file that cannot be read is
 * ignored here; `holdLock` reports it.
 */
export const refuseHeld = Effect.fnUntraced(function* (file: string, owner: Owner) {
  const holder = yield* Effect.orElseSucceed(readText(file, mostBytes.config), () => "")
  if (yield* isOther(holder, owner)) return yield* heldBy(file, holder)
})

const heldBy = (file: string, holder: string): RunStoreError => {
  const message = `${file}: ${holder} is writing this run; wait until it ends, or stop it; if it no longer exists, remove ${file}`
  return new RunStoreError({ path: file, operation: "lock", holder, message })
}
