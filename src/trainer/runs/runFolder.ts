/**
 * Reads and writes the trainer's small files in the folder of a run, which the user can delete at any moment. These functions
 * never create the run's folder: a write into a folder that has vanished fails, and leaves nothing behind.
 */
import { type Context, Effect, FileSystem, Option, Path, type PlatformError } from "effect"
import { mostBytes, type PlatformFailure, readText, systemMessage } from "../../base/files/files.ts"
import { oneLine } from "../../base/text/text.ts"
import { foreignLinkIn, refuseLinkOnPath } from "../../run/store/links.ts"
import * as Layout from "../Layout.ts"
import { TrainerError } from "../TrainerError.ts"

/**
 * The numbers of a file system that distinguish a folder from one that was deleted and made again. Undefined if the file
 * system lacks them.
 */
interface FolderStat {
  readonly inode: bigint | undefined
  /** The time in milliseconds at which the folder was made. */
  readonly birth: number | undefined
}

/** The identity of a folder when its run was found. */
export interface Origin extends FolderStat {
  /** The content of the token file. */
  readonly token: string
  /** Whether the token was written. A full disk or a missing permission prevents it. */
  readonly isMarked: boolean
}

/** The result of reading a small text file. */
type Read =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Missing" }
  | { readonly _tag: "Failed"; readonly problem: string }

/**
 * Tells whether the run has ended after `maxSteps`, from the text of its file `control/finished`. A run that was resumed with
 * more steps still has the file of its earlier end, with the old number.
 */
export const isEndAfter = (maxSteps: number | null, text: string): boolean =>
  maxSteps !== null && text.trim() === String(maxSteps)

/** The functions that read and write the folders of runs. */
export type RunFolders = Effect.Success<typeof makeRunFolders>

const isMissing = (error: PlatformError.PlatformError): boolean => error.reason._tag === "NotFound"

/** The services through which the folders of runs are read and written. */
interface FolderAccess {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly context: Context.Context<FileSystem.FileSystem | Path.Path>
}

/** Reads a small text file. A file to which a link leads is not read: a message could show what is in it. */
const readSmall = (access: FolderAccess, directory: string, relative: string): Effect.Effect<Read> => {
  const file = access.path.join(directory, relative)
  return refuseLinkOnPath(access, directory, file, "any").pipe(
    Effect.andThen(readText(file, mostBytes.config)),
    Effect.provideContext(access.context),
    Effect.match({
      onSuccess: (text): Read => ({ _tag: "Text", text }),
      onFailure: ({ missing, message }): Read => (missing ? { _tag: "Missing" } : { _tag: "Failed", problem: message }),
    }),
  )
}

/**
 * Returns the identifying numbers of a folder; undefined if the folder does not exist. Fails if that cannot be determined.
 */
const stat = (access: FolderAccess, directory: string): Effect.Effect<FolderStat | undefined, PlatformFailure> =>
  access.fs.stat(directory).pipe(
    Effect.map(({ type, ino, birthtime }) =>
      type === "Directory"
        ? {
            inode: Option.getOrUndefined(ino),
            birth: Option.getOrUndefined(Option.map(birthtime, (time) => time.getTime())),
          }
        : undefined,
    ),
    Effect.catchIf(isMissing, () => Effect.succeed(undefined)),
  )

/**
 * Lists the folders of runs, sorted by name. Fails if the output folder cannot be read, so that its runs do not count as
 * deleted.
 */
const listRuns = Effect.fnUntraced(function* (access: FolderAccess, outputDirectory: string) {
  const failing = Effect.mapError((error: PlatformFailure) =>
    TrainerError.at(outputDirectory, `cannot look for runs: ${systemMessage(error)}`),
  )
  const names = (yield* failing(access.fs.readDirectory(outputDirectory))).filter(Layout.isRunName)
  const folders: Array<string> = []
  for (const name of names.toSorted()) {
    // A folder that cannot be read at the moment stays in the list, so that its run does not count as deleted.
    const found = yield* Effect.exit(stat(access, access.path.join(outputDirectory, name)))
    if (found._tag === "Failure" || found.value !== undefined) folders.push(name)
  }
  return folders
})

/**
 * Writes a small file as a whole. Creates the trainer's folder inside the run's folder, but no other folder. Returns the
 * problem if it fails.
 */
const writeSmall = (
  access: FolderAccess,
  directory: string,
  relative: string,
  text: string,
): Effect.Effect<string | undefined> => {
  const file = access.path.join(directory, relative)
  const folder = access.path.dirname(file)
  const temporary = access.path.join(folder, `.${access.path.basename(file)}.tmp`)
  const makeOwnFolder = access.fs
    .makeDirectory(folder)
    .pipe(Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.void))
  const removeTemporary = access.fs.remove(temporary, { force: true })
  const write = Effect.gen(function* () {
    if (access.path.dirname(relative) === Layout.control) yield* makeOwnFolder
    // Something may have the temporary name: the file of a killed process, or a link of somebody else.
    yield* removeTemporary
    yield* access.fs.writeFileString(temporary, text, { flag: "wx" })
    yield* access.fs.rename(temporary, file)
  }).pipe(Effect.onError(() => Effect.ignore(removeTemporary)))
  return refuseLinkOnPath(access, directory, file, "inFolders").pipe(
    Effect.andThen(write),
    Effect.uninterruptible,
    Effect.match({
      onSuccess: () => undefined,
      onFailure: (error: PlatformFailure) => systemMessage(error),
    }),
  )
}

const removeFile = (access: FolderAccess, directory: string, relative: string) => {
  const file = access.path.join(directory, relative)
  const remove = access.fs.remove(file, { force: true })
  return Effect.ignore(Effect.andThen(refuseLinkOnPath(access, directory, file, "inFolders"), remove))
}

/** Writes a token into a folder, so that `compare` can recognise the folder. Returns undefined if the folder has vanished. */
const markFolder = Effect.fnUntraced(function* (access: FolderAccess, directory: string, token: string) {
  const problem = yield* writeSmall(access, directory, Layout.token, token)
  const numbers = yield* Effect.orElseSucceed(stat(access, directory), () => ({ inode: undefined, birth: undefined }))
  const origin: Origin | undefined = numbers && { ...numbers, token, isMarked: problem === undefined }
  return { origin, problem }
})

/** Returns the identity of a folder that the trainer has marked; undefined if it is not marked. */
const recognise = Effect.fnUntraced(function* (
  access: FolderAccess,
  directory: string,
): Effect.fn.Return<Origin | undefined> {
  const token = yield* readSmall(access, directory, Layout.token)
  const numbers = yield* Effect.orElseSucceed(stat(access, directory), () => undefined)
  return token._tag === "Text" && numbers !== undefined ? { ...numbers, token: token.text, isMarked: true } : undefined
})

const differ = <A>(one: A | undefined, other: A | undefined): boolean =>
  one !== undefined && other !== undefined && one !== other

/**
 * Tells whether a folder is still the marked one. It is another one if its token is missing or different, or if both its
 * inode and its time of birth have changed. One changed number is not enough: inodes are reused, some file systems lack the
 * time of birth, and a copied folder has the same token. If no token could be written, one changed number is enough.
 */
const compare = Effect.fnUntraced(function* (access: FolderAccess, directory: string, origin: Origin) {
  const numbers = yield* Effect.exit(stat(access, directory))
  if (numbers._tag === "Failure") return "unknown"
  if (numbers.value === undefined) return "gone"
  const changes = [differ(numbers.value.inode, origin.inode), differ(numbers.value.birth, origin.birth)].filter(
    (changed) => changed,
  ).length
  const token = yield* readSmall(access, directory, Layout.token)
  if (token._tag === "Failed") return "unknown"
  if (token._tag === "Text") return token.text !== origin.token || changes === 2 ? "another" : "same"
  return origin.isMarked || changes > 0 ? "another" : "same"
})

/** Reads the config of a run. Two config files are an error, because either could be meant, as is one that cannot be read. */
const readConfig = Effect.fnUntraced(function* (access: FolderAccess, directory: string) {
  const texts: Array<{ readonly file: string; readonly read: Exclude<Read, { _tag: "Missing" }> }> = []
  for (const name of Object.values(Layout.configFiles)) {
    const content = yield* readSmall(access, directory, name)
    if (content._tag !== "Missing") texts.push({ file: access.path.join(directory, name), read: content })
  }
  const failed = texts.find(({ read }) => read._tag === "Failed")
  if (failed !== undefined || texts.length < 2) return failed ?? texts.at(0)
  const problem = `expected one config, found ${texts.map(({ file }) => access.path.basename(file)).join(" and ")}; remove one of them`
  return { file: access.path.join(directory, Layout.configs), read: { _tag: "Failed", problem } as const }
})

/**
 * Writes the reason of an eviction into a run's folder. Checks the token before and after: if the folder is replaced
 * meanwhile, the new run must not be evicted for an old reason.
 */
const writeEviction = Effect.fnUntraced(function* (
  access: FolderAccess,
  directory: string,
  origin: Origin,
  reason: string,
) {
  if ((yield* compare(access, directory, origin)) !== "same") return false
  const problem = yield* writeSmall(access, directory, Layout.evicted, `${oneLine(reason)}\n`)
  if (problem !== undefined) return false
  if ((yield* compare(access, directory, origin)) === "same") return true
  yield* removeFile(access, directory, Layout.evicted)
  return false
})

/** Tells whether the run has ended after `maxSteps`, from its file `control/finished`. */
const isFinished = Effect.fnUntraced(function* (access: FolderAccess, directory: string, maxSteps: number | null) {
  const written = yield* readSmall(access, directory, Layout.finished)
  return written._tag === "Text" && isEndAfter(maxSteps, written.text)
})

/** Returns the steps of the complete checkpoints, in ascending order. Other names in the folder are ignored. */
const completeCheckpoints = Effect.fnUntraced(function* (access: FolderAccess, directory: string) {
  const folder = access.path.join(directory, Layout.checkpoints)
  const names = yield* access.fs
    .readDirectory(folder)
    .pipe(Effect.catchIf(isMissing, (): Effect.Effect<Array<string>> => Effect.succeed([])))
  const steps: Array<number> = []
  for (const name of names) {
    const step = Layout.stepOf(name)
    if (step !== undefined && (yield* access.fs.exists(access.path.join(folder, name, Layout.stable)))) steps.push(step)
  }
  return steps.toSorted((a, b) => a - b)
})

export const makeRunFolders = Effect.gen(function* () {
  const access: FolderAccess = {
    fs: yield* FileSystem.FileSystem,
    path: yield* Path.Path,
    context: yield* Effect.context<FileSystem.FileSystem | Path.Path>(),
  }
  const { path } = access
  return {
    list: (outputDirectory: string) => listRuns(access, outputDirectory),
    read: (directory: string, relative: string) => readSmall(access, directory, relative),
    readConfig: (directory: string) => readConfig(access, directory),
    write: (directory: string, relative: string, text: string) => writeSmall(access, directory, relative, text),
    remove: (directory: string, relative: string) => removeFile(access, directory, relative),
    mark: (directory: string, token: string) => markFolder(access, directory, token),
    recognise: (directory: string) => recognise(access, directory),
    compare: (directory: string, origin: Origin) => compare(access, directory, origin),
    writeEviction: (directory: string, origin: Origin, reason: string) =>
      writeEviction(access, directory, origin, reason),
    isFinished: (directory: string, maxSteps: number | null) => isFinished(access, directory, maxSteps),
    completeCheckpoints: (directory: string) => completeCheckpoints(access, directory),
    /** Returns the first link in a folder that a run does not make itself. A folder that cannot be read counts as one without. */
    foreignLink: (directory: string) =>
      foreignLinkIn(directory).pipe(
        Effect.orElseSucceed(() => undefined),
        Effect.provideContext(access.context),
      ),
    at: (...parts: ReadonlyArray<string>) => path.join(...parts),
  }
})
