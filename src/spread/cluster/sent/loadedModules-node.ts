/**
 * Records the local files of a user's program while Node loads them: the module that the user names and all modules that it
 * imports, but no packages and not this library. A client of a cluster sends their digests with its jobs; a worker refuses
 * them if a file differs, or if it has loaded an earlier version of the file, which Node would not load again.
 *
 * @example
 * ```ts
 * watchModules() // before the program is loaded
 * const files = loadedBesides("train.ts")
 * ```
 */
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import * as nodeModule from "node:module"
import { resolve, sep } from "node:path"
import { fileURLToPath } from "node:url"

/** The digests of the files that were loaded, by their paths. */
const loaded = new Map<string, string>()
let isWatching = false

/** The folder of this library's code. Its files are not recorded, because the library has a version of its own. */
const library = fileURLToPath(new URL("../../../", import.meta.url))

/** Begins to record the local files that Node loads, and continues until the process ends. */
export const watchModules = (): void => {
  if (isWatching) return
  isWatching = true
  nodeModule.registerHooks({
    load: (url, context, next) => {
      const path = url.startsWith("file:") ? fileURLToPath(url.replace(/[?#].*$/, "")) : undefined
      if (path !== undefined && !path.startsWith(library) && !path.includes(`${sep}node_modules${sep}`)) {
        const content = readOrUndefined(path)
        if (content !== undefined) loaded.set(path, digestOfBytes(content))
      }
      return next(url, context)
    },
  })
}

/** Returns the sorted paths of the local files that were loaded, without `file` and without files that no longer exist. */
export const loadedBesides = (file: string): ReadonlyArray<string> =>
  [...loaded.keys()].filter((path) => path !== resolve(file) && existsSync(path)).sort()

/** Returns the digest that a file had when it was loaded; undefined if it was not loaded. */
export const digestWhenLoaded = (file: string): string | undefined => loaded.get(resolve(file))

export const digestOfBytes = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

const readOrUndefined = (path: string): Uint8Array | undefined => {
  try {
    return readFileSync(path)
  } catch {
    // A file that cannot be read has no digest. Node reports what is wrong with it.
    return undefined
  }
}
