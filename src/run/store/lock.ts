/** Holds the lock file of a run (`run.lock`) or sweep (`sweep.lock`), so that only one process writes its folder. */
import { Effect, FileSystem } from "effect"
import { mostBytes, readText } from "../../config/files.ts"
import { RunStoreError, runStoreError } from "./RunStoreError.ts"

/** The process that writes a run, and how to tell whether another process is alive. */
export interface Owner {
  /** The line in `run.lock`: `process 4711 on host`. */
  readonly name: string
  /** Tells whether the process with this name is alive. The lock of a dead process is taken over. */
  readonly isAlive: (name: string) => Effect.Effect<boolean>
}

/**
 * Writes the lock file, and removes it when the scope closes. Returns the name of the holder if another living process
 * holds the lock; otherwise undefined.
 */
export const tryLock = Effect.fnUntraced(function* (file: string, owner: Owner) {
  const fs = yield* FileSystem.FileSystem
  const claim = fs.writeFileString(file, owner.name, { flag: "wx" })
  const readOwner = readText(file, mostBytes.config)
  /** Takes over the lock of a dead process. Returns the name of the holder if it is alive. */
  const takeOver = Effect.gen(function* () {
    const name = yield* readOwner
    // A lock file without a name was left by a process that was killed before it wrote its name.
    if (name !== owner.name && name !== "" && (yield* owner.isAlive(name))) return name
    yield* fs.remove(file, { force: true })
    yield* claim
    return undefined
  })
  const acquire = claim.pipe(
    Effect.as(undefined),
    Effect.catchReason("PlatformError", "AlreadyExists", () => takeOver),
    Effect.mapError((error) => runStoreError("lock", file, error)),
  )
  return yield* Effect.acquireRelease(acquire, (holder) =>
    holder === undefined ? Effect.ignore(fs.remove(file, { force: true })) : Effect.void,
  )
})

/** Writes the lock file, and removes it when the scope closes. Fails if another living process holds the lock. */
export const holdLock = Effect.fnUntraced(function* (file: string, owner: Owner) {
  const holder = yield* tryLock(file, owner)
  if (holder === undefined) return
  const message = `${file}: ${holder} is writing this run; wait until it ends, or stop it`
  return yield* new RunStoreError({ path: file, operation: "lock", message })
})
