/**
 * Writes and finds the folders of steps in a run: `broadcast/step_12`, `rollouts/step_12` and so on. A folder is written
 * under a temporary name, flushed to disk and renamed; the empty file `STABLE` is written last. A folder without `STABLE` is
 * incomplete, and readers ignore it.
 *
 * @example
 * ```ts
 * yield* writeStep(folder.tree, MultirunLayout.broadcasts, 12, { "adapter_model.safetensors": bytes })
 * yield* newestStable(folder.tree, MultirunLayout.broadcasts) // 12
 * ```
 */
import { Effect } from "effect"
import type { Contents, FileTree } from "../../run/store/FileTree.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import * as Layout from "../Layout.ts"

type Eff<A> = Effect.Effect<A, RunStoreError>

const pathOf = (folder: string, step: number): string => `${folder}/${Layout.stepName(step)}`

/** Writes the folder of a step as a whole, and replaces an earlier one. */
export const writeStep = (
  tree: FileTree,
  folder: string,
  step: number,
  files: Readonly<Record<string, Contents>>,
): Eff<void> => tree.writeDirectory(pathOf(folder, step), files, () => ({ [Layout.stable]: new Uint8Array(0) }))

/** Tells whether the folder of a step is complete. */
export const isStable = (tree: FileTree, folder: string, step: number): Eff<boolean> =>
  tree.exists(`${pathOf(folder, step)}/${Layout.stable}`)

/** Lists the steps that have a folder, even an incomplete one, in ascending order. */
export const stepsIn = (tree: FileTree, folder: string): Eff<ReadonlyArray<number>> =>
  Effect.map(tree.list(folder), (names) => names.flatMap((name) => Layout.stepOf(name) ?? []).sort((a, b) => a - b))

/** Lists the steps whose folders are complete, in ascending order. */
export const stableSteps = (tree: FileTree, folder: string): Eff<ReadonlyArray<number>> =>
  Effect.flatMap(stepsIn(tree, folder), (steps) => Effect.filter(steps, (step) => isStable(tree, folder, step)))

/** Returns the newest step, from `atLeast` on, whose folder is complete; undefined if there is none. */
export const newestStable = Effect.fnUntraced(function* (tree: FileTree, folder: string, atLeast = 0) {
  const steps = yield* stepsIn(tree, folder)
  for (const step of steps.toReversed()) {
    if (step < atLeast) return undefined
    if (yield* isStable(tree, folder, step)) return step
  }
  return undefined
})

/** Removes all folders that are older than the newest `keep` complete ones. */
export const keepNewest = Effect.fnUntraced(function* (tree: FileTree, folder: string, keep: number) {
  const kept = (yield* stableSteps(tree, folder)).slice(-keep)
  if (kept.length < keep) return
  for (const step of yield* stepsIn(tree, folder)) if (step < kept[0]) yield* tree.remove(pathOf(folder, step))
})

/** Removes all folders of steps before `step`. */
export const removeOlder = Effect.fnUntraced(function* (tree: FileTree, folder: string, step: number) {
  for (const other of yield* stepsIn(tree, folder)) if (other < step) yield* tree.remove(pathOf(folder, other))
})

/** Removes all folders of steps after `step`, such as those of weights that a resumed run no longer has. */
export const removeNewer = Effect.fnUntraced(function* (tree: FileTree, folder: string, step: number) {
  for (const other of yield* stepsIn(tree, folder)) if (other > step) yield* tree.remove(pathOf(folder, other))
})
