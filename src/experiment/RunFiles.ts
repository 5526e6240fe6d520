import { Effect } from "effect"
import type { FileTree } from "./FileTree.ts"
import { type Places, relocated } from "./relocated.ts"
import type { RunIdentity } from "./RunStore.ts"
import { RunStoreError } from "./RunStoreError.ts"

/** One run's folder. */
export interface RunFiles extends FileTree {
  /** The folder, for people and for `--resume`. */
  readonly directory: string
  readonly identity: RunIdentity
  /** The folder holds an earlier part of this run, which is to be gone on with. */
  readonly resumed: boolean
  /** How long each file that grows is at this moment; that much of it is on disk. */
  readonly appendedSizes: Effect.Effect<Readonly<Record<string, number>>, RunStoreError>
  /** Cuts every file that grows back to such a moment; one that wasn't there yet is removed. `run.log` is never cut. */
  readonly cutBack: (sizes: Readonly<Record<string, number>>) => Effect.Effect<void, RunStoreError>
  /** The same run, in which some files and folders lie elsewhere than usual. */
  readonly placed: (places: Places) => RunFiles
}

/** What grows line by line and must be, at the end, as if the run had never been interrupted. */
const growing = {
  folders: ["scores/train", "scores/val", "rollouts/train", "rollouts/val"],
  files: ["logs.tfevents", "progress.csv"],
}

export const makeRunFiles = (tree: FileTree, identity: RunIdentity, resumed: boolean): RunFiles => {
  const growingFiles = Effect.gen(function* () {
    const files: Array<string> = []
    for (const folder of growing.folders) {
      for (const name of yield* tree.list(folder)) if (!name.startsWith(".")) files.push(`${folder}/${name}`)
    }
    for (const file of growing.files) if (yield* tree.exists(file)) files.push(file)
    return files
  })

  const sizeNow = (file: string) =>
    Effect.flatMap(tree.exists(file), (exists) => (exists ? tree.size(file) : Effect.succeed(0)))

  return {
    ...tree,
    placed: (places) => makeRunFiles(relocated(tree, places), identity, resumed),
    directory: tree.root,
    identity,
    resumed,
    appendedSizes: Effect.gen(function* () {
      const sizes: Record<string, number> = {}
      for (const file of yield* growingFiles) {
        yield* tree.sync(file)
        sizes[file] = yield* tree.size(file)
      }
      return sizes
    }),
    cutBack: Effect.fnUntraced(function* (sizes) {
      // First look, then cut: what cannot be cut back whole stays as it is.
      for (const [file, size] of Object.entries(sizes)) {
        const found = yield* sizeNow(file)
        if (found >= size) continue
        const message = `${tree.root}/${file}: expected at least ${size} bytes, as its checkpoint says, found ${found}`
        return yield* new RunStoreError({ path: `${tree.root}/${file}`, operation: "cut", message })
      }
      for (const file of yield* growingFiles) {
        yield* Object.hasOwn(sizes, file) ? tree.truncate(file, sizes[file]) : tree.remove(file)
      }
    }),
  }
}
