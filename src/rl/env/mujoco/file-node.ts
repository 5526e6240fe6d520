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
import { readBytes } from "../../../base/files/files.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { modelBytesOf, mostBytes } from "./limits.ts"
import type { Mjcf } from "./Simulation.ts"

/** The most places in which files are looked for: each file may be in each of the folders that the model names. */
const mostPlaces = 10_000

/** The attributes of MJCF that name files, and the folders that these are in. */
const fileAttributes = /\sfile\s*=\s*(?:"([^"]*)"|'([^']*)')/g
const folderAttributes = /\s(?:assetdir|meshdir|texturedir)\s*=\s*(?:"([^"]*)"|'([^']*)')/g

const valuesOf = (xml: string, attributes: RegExp): ReadonlyArray<string> =>
  [...xml.matchAll(attributes)].map(([, quoted, single]) => quoted ?? single ?? "").filter((value) => value !== "")

interface MjcfFileOptions {
  /** The folder in which all files must be that the model refers to, such as meshes. Default: the model's own. */
  readonly folder?: string
}

/**
 * Reads a model and its files. These must be in the model's folder, or in the one that `folder` names, also if they are links: a
 * model by somebody else cannot read other files. A file that is not there is left to MuJoCo, whose error names it and the line.
 */
export const mjcfFile = (path: string, { folder }: MjcfFileOptions = {}): Effect.Effect<Mjcf, EnvError> =>
  Effect.provide(read(path, folder), Layer.mergeAll(NodeFileSystem.layer, NodePath.layer))

/** The number with which the files of MuJoCo's compiled models (MJB) begin. */
const compiledMark = 54_321

/** Returns the version of MuJoCo that wrote a compiled model; undefined if it is another file. */
const versionOfCompiled = (content: Uint8Array): string | undefined => {
  const header = new DataView(content.buffer, content.byteOffset, content.byteLength)
  if (content.length < 16 || header.getInt32(0, true) !== compiledMark) return undefined
  const version = header.getInt32(12, true)
  return version < 1000
    ? `${Math.floor(version / 100)}.${Math.floor(version / 10) % 10}.${version % 10}`
    : `${Math.floor(version / 1_000_000)}.${Math.floor(version / 1000) % 1000}.${version % 1000}`
}

const compiledModel = (version: string): string =>
  `expected a model in MJCF (XML), found one that MuJoCo ${version} compiled (MJB), which no other version reads; save it as XML there by mj_saveLastXML`

/** A model or an included one, with the folder in which it is. */
interface ModelText {
  readonly text: string
  readonly folder: string
}

const read = Effect.fnUntraced(function* (path: string, folder: string | undefined) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const realOf = (file: string) => Effect.orElseSucceed(fs.realPath(file), () => undefined)
  const allowed = paths.resolve(folder ?? paths.dirname(path))
  const realAllowed = (yield* realOf(allowed)) ?? allowed
  const isWithin = (file: string, root: string) => {
    const way = paths.relative(root, file)
    return !paths.isAbsolute(way) && way.split(paths.sep)[0] !== ".."
  }
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
      if (Object.hasOwn(files, name)) continue
      if (!isWithin(file, allowed)) {
        outside.add(name)
        continue
      }
      const real = yield* realOf(file)
      if (real === undefined) continue
      if (!isWithin(real, realAllowed)) return yield* refused(name, "a link to a file outside of")
      files[name] = yield* contentOf(real)
      found.push(name)
    }
    return found
  })
  /** The files that the model names outside of the folder. Only if nothing else is meant by the name, this is an error. */
  const outside = new Set<string>()
  const refused = (name: string, what: string) =>
    invalid(
      path,
      `it refers to ${name}, ${what} the folder ${allowed}; move the file there, or name a folder above both: mjcfFile(path, { folder })`,
    )
  const content = yield* contentOf(path)
  const version = versionOfCompiled(content)
  if (version !== undefined) return yield* invalid(path, compiledModel(version))
  const xml = utf8.decode(content)
  const models: Array<ModelText> = [{ text: xml, folder: "" }]
  // The folders of one model count for all, so all models are read before the other files.
  for (const model of models) {
    for (const name of yield* readNamed(model, [""])) {
      const text = utf8.decode(modelBytesOf(files[name]))
      if (text !== "") models.push({ text, folder: paths.dirname(name) })
    }
  }
  const folders = new Set(["", ...models.flatMap(({ text }) => valuesOf(text, folderAttributes))])
  for (const model of models) yield* readNamed(model, [...folders])
  const bases = new Set(Object.keys(files).map((name) => paths.basename(name)))
  for (const name of outside) {
    if (!bases.has(paths.basename(name))) return yield* refused(name, "which is outside of")
  }
  return { xml, files, path }
})
