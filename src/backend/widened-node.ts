/**
 * Remembers, across processes, for which WebAssembly modules the check of widened kernels found no difference, so that a
 * program starts without the check when it runs again. `wide-node.ts` uses it.
 */
import { createHash } from "node:crypto"
import { existsSync, writeFileSync } from "node:fs"
import { getCompileCacheDir } from "node:module"
import { cpus } from "node:os"
import { join } from "node:path"

/** The modules for which the check found no difference. */
export interface Widened {
  readonly has: (bytes: Uint8Array) => boolean
  readonly add: (bytes: Uint8Array) => void
}

/** Remembers nothing, so that each process makes the check. */
export const none: Widened = { has: () => false, add: () => {} }

/**
 * Remembers modules by empty files in this folder, each named after a digest of a module's bytes and of the processor, since V8
 * compiles for the one that it runs on.
 */
export const inFolder = (folder: string, processor = cpus()[0]?.model ?? ""): Widened => {
  const fileOf = (bytes: Uint8Array): string =>
    join(folder, `widened-${createHash("sha256").update(processor).update(bytes).digest("hex").slice(0, 32)}`)
  return {
    has: (bytes) => existsSync(fileOf(bytes)),
    add: (bytes) => {
      try {
        writeFileSync(fileOf(bytes), "")
      } catch {
        // Where nothing can be written, the next process makes the check again.
      }
    },
  }
}

/**
 * Remembers modules where Node keeps compiled JavaScript of this version and these flags of V8, as under the command. Without
 * such a folder (see `module.enableCompileCache`), nothing is remembered.
 */
export const besideCompiled = (): Widened => {
  const folder = getCompileCacheDir()
  return folder === undefined ? none : inFolder(folder)
}
