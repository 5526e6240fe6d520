/**
 * Keeps compiled programs of the backend `native` between processes, in a folder that only the user can enter. Each is a
 * shared library whose name contains the digest of all that it was made from, and the digest of its content, which is
 * checked before the library is loaded.
 */
import { createHash } from "node:crypto"
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { cacheIn, isOwnFile, privateFolder, userCaches } from "../../../bin/userCache.js"
import { messageOf } from "../../base/text/text.ts"
import type { BackendUnavailable } from "./Backend.ts"
import { type CCompiler, compileFile, type CompilerLimits, unavailable } from "./compiler-node.ts"

const digestOf = (content: string | Uint8Array): string =>
  createHash("sha256").update(content).digest("hex").slice(0, 40)

/** If more files than these are kept, or more bytes, those that were unused for longest are removed. */
const mostFiles = 200
const mostBytes = 256 * 2 ** 20

/** Temporary folders of compilers that are older than a day were left by processes that were killed. */
const leftOverMs = 86_400_000

const temporaryPrefix = "compiling-"

/**
 * Opens the folder for compiled programs. If the user has no place for caches, it is a new one for this process. Fails if
 * others can write to the folder.
 */
export const objectsFolder = (caches?: string): Effect.Effect<string, BackendUnavailable> =>
  attempted("there is no private folder for compiled programs", () => {
    try {
      return cacheIn(caches ?? userCaches(), "native")
    } catch (error) {
      const isMissing = error instanceof Error && ("code" in error || error.message.startsWith("HOME is "))
      if (caches !== undefined || !isMissing) throw error
    }
    const own = mkdtempSync(join(tmpdir(), "effect-rl-native-"))
    process.once("exit", () => rmSync(own, { recursive: true, force: true }))
    return privateFolder(own)
  })

/** Returns the path of a shared library of the code; compiles it if it is not there, or is damaged. */
export const objectOf = (
  code: string,
  compiler: CCompiler,
  folder: string,
  limits: CompilerLimits,
): Effect.Effect<string, BackendUnavailable> =>
  Effect.suspend(() => {
    const key = digestOf(`${compiler.identity}\n${code}`)
    const existing = existingObject(folder, key)
    if (existing !== undefined) return Effect.succeed(existing)
    const compileIn = (own: string) =>
      Effect.gen(function* () {
        const [source, library] = [join(own, "program.c"), join(own, "program.so")]
        yield* attempted("the program's code was not written", () => writeFileSync(source, code, { mode: 0o600 }))
        yield* compileFile(compiler, { source, library, folder: own }, limits)
        return yield* attempted("the compiled program was not kept", () => {
          const file = join(folder, `${key}-${digestOf(readFileSync(library))}.so`)
          renameSync(library, file)
          removeOld(folder, file)
          return file
        })
      })
    return inTemporaryFolder(folder, compileIn)
  })

/** Makes a private folder for the files of one compilation; removes it afterwards. */
export const inTemporaryFolder = <A, E, R>(
  folder: string,
  use: (own: string) => Effect.Effect<A, E, R>,
): Effect.Effect<A, E | BackendUnavailable, R> =>
  Effect.acquireUseRelease(
    attempted("there is no folder for the compiler", () => mkdtempSync(join(folder, temporaryPrefix))),
    use,
    (own) => Effect.sync(() => removeFolder(own)),
  )

/** Tells whether a kept library, just before it is loaded, still has the content with which it was kept. */
export const isAsKept = (file: string): boolean =>
  isOwnFile(file) && file.endsWith(`-${digestOf(readFileSync(file))}.so`)

/** Returns the path of a kept library whose content is as it was written; removes a damaged one. */
const existingObject = (folder: string, key: string): string | undefined => {
  try {
    for (const name of readdirSync(folder).filter((one) => one.startsWith(`${key}-`))) {
      const file = join(folder, name)
      if (isAsKept(file)) {
        utimesSync(file, new Date(), new Date())
        return file
      }
      rmSync(file, { force: true, recursive: true })
    }
  } catch {
    // What cannot be read is compiled again.
  }
  return undefined
}

/** Removes a compiler's folder. A compiler that was just killed may still make a file in it; what stays is removed later. */
const removeFolder = (own: string): void => {
  try {
    rmSync(own, { recursive: true, force: true, maxRetries: 3 })
  } catch {
    // `removeOld` removes it after a day.
  }
}

/** Removes what was unused for longest, if there is too much. The library `inUse` is kept, because it is loaded next. */
const removeOld = (folder: string, inUse: string): void => {
  const entries = readdirSync(folder).flatMap((name) => {
    const file = join(folder, name)
    const stat = statSync(file, { throwIfNoEntry: false })
    return stat === undefined ? [] : [{ name, file, time: stat.mtimeMs, bytes: stat.size }]
  })
  const oldest = Date.now() - leftOverMs
  for (const { file, name, time } of entries) if (name.startsWith(temporaryPrefix) && time < oldest) removeFolder(file)
  const libraries = entries.filter(({ name }) => name.endsWith(".so")).toSorted((a, b) => b.time - a.time)
  let [files, bytes] = [0, 0]
  for (const library of libraries) {
    files++
    bytes += library.bytes
    if ((files > mostFiles || bytes > mostBytes) && library.file !== inUse) rmSync(library.file, { force: true })
  }
}

export const attempted = <A>(missing: string, body: () => A): Effect.Effect<A, BackendUnavailable> =>
  Effect.try({
    try: body,
    catch: (error) =>
      unavailable(
        `${missing} (${messageOf(error)})`,
        'Make room or correct the permissions; or choose the backend "wasm", which has the same results.',
      ),
  })
