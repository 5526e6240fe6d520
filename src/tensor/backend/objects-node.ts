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
import { cacheIn, isOwnFile, userCache } from "../../../bin/userCache.js"
import { messageOf } from "../../base/config/text.ts"
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

/** Opens the folder for compiled programs; if the user can have no private cache, a new one for this process. */
export const objectsFolder = (caches?: string): Effect.Effect<string, BackendUnavailable> =>
  attempted("there is no private folder for compiled programs", () => {
    const folder = caches === undefined ? userCache("native") : cacheIn(caches, "native")
    if (folder !== undefined) return folder
    const own = mkdtempSync(join(tmpdir(), "effect-rl-native-"))
    process.once("exit", () => rmSync(own, { recursive: true, force: true }))
    return own
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
    return Effect.acquireUseRelease(
      attempted("there is no folder for the compiler", () => mkdtempSync(join(folder, temporaryPrefix))),
      compileIn,
      (own) => Effect.sync(() => removeFolder(own)),
    )
  })

/** Returns the path of a kept library whose content is as it was written; removes a damaged one. */
const existingObject = (folder: string, key: string): string | undefined => {
  try {
    for (const name of readdirSync(folder).filter((one) => one.startsWith(`${key}-`))) {
      const file = join(folder, name)
      if (isOwnFile(file) && name === `${key}-${digestOf(readFileSync(file))}.so`) {
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

const attempted = <A>(missing: string, body: () => A): Effect.Effect<A, BackendUnavailable> =>
  Effect.try({
    try: body,
    catch: (error) =>
      unavailable(
        `${missing} (${messageOf(error)})`,
        'Make room or correct the permissions; or choose the backend "wasm", which has the same results.',
      ),
  })
