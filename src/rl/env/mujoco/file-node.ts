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
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import type { Mjcf } from "./Simulation.ts"

/** The most bytes that a model and its files may have together. */
const mostBytes = 512 * 2 ** 20

/** The attributes of MJCF that name files, and the folders that these are in. */
const fileAttributes = /\sfile\s*=\s*(?:"([^"]*)"|'([^']*)')/g
const folderAttributes = /\s(?:assetdir|meshdir|texturedir)\s*=\s*(?:"([^"]*)"|'([^']*)')/g

const valuesOf = (xml: string, attributes: RegExp): ReadonlyArray<string> =>
  [...xml.matchAll(attributes)].map(([, quoted, single]) => quoted ?? single ?? "").filter((value) => value !== "")

/** Reads a model and its files. A file that is not there is left to MuJoCo, whose error names it and the line. */
export const mjcfFile = (path: string): Effect.Effect<Mjcf, EnvError> =>
  Effect.provide(read(path), Layer.mergeAll(NodeFileSystem.layer, NodePath.layer))

const read = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = paths.dirname(path)
  let bytes = 0
  const contentOf = Effect.fnUntraced(function* (file: string) {
    bytes += Number((yield* fs.stat(file)).size)
    if (bytes > mostBytes)
      return yield* invalid(path, `the model and its files have more than ${mostBytes / 2 ** 20} MB`)
    return yield* fs.readFile(file)
  })
  const failed = (error: { readonly message: string }) => invalid(path, `the model cannot be read: ${error.message}`)
  const xml = new TextDecoder().decode(yield* Effect.mapError(contentOf(path), failed))
  const files: Record<string, Uint8Array> = {}
  const texts = [xml]
  for (let text = texts.shift(); text !== undefined; text = texts.shift()) {
    const folders = ["", ...valuesOf(text, folderAttributes)]
    for (const name of valuesOf(text, fileAttributes).flatMap((file) => folders.map((one) => paths.join(one, file)))) {
      const file = paths.resolve(folder, name)
      if (Object.hasOwn(files, name) || !(yield* Effect.orElseSucceed(fs.exists(file), () => false))) continue
      files[name] = yield* Effect.mapError(contentOf(file), failed)
      if (/\.xml$/i.test(name)) texts.push(new TextDecoder().decode(files[name]))
    }
  }
  return { xml, files }
})
