/**
 * Reads a model of MuJoCo from a file, with the files that it refers to: included models, meshes, textures and height fields.
 *
 * @example
 * ```ts
 * import { Mujoco, Space } from "effect-rl"
 * import { mjcfFile } from "effect-rl/node"
 *
 * const arm = Mujoco.env({
 *   id: "arm",
 *   model: mjcfFile("models/arm.xml"),
 *   observationSpace: Space.box(-Infinity, Infinity, [2]),
 *   actionSpace: Space.box(-1, 1),
 *   observe: ({ data }) => [data.qpos[0], data.qvel[0]],
 *   reward: ({ world }) => ({ high: world.data.xpos[5] }),
 * })
 * ```
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, FileSystem, Layer, Path } from "effect"
import { readBytes } from "../../../base/config/files.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import type { Mjcf } from "./Simulation.ts"

/** The most bytes that a model and its files may have together. */
const mostBytes = 512 * 2 ** 20

/** The most places in which files are looked for: each file may be in each of the folders that the model names. */
const mostPlaces = 10_000

/** The attributes of MJCF that name files, and the folders that these are in. */
const fileAttributes = /\sfile\s*=\s*(?:"([^"]*)"|'([^']*)')/g
const folderAttributes = /\s(?:assetdir|meshdir|texturedir)\s*=\s*(?:"([^"]*)"|'([^']*)')/g

const valuesOf = (xml: string, attributes: RegExp): ReadonlyArray<string> =>
  [...xml.matchAll(attributes)].map(([, quoted, single]) => quoted ?? single ?? "").filter((value) => value !== "")

/** Reads a model and its files. A file that is not there is left to MuJoCo, whose error names it and the line. */
export const mjcfFile = (path: string): Effect.Effect<Mjcf, EnvError> =>
  Effect.provide(read(path), Layer.mergeAll(NodeFileSystem.layer, NodePath.layer))

/** A model or an included one, with the folder in which it is. */
interface ModelText {
  readonly text: string
  readonly folder: string
}

const isModel = (name: string): boolean => /\.(xml|mjcf)$/i.test(name)

const read = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const files: Record<string, Uint8Array> = {}
  let bytesLeft = mostBytes
  let placesLeft = mostPlaces
  const contentOf = Effect.fnUntraced(
    function* (file: string) {
      if (Number((yield* fs.stat(file)).size) > bytesLeft)
        return yield* invalid(path, `the model and its files have more than ${mostBytes / 2 ** 20} MB`)
      // A device or a pipe, which may never end, is refused.
      const content = yield* readBytes(file, bytesLeft)
      bytesLeft -= content.length
      return content
    },
    Effect.mapError((error) => invalid(path, `the model cannot be read: ${error.message}`)),
  )
  /** Reads the files that a model names, if they are there, and returns their names. MuJoCo has several places for a file. */
  const readNamed = Effect.fnUntraced(function* ({ text, folder }: ModelText, folders: ReadonlyArray<string>) {
    const found: Array<string> = []
    const named = valuesOf(text, fileAttributes)
    placesLeft -= named.length * folders.length
    if (placesLeft < 0) return yield* invalid(path, `the model names files in more than ${mostPlaces} places`)
    const inFolders = named.flatMap((file) => folders.map((one) => paths.join(one, file)))
    for (const name of new Set(inFolders.flatMap((file) => [file, paths.join(folder, file)]))) {
      const file = paths.resolve(paths.dirname(path), name)
      if (Object.hasOwn(files, name) || !(yield* Effect.orElseSucceed(fs.exists(file), () => false))) continue
      files[name] = yield* contentOf(file)
      found.push(name)
    }
    return found
  })
  const xml = new TextDecoder().decode(yield* contentOf(path))
  const models: Array<ModelText> = [{ text: xml, folder: "" }]
  // The folders of one model count for all, so all models are read before the other files.
  for (const model of models) {
    for (const name of (yield* readNamed(model, [""])).filter(isModel))
      models.push({ text: new TextDecoder().decode(files[name]), folder: paths.dirname(name) })
  }
  const folders = new Set(["", ...models.flatMap(({ text }) => valuesOf(text, folderAttributes))])
  for (const model of models) yield* readNamed(model, [...folders])
  return { xml, files }
})
