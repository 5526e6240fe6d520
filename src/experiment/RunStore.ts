import { Context, Effect, FileSystem, Layer, Path, type Scope } from "effect"
import { type FileTree, inMemory, onDisk } from "./FileTree.ts"
import { fromPath, timeOf, toPath } from "./identifier.ts"
import { RunStoreError, runStoreError } from "./RunStoreError.ts"

export { RunStoreError } from "./RunStoreError.ts"

/** What a run is, as far as where it lives depends on it. */
export interface RunIdentity {
  readonly name: string
  /** What varies between runs, and its value in this one. */
  readonly population: Readonly<Record<string, string>>
  readonly seed: number
}

/** One run's folder. */
export interface RunFiles extends FileTree {
  /** The folder, for people and for `--resume`. */
  readonly directory: string
  /** The folder holds an earlier part of this run, which is to be gone on with. */
  readonly resumed: boolean
  /** How long each file that grows is at this moment. */
  readonly appendedSizes: Effect.Effect<Readonly<Record<string, number>>, RunStoreError>
  /** Cuts every file that grows back to such a moment; one that wasn't there yet is removed. `run.log` is never cut. */
  readonly cutBack: (sizes: Readonly<Record<string, number>>) => Effect.Effect<void, RunStoreError>
}

const growing = ["scores/train", "scores/val"]

const makeRunFiles = (tree: FileTree, resumed: boolean): RunFiles => {
  const growingFiles = Effect.gen(function* () {
    const files: Array<string> = []
    for (const folder of growing) for (const name of yield* tree.list(folder)) files.push(`${folder}/${name}`)
    if (yield* tree.exists("logs.tfevents")) files.push("logs.tfevents")
    return files
  })
  return {
    ...tree,
    directory: tree.root,
    resumed,
    appendedSizes: Effect.gen(function* () {
      const sizes: Record<string, number> = {}
      for (const file of yield* growingFiles) sizes[file] = yield* tree.size(file)
      return sizes
    }),
    cutBack: Effect.fnUntraced(function* (sizes) {
      for (const file of yield* growingFiles) {
        const size = sizes[file]
        if (size === undefined) yield* tree.remove(file)
        else if ((yield* tree.size(file)) >= size) yield* tree.truncate(file, size)
      }
      for (const [file, size] of Object.entries(sizes)) {
        const found = (yield* tree.exists(file)) ? yield* tree.size(file) : 0
        if (found >= size) continue
        const message = `${tree.root}/${file}: expected at least ${size} bytes, as its checkpoint says, found ${found}`
        return yield* new RunStoreError({ path: file, operation: "cut", message })
      }
    }),
  }
}

export interface FileSystemOptions {
  readonly resultsDir: string
  /** When the run starts. */
  readonly time: Date
  /** Seven hex digits, or `no-hash`. */
  readonly commit: string
  /** The folder of a run to go on with, instead of a new one. */
  readonly resume?: string
  /** Told the run's folder as soon as it is known. */
  readonly onOpen?: (directory: string) => Effect.Effect<void>
}

/** Where runs are kept. */
export class RunStore extends Context.Service<
  RunStore,
  { readonly open: (identity: RunIdentity) => Effect.Effect<RunFiles, RunStoreError, Scope.Scope> }
>()("effect-rl/experiment/RunStore") {
  /** Folders on disk, in the layout of `identifier.ts`. */
  static readonly layerFileSystem = (options: FileSystemOptions) =>
    Layer.effect(
      RunStore,
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
        const tree = (directory: string, resumed: boolean) =>
          onDisk(directory).pipe(
            Effect.provideContext(context),
            Effect.map((files) => makeRunFiles(files, resumed)),
            Effect.tap(() => options.onOpen?.(directory) ?? Effect.void),
          )

        /** Claims a new folder: another run that started in the same second has its own, so the next second is tried. */
        const claim = (identity: RunIdentity, time: Date): Effect.Effect<string, RunStoreError> => {
          const directory = path.join(options.resultsDir, toPath({ ...identity, time: timeOf(time), commit: options.commit }))
          return fs.makeDirectory(path.dirname(directory), { recursive: true }).pipe(
            Effect.andThen(fs.makeDirectory(directory)),
            Effect.as(directory),
            Effect.catchTag("PlatformError", (error) =>
              error.reason._tag === "AlreadyExists"
                ? claim(identity, new Date(time.getTime() + 1000))
                : Effect.fail(runStoreError("create", directory, error)),
            ),
          )
        }

        const resume = Effect.fnUntraced(function* (directory: string) {
          const files = yield* tree(directory, true)
          if (!(yield* files.exists("config.yaml"))) {
            const message = `${directory} is not a run: it has no config.yaml`
            return yield* new RunStoreError({ path: directory, operation: "resume", message })
          }
          return files
        })

        return RunStore.of({
          open: (identity) =>
            options.resume === undefined
              ? Effect.flatMap(claim(identity, options.time), (directory) => tree(directory, false))
              : resume(options.resume),
        })
      }),
    )

  /**
   * Runs in memory, for tests and for programs that keep nothing: the layer, and the files of each run by its folder.
   * Opening the same identity again goes on with what is there.
   */
  static readonly memory = (): { readonly layer: Layer.Layer<RunStore>; readonly runs: ReadonlyMap<string, Map<string, Uint8Array>> } => {
    const runs = new Map<string, Map<string, Uint8Array>>()
    const trees = new Map<string, FileTree>()
    return {
      runs,
      layer: Layer.succeed(RunStore, {
        open: (identity) =>
          Effect.sync(() => {
            const directory = toPath({ ...identity, time: "memory", commit: "no-hash" })
            const known = trees.get(directory)
            const files = new Map<string, Uint8Array>()
            const tree = known ?? inMemory(directory, files)
            if (known === undefined) {
              trees.set(directory, tree)
              runs.set(directory, files)
            }
            return makeRunFiles(tree, known !== undefined)
          }),
      }),
    }
  }

  static readonly layerMemory: Layer.Layer<RunStore> = Layer.suspend(() => RunStore.memory().layer)
}

/** The run that a path names, by its layout. */
export const identityOf = (directory: string): RunIdentity | undefined => fromPath(directory)
