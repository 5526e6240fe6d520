import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Option, type PlatformError } from "effect"

type Failure = PlatformError.PlatformError

/** A disk on which a test lets operations fail, or does something just before an operation. */
export interface BadDisk {
  /** Called before each operation on a path; returns the error with which it fails, if any. */
  before: (operation: string, path: string) => Failure | undefined
  /** Whether the disk has no inodes and no times of birth, as some have. */
  hasNumbers: boolean
}

export const makeBadDisk = () => {
  const disk: BadDisk = { before: () => undefined, hasNumbers: true }
  const watched =
    <Rest extends ReadonlyArray<unknown>, A>(
      operation: string,
      run: (path: string, ...rest: Rest) => Effect.Effect<A, Failure>,
    ) =>
    (path: string, ...rest: Rest): Effect.Effect<A, Failure> =>
      Effect.suspend(() => {
        const error = disk.before(operation, path)
        return error === undefined ? run(path, ...rest) : Effect.fail(error)
      })
  const layer = Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs): FileSystem.FileSystem => ({
      ...fs,
      exists: watched("exists", fs.exists),
      makeDirectory: watched("makeDirectory", fs.makeDirectory),
      readDirectory: watched("readDirectory", fs.readDirectory),
      readFile: watched("readFile", fs.readFile),
      remove: watched("remove", fs.remove),
      rename: watched("rename", fs.rename),
      stat: watched("stat", (path: string) =>
        Effect.map(fs.stat(path), (info) =>
          disk.hasNumbers ? info : { ...info, ino: Option.none(), birthtime: Option.none() },
        ),
      ),
      writeFileString: watched("writeFileString", fs.writeFileString),
    })),
  ).pipe(Layer.provide(NodeServices.layer))
  return { disk, layer }
}
