/** Finds the files of presets, which are a part of this package: `effect run --preset` trains with one in place of a file. */
import { existsSync } from "node:fs"
import { relative } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { messageOf } from "../../../base/text/text.ts"
import { usageError } from "../output/output.ts"

/** The folder of the presets in the package (or checkout) of this library. */
const folder = fileURLToPath(new URL("../../../../examples/presets/", import.meta.url))

/** Returns the preset of this name. */
export const presetOf = Effect.fnUntraced(function* (id: string) {
  // The presets are loaded only here, since their texts are long.
  const { byId } = yield* Effect.promise(() => import("../../../rl/presets/Presets.ts"))
  return yield* Effect.try({
    try: () => byId(id),
    catch: (error) => usageError(`--preset: ${messageOf(error)}`),
  })
})

/** Returns the path of a preset's file. */
export const presetFile = Effect.fnUntraced(function* (id: string) {
  yield* presetOf(id)
  const file = `${folder}${id}.yaml`
  if (existsSync(file)) return file
  return yield* usageError(`${file}: there is no such file; install the package again`)
})

/** Returns the name of the preset whose file this is; undefined for any other file. */
const presetIn = (file: string): string | undefined => {
  const path = relative(folder, file).replaceAll("\\", "/")
  return file.startsWith(folder) && /^\w[\w.-]*(\/\w[\w.-]*)+\.yaml$/.test(path)
    ? path.slice(0, -".yaml".length)
    : undefined
}

/** Tells whether a file is one of the package's presets, which name no programs but Gymnasium's. */
export const isPresetFile = (file: string): boolean => presetIn(file) !== undefined

/** Returns the words with which a command names the file of a training: `--preset NAME` for a preset, else the path. */
export const fileWords = (file: string): ReadonlyArray<string> => {
  const preset = presetIn(file)
  return preset === undefined ? [file] : ["--preset", preset]
}
