/**
 * Prevents two processes from writing the same run. Each process that opens a run's folder takes the next number, in the file
 * `run.lease`, and checks before each write that the number is still its own. If a process was frozen or lost its network,
 * and another one has taken the run over meanwhile, its next write fails.
 *
 * The lock `run.lock` already refuses a second process at the start. The number also helps when the lock fails: the first
 * process was wrongly assumed to be dead, or one process opens the same run twice.
 *
 * @example
 * ```ts
 * const fence = yield* takeFence("results/…/0001", "process 12 on host")
 * const tree = yield* fenced("results/…/0001", fence)
 * yield* tree.write("metrics.json", text) // fails if another process has opened the run since
 * ```
 */
import { Deferred, Effect, Option, Path, PlatformError } from "effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"
import { jsonText } from "../../base/text/jsonText.ts"
import { codeOf, lostLease, mostBytes, type PlatformFailure, readText, shownPath } from "../../base/files/files.ts"
import { prettyJson } from "../../base/text/text.ts"
import * as Layout from "../Layout.ts"
import { type FileTree, onDisk } from "./FileTree.ts"
import { RunStoreError, runStoreError } from "./RunStoreError.ts"

/** The content of `run.lease`. */
export const Lease = Schema.Struct({
  /** The number of processes that have opened the run, including this one. */
  number: Schema.Int,
  /** The process and its machine, for messages. */
  holder: Schema.String,
  /** A text that differs for each process, even if two take the same number at the same moment. */
  token: Schema.String,
  /** The processes that opened the run before, the last one first. */
  before: Schema.optionalKey(Schema.Array(Schema.String)),
})
/** The number of earlier processes that a lease names. */
const mostBefore = 16

const decode = Schema.decodeUnknownOption(jsonText(Lease))

/** Fails if another process may write the files. */
type Check = Effect.Effect<void, RunStoreError>

interface Fence {
  /** The number of this process, which is larger than those of all processes that opened the run before. */
  readonly number: number
  /** The processes that opened the run before, from its lease, the last one first. */
  readonly before: ReadonlyArray<string>
  readonly check: Check
}

/** Takes the next number of a run. From here on, the checks of earlier holders fail. */
export const takeFence = Effect.fnUntraced(function* (
  directory: string,
  holder: string,
): Effect.fn.Return<Fence, RunStoreError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(directory, Layout.lease)
  const failing = Effect.mapError((error: PlatformFailure) => runStoreError("take the lease", file, error))
  const context = yield* Effect.context<FileSystem.FileSystem>()
  const read = readText(file, mostBytes.config).pipe(
    Effect.catchIf(
      ({ missing }) => missing,
      () => Effect.succeed(""),
    ),
    Effect.provideContext(context),
  )
  const leaseIn = (text: string) => Option.getOrUndefined(decode(text))
  const token = crypto.randomUUID()
  const previous = leaseIn(yield* failing(read))
  const earlier = previous === undefined ? [] : [previous.holder, ...(previous.before ?? [])]
  const before = [...new Set(earlier)].filter((name) => name !== holder).slice(0, mostBefore)
  let number = (previous?.number ?? 0) + 1
  let mine = ""
  // Only the process that creates this file gets the number. Renaming it makes it the lease.
  for (;;) {
    mine = prettyJson({ number, holder, token, before })
    const claim = path.join(directory, `.${Layout.lease}-${number}.tmp`)
    const isClaimed = yield* fs.writeFileString(claim, mine, { flag: "wx" }).pipe(
      Effect.as(true),
      Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.succeed(false)),
      failing,
    )
    const newest = leaseIn(yield* failing(read))?.number ?? 0
    if (isClaimed && newest < number) {
      yield* failing(fs.rename(claim, file))
      break
    }
    if (isClaimed) yield* failing(fs.remove(claim))
    number = Math.max(number, newest) + 1
  }
  const check = sharedWhileRunning(
    Effect.gen(function* () {
      const text = yield* Effect.mapError(read, (error) => runStoreError("look at", file, error))
      // Without the file, the folder was moved, deleted or copied. The write itself will report that.
      if (text === mine || text === "") return
      const other = leaseIn(text)
      const now = other === undefined ? "another process" : `${other.holder}, with lease ${other.number},`
      const message = `${shownPath(directory)}: ${now} has taken this run over from lease ${number}; what this process has not written yet is dropped`
      return yield* new RunStoreError({ path: directory, operation: "lock", code: lostLease, message })
    }),
  )
  yield* check
  return { number, before, check }
})

/** Returns an Effect of which one execution serves all that ask for it while it runs: sinks that flush together check once. */
const sharedWhileRunning = (check: Check): Check => {
  let running: Deferred.Deferred<void, RunStoreError> | undefined
  // If an execution were interrupted before it has begun, the others would wait for ever.
  return Effect.uninterruptible(
    Effect.suspend(() => {
      if (running !== undefined) return Deferred.await(running)
      const done = Deferred.makeUnsafe<void, RunStoreError>()
      running = done
      return Effect.onExit(check, (exit) => {
        running = undefined
        return Deferred.done(done, exit)
      })
    }),
  )
}

/**
 * Removes the files and folders that earlier holders of the run were writing when they were killed, in all folders of the run. It
 * follows no link, and enters no folder with a lease of its own, since that is another run. What cannot be removed stays, and
 * only takes room. An earlier holder that lives has lost its lease, and with it what it has not renamed into place.
 */
const removeLeftovers = Effect.fnUntraced(function* (directory: string, number: number) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folders = [directory]
  for (const folder of folders) {
    const entries = yield* Effect.orElseSucceed(fs.readDirectoryEntries(folder), () => [])
    if (folder !== directory && entries.some(({ name }) => name === Layout.lease)) continue
    for (const { name, type } of entries) {
      const writer = /^\..+\.(\d+)\.tmp$/.exec(name)?.[1]
      const file = path.join(folder, name)
      if (writer !== undefined && Number(writer) < number)
        yield* Effect.ignore(fs.remove(file, { recursive: true, force: true }))
      else if (type === "Directory") folders.push(file)
    }
  }
})

/**
 * Opens a folder whose files are changed only while `check` succeeds. The check runs directly before each change. Temporary
 * names have the number of the lease: a process that lost it cannot write into the files of the next one.
 */
export const fenced = Effect.fnUntraced(function* (
  directory: string,
  { check, number }: Pick<Fence, "check" | "number">,
) {
  const fs = yield* FileSystem.FileSystem
  if (number > 1) yield* removeLeftovers(directory, number)
  const refused = (error: RunStoreError) =>
    PlatformError.systemError({
      // The tag must not be `PermissionDenied`, because making a link ignores that error.
      _tag: "Busy",
      module: "FileSystem",
      method: "rename",
      pathOrDescriptor: directory,
      cause: { code: codeOf(error) },
    })
  const checkedBefore = <A>(change: Effect.Effect<A, PlatformError.PlatformError>) =>
    Effect.andThen(Effect.mapError(check, refused), change)
  const tree = yield* onDisk(directory, { writer: number }).pipe(
    Effect.provideService(FileSystem.FileSystem, {
      ...fs,
      // Everything but appends is written below a temporary name, and then renamed.
      rename: (from, to) => checkedBefore(fs.rename(from, to)),
      truncate: (path, size) => checkedBefore(fs.truncate(path, size)),
    }),
  )
  return checkedTree(tree, check)
})

/**
 * Returns the tree with `check` before each change, and with its error if it fails. The changes that end with a checked
 * `rename` or `truncate` of the file system need no check before.
 */
const checkedTree = (tree: FileTree, check: Check): FileTree => {
  const explained = <A>(change: Effect.Effect<A, RunStoreError>) => Effect.tapError(change, () => check)
  const checked = <A>(change: Effect.Effect<A, RunStoreError>) => Effect.andThen(check, explained(change))
  return {
    ...tree,
    write: (path, contents, how) => explained(tree.write(path, contents, how)),
    append: (path, contents) => checked(tree.append(path, contents)),
    appending: (path) => Effect.map(tree.appending(path), (append) => (contents) => checked(append(contents))),
    truncate: (path, size) => explained(tree.truncate(path, size)),
    remove: (path) => explained(tree.remove(path)),
    writeDirectory: (path, files, last) => explained(tree.writeDirectory(path, files, last)),
    link: (path, target) => explained(tree.link(path, target)),
    repair: (path) => checked(tree.repair(path)),
  }
}
