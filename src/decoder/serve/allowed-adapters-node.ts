/** Limits the adapters that clients of a server may load to those in certain folders. `effect serve` uses it. */
import { readdirSync, realpathSync } from "node:fs"
import { isAbsolute, join, relative, resolve, sep } from "node:path"
import { Effect } from "effect"

const isIn = (folder: string, path: string): boolean => {
  const inside = relative(folder, path)
  return inside !== ".." && !inside.startsWith(`..${sep}`) && !isAbsolute(inside)
}

const realOf = (path: string): string | undefined => {
  try {
    return realpathSync.native(path)
  } catch {
    return undefined
  }
}

/**
 * Returns the real path of an adapter's folder; undefined if the folder, or a file in it, is outside of the allowed folders.
 */
const locate = (folders: ReadonlyArray<string>, path: string): string | undefined => {
  if (path.includes("\0")) return undefined
  const typed = resolve(path)
  const roots = folders.flatMap((folder) => realOf(folder) ?? [])
  // A path that is outside as a text is not looked up, so that answers do not show whether it exists.
  if (![...folders, ...roots].some((folder) => isIn(resolve(folder), typed))) return undefined
  const real = realOf(typed)
  const isAllowed = (found: string | undefined): boolean =>
    found !== undefined && roots.some((folder) => isIn(folder, found))
  if (real === undefined || !isAllowed(real)) return undefined
  try {
    return readdirSync(real).every((name) => isAllowed(realOf(join(real, name)))) ? real : undefined
  } catch {
    return undefined
  }
}

/**
 * The answer for every path that a client may not use. It is always the same, so that clients cannot find out which files
 * exist.
 */
export const refusedPath =
  "lora_path: there is no adapter at that path that clients may load; the flag --adapters DIR allows a folder"

/**
 * Makes the function that reads an adapter at a client's path. Neither `..` nor symbolic links lead out of the folders, and
 * all refusals are the same.
 */
export const adaptersIn =
  <A>(
    folders: ReadonlyArray<string>,
    read: (path: string) => Effect.Effect<A, { readonly message: string }>,
  ): ((path: string) => Effect.Effect<A, { readonly message: string }>) =>
  (path) =>
    Effect.suspend(() => {
      const found = locate(folders, path)
      return found === undefined ? Effect.fail({ message: refusedPath }) : read(found)
    })
