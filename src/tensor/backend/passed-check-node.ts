/**
 * Remembers across processes that the check of widened kernels, or of a C compiler's code, has passed, so that later processes
 * need not repeat it. `wide-node.ts` and `libraries-node.ts` use it.
 */
import { createHash } from "node:crypto"
import { writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { isMainThread } from "node:worker_threads"
import { isOwnFile } from "../../../bin/userCache.js"
import { compileCache } from "../../base/files/compile-cache-node.ts"

/** Stores whether the check has passed. */
export interface PassedCheck {
  readonly has: () => boolean
  readonly add: () => void
}

/** Remembers nothing, so that each process makes the check. */
export const never: PassedCheck = { has: () => false, add: () => {} }

/**
 * Stores it as an empty file in a folder, whose name contains this build of the library and this processor, because
 * compilers make other code for other processors.
 */
export const inFolder = (
  folder: string,
  { build, processor }: { readonly build: string; readonly processor: string },
): PassedCheck => {
  const digest = createHash("sha256").update(`${build}\n${processor}`).digest("hex").slice(0, 16)
  const file = join(folder, `effect-rl-widens-${digest}`)
  return {
    has: () => isOwnFile(file),
    add: () => {
      try {
        writeFileSync(file, "", { mode: 0o600 })
      } catch {
        // If the file cannot be written, the next process makes the check again.
      }
    },
  }
}

/**
 * Stores it where Node caches compiled JavaScript. It stores nothing if Node has no such folder, or in worker threads,
 * because another thread could reset the flags of V8 that the check sets.
 */
export const besideCompiled = (): PassedCheck => {
  const cache = isMainThread ? compileCache() : undefined
  if (cache === undefined) return never
  return inFolder(cache.folder, { build: cache.build, processor: cpus()[0]?.model ?? "" })
}
