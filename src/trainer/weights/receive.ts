/**
 * Reads the broadcasts of a run, for an inference server: finds the newest complete one, and reads its files. It ignores
 * incomplete broadcasts, which have no file `STABLE`.
 *
 * @example
 * ```ts
 * const tree = yield* FileTree.onDisk("out/run_a")
 * const step = yield* newestBroadcast(tree)
 * const files = step === undefined ? undefined : yield* readBroadcast(tree, step)
 * ```
 */
import { Effect } from "effect"
import type { FileTree } from "../../run/store/FileTree.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import * as Layout from "../Layout.ts"
import { isStable, newestStable } from "../runs/stepFolders.ts"

/** Returns the step of the newest complete broadcast, from `atLeast` on; undefined if there is none. */
export const newestBroadcast = (tree: FileTree, atLeast = 0): Effect.Effect<number | undefined, RunStoreError> =>
  newestStable(tree, Layout.broadcasts, atLeast)

/**
 * Reads the files of a complete broadcast. Undefined if it does not exist, or was removed meanwhile because there are newer
 * ones.
 */
export const readBroadcast = Effect.fnUntraced(function* (
  tree: FileTree,
  step: number,
): Effect.fn.Return<Readonly<Record<string, Uint8Array>> | undefined, RunStoreError> {
  if (!(yield* isStable(tree, Layout.broadcasts, step))) return undefined
  const path = Layout.broadcast(step)
  const read = Effect.gen(function* () {
    const files: Record<string, Uint8Array> = {}
    for (const name of yield* tree.list(path)) {
      if (name !== Layout.stable) files[name] = yield* tree.read(`${path}/${name}`)
    }
    return files
  })
  const result = yield* Effect.result(read)
  // Check again: the folder may have been removed while its files were read.
  if (!(yield* isStable(tree, Layout.broadcasts, step))) return undefined
  return yield* Effect.fromResult(result)
})
