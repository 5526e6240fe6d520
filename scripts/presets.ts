// Writes src/rl/presets/texts.ts: the files of examples/presets as texts, which also programs without a file system can read.
//   npm run presets
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const folder = fileURLToPath(new URL("../examples/presets/", import.meta.url))

/** Returns the texts of all presets by their names, such as `ppo/HalfCheetah-v5`, in the order of the names. */
export const presetTexts = (): Readonly<Record<string, string>> => {
  const files = globSync("**/*.yaml", { cwd: folder }).map((file) => file.replaceAll("\\", "/"))
  const sorted = files.toSorted((one, other) => (one < other ? -1 : 1))
  return Object.fromEntries(sorted.map((file) => [file.replace(/\.yaml$/, ""), readFileSync(folder + file, "utf8")]))
}

const file = fileURLToPath(new URL("../src/rl/presets/texts.ts", import.meta.url))
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const head =
    "/** The files of `examples/presets` as texts, by the names of the presets. Written by `npm run presets`; do not edit. */"
  writeFileSync(
    file,
    `${head}\nexport const texts: Readonly<Record<string, string>> = ${JSON.stringify(presetTexts())}\n`,
  )
}
