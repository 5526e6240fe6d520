/**
 * Remembers, across processes, that the check of widened kernels found no difference, so that later processes start without
 * it. `wide-node.ts` uses it.
 */
import { createHash } from "node:crypto"
import { writeFileSync } from "node:fs"
import { cpus } from "node:os"
import { join } from "node:path"
import { isMainThread } from "node:worker_threads"
import { isOwnFile } from "../../../bin/userCache.js"
import { compileCache } from "../../base/config/compile-cache-node.ts"

/** Remembers that the check passed. */
export interface PassedCheck {
  readonly has: () => boolean
  readonly add: () => void
}

/** Remembers nothing, so that each process makes the check. */
export const never: PassedCheck = { has: () => false, add: () => {} }

/** Remembers it by an empty file in this folder, for this build of the library and this processor alone: V8 compiles for the one that it runs on. */
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
        // Where nothing can be written, the next process makes the check again.
      }
    },
  }
}

/**
 * Remembers it where Node keeps compiled JavaScript. It remembers nothing if Node keeps none, and nothing in threads, because
 * another thread could reset the flags of V8 that the check sets.
 */
export const besideCompiled = (): PassedCheck => {
  const cache = isMainThread ? compileCache() : undefined
  if (cache === undefined) return never
  return inFolder(cache.folder, { build: cache.build, processor: cpus()[0]?.model ?? "" })
}
