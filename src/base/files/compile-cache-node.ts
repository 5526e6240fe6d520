/**
 * Finds the folder where Node caches compiled JavaScript, for this library's own cached files and for the processes
 * that it starts.
 */
// Bun and Deno lack some exports of this module, so import it as a whole: a missing named import would fail at once.
import * as nodeModule from "node:module"
import { basename, dirname } from "node:path"
import { privateFolder } from "../../../bin/userCache.js"

/**
 * Returns the environment variable that names the folder of this process's compile cache, if it has one. Without a
 * cache, a thread that loads TypeScript modules must first compile Node's parser, which takes about half a second of
 * CPU time.
 *
 * @example
 * ```ts
 * import { Worker } from "node:worker_threads"
 *
 * new Worker("program.ts", { env: { ...process.env, ...compileCacheVariable() } })
 * ```
 */
export const compileCacheVariable = (): { readonly NODE_COMPILE_CACHE?: string } => {
  const folder = nodeModule.getCompileCacheDir?.()
  // The folder's last part is the name of Node's version, which Node appends to the folder in the variable: remove it.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) }
}

/** The folder for files that depend on the code of this library, and a name that differs between any two builds of it. */
export interface CompileCache {
  readonly folder: string
  readonly build: string
}

/**
 * Returns the folder where Node keeps compiled JavaScript of this version and these flags of V8, such as the one that
 * the `effect` command sets. Returns undefined if Node has no cache, if other users can write to its folder, or if
 * this is not an installed package, since only the names of a package's bundles identify their content.
 */
export const compileCache = (): CompileCache | undefined => {
  const folder = nodeModule.getCompileCacheDir?.()
  const build = basename(import.meta.filename)
  if (folder === undefined || !/-[\w-]{8}\.js$/.test(build)) return undefined
  try {
    return { folder: privateFolder(folder), build }
  } catch {
    // If `NODE_COMPILE_CACHE` names a folder, others may be able to write to it; the command's own folder is private.
    return undefined
  }
}
