import { Effect, FileSystem, Layer, PlatformError } from "effect"
import { NodeFileSystem } from "@effect/platform-node"

/** Makes the error of a broken disk. */
export const diskError = (code: string): PlatformError.PlatformError =>
  PlatformError.systemError({
    _tag: "Unknown",
    module: "FileSystem",
    method: "write",
    cause: Object.assign(new Error(code), { code }),
  })

export interface Breakage {
  /** The first change of the disk that fails, counted from 1. All later ones fail too: the process is gone, or the disk is full. */
  readonly at: number
  readonly code: string
}

/** The machine's disk, until it breaks. What it was doing then is half done. */
export const brokenDisk = ({ at, code }: Breakage) => {
  const changes = { count: 0 }
  const broken = (): boolean => ++changes.count >= at
  const error = diskError(code)

  const guard = <A>(
    change: Effect.Effect<A, PlatformError.PlatformError>,
    half: Effect.Effect<unknown, PlatformError.PlatformError> = Effect.void,
  ): Effect.Effect<A, PlatformError.PlatformError> =>
    Effect.suspend(() => {
      if (!broken()) return change
      return changes.count === at ? Effect.andThen(Effect.ignore(half), Effect.fail(error)) : Effect.fail(error)
    })

  const breakable = (file: FileSystem.File): FileSystem.File => {
    const writeAll: FileSystem.File["writeAll"] = (bytes) =>
      guard(file.writeAll(bytes), file.writeAll(bytes.subarray(0, bytes.length >> 1)))
    return new Proxy(file, {
      get: (target, key) =>
        key === "writeAll" ? writeAll : key === "sync" ? guard(file.sync) : Reflect.get(target, key),
    })
  }

  const layer = Layer.effect(
    FileSystem.FileSystem,
    Effect.map(FileSystem.FileSystem, (fs) => ({
      ...fs,
      makeDirectory: (path: string, options?: Parameters<typeof fs.makeDirectory>[1]) =>
        guard(fs.makeDirectory(path, options)),
      open: (path: string, options?: Parameters<typeof fs.open>[1]) =>
        options?.flag === "r"
          ? fs.open(path, options)
          : Effect.map(Effect.andThen(guard(Effect.void), fs.open(path, options)), breakable),
      remove: (path: string, options?: Parameters<typeof fs.remove>[1]) =>
        guard(
          fs.remove(path, options),
          // Files of a folder go one by one.
          Effect.flatMap(fs.readDirectory(path), ([first]) => fs.remove(`${path}/${first}`, { recursive: true })),
        ),
      rename: (from: string, to: string) => guard(fs.rename(from, to)),
      symlink: (target: string, path: string) => guard(fs.symlink(target, path)),
      truncate: (path: string, size?: Parameters<typeof fs.truncate>[1]) => guard(fs.truncate(path, size)),
      writeFile: (path: string, bytes: Uint8Array, options?: Parameters<typeof fs.writeFile>[2]) =>
        guard(fs.writeFile(path, bytes, options), fs.writeFile(path, bytes.subarray(0, bytes.length >> 1), options)),
    })),
  ).pipe(Layer.provide(NodeFileSystem.layer))

  return { layer, changes }
}
