/** Finds the folder where Node keeps compiled JavaScript, for what this library keeps there. */
import { createRequire, getCompileCacheDir } from "node:module"

/** The folder, and the version of this library, whose other versions may have the same folder. */
export interface CompileCache {
  readonly folder: string
  readonly version: string
}

/**
 * The folder where Node keeps compiled JavaScript of this version and these flags of V8, as under the command. Undefined if
 * there is none (see `module.enableCompileCache`), and for sources, which change without a new version.
 */
export const compileCache = (): CompileCache | undefined => {
  const folder = getCompileCacheDir()
  if (folder === undefined || import.meta.url.endsWith(".ts")) return undefined
  const { version }: { readonly version: string } = createRequire(import.meta.url)("../../package.json")
  return { folder, version }
}
