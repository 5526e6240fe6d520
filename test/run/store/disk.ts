import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, FileSystem, Layer, type Path, type Scope } from "effect"
import { type FileSystemOptions, RunStore, type RunFiles, type RunStoreError } from "../../../src/run/store/RunStore.ts"

/** The machine's own files. */
export const disk: Layer.Layer<FileSystem.FileSystem | Path.Path> = Layer.merge(NodeFileSystem.layer, NodePath.layer)

/** A folder that is gone after the test. */
export const temporaryDirectory = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped())

export const moment = new Date("2026-01-31T12:00:00Z")
export const identity = { name: "tune", population: { algorithm: "ppo", environment: "CartPole-v1" }, seed: 7 }

/** Opens the run of `identity` in a store with these options. */
export const openRun = (
  options: Pick<FileSystemOptions, "resultsDir"> & Partial<FileSystemOptions>,
): Effect.Effect<RunFiles, RunStoreError, Scope.Scope | FileSystem.FileSystem | Path.Path> =>
  Effect.flatMap(RunStore, (store) => store.open(identity)).pipe(
    Effect.provide(RunStore.layerFileSystem({ time: moment, commit: "0123abc", ...options })),
  )

/** A run in a folder that is gone after the test. */
export const temporaryRun = Effect.flatMap(temporaryDirectory, (resultsDir) => openRun({ resultsDir }))

/** A run in memory. */
export const memoryRun = Effect.flatMap(RunStore, (store) => store.open(identity)).pipe(
  Effect.provide(RunStore.layerMemory),
)
