/** Finds the folder where Node keeps compiled JavaScript, for what this library keeps there and for processes that it starts. */
// Bun and Deno lack some names of this module, which an import by name would demand when it is loaded.
import * as nodeModule from "node:module"
import { basename, dirname } from "node:path"
import { privateFolder } from "../../../bin/userCache.js"

/**
 * Returns the environment variable that names the folder of this process's compile cache, if it has one. A thread that loads
 * modules of TypeScript without a cache compiles Node's parser first, which takes about half a second of CPU time.
 *
 * @example
 * ```ts
 * new Worker(program, { env: { ...process.env, ...compileCacheVariable() } })
 * ```
 */
export const compileCacheVariable = (): { readonly NODE_COMPILE_CACHE?: string } => {
  const folder = nodeModule.getCompileCacheDir?.()
  // Node adds the name of its version, with which the folder ends, to the folder that the variable names.
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) }
}

/** The folder for files that depend on the code of this library, and a name that differs between any two builds of it. */
export interface CompileCache {
  readonly folder: string
  readonly build: string
}

/**
 * Returns the folder where Node keeps compiled JavaScript of this version and these flags of V8, as under the command. Returns
 * undefined if Node keeps none, if others can write to its folder, and outside of an installed package: only the names of its
 * bundles say what is in them.
 */
export const compileCache = (): CompileCache | undefined => {
  const folder = nodeModule.getCompileCacheDir?.()
  const build = basename(import.meta.filename)
  if (folder === undefined || !/-[\w-]{8}\.js$/.test(build)) return undefined
  try {
    return { folder: privateFolder(folder), build }
  } catch {
    // NODE_COMPILE_CACHE names this folder: the command's own folder is private.
    return undefined
  }
}
