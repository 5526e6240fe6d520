/**
 * Reads the broadcasts of a run, for an inference server: finds the newest complete one, waits for it, and reads its
 * files. It never sees an incomplete broadcast, because a folder counts only with its file `STABLE`.
 *
 * @example
 * ```ts
 * const tree = yield* onDisk("out/run_a")
 * yield* Stream.runForEach(broadcasts(tree, { after: 0 }), (step) =>
 *   Effect.flatMap(readBroadcast(tree, step), (files) => load(step, files)),
 * )
 * ```
 */
import { type Duration, Effect, Stream } from "effect"
import type { FileTree } from "../../run/store/FileTree.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import * as Layout from "../Layout.ts"
import { isStable, newestStable } from "../runs/stepFolders.ts"

export interface ReceiveOptions {
  /** The time between two looks at the folder. @default "100 millis" */
  readonly pollInterval?: Duration.Input
}

/** Returns the step of the newest complete broadcast, from `atLeast` on; undefined if there is none. */
export const newestBroadcast = (tree: FileTree, atLeast = 0): Effect.Effect<number | undefined, RunStoreError> =>
  newestStable(tree, Layout.broadcasts, atLeast)

/** Waits for a complete broadcast of step `atLeast` or later, and returns the step of the newest. */
export const awaitBroadcast = Effect.fnUntraced(function* (
  tree: FileTree,
  atLeast: number,
  { pollInterval = "100 millis" }: ReceiveOptions = {},
): Effect.fn.Return<number, RunStoreError> {
  while (true) {
    const step = yield* newestBroadcast(tree, atLeast)
    if (step !== undefined) return step
    yield* Effect.sleep(pollInterval)
  }
})

/**
 * Emits the step of each new broadcast, as soon as it is complete. If several appear between two looks, only the newest
 * counts. The stream never ends.
 */
export const broadcasts = (
  tree: FileTree,
  { after = -1, ...options }: ReceiveOptions & { /** The step that is already loaded. */ readonly after?: number } = {},
): Stream.Stream<number, RunStoreError> =>
  Stream.unfold(after, (before) =>
    Effect.map(awaitBroadcast(tree, before + 1, options), (step) => [step, step] as const),
  )

/**
 * Reads the files of a complete broadcast; undefined if it does not exist, or was removed meanwhile, because there are
 * newer ones.
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
  // A folder that was removed while it was read still had its marker before, so look again.
  if (!(yield* isStable(tree, Layout.broadcasts, step))) return undefined
  return yield* Effect.fromResult(result)
})
