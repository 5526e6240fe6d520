/** Makes the file that `effect init --preset` writes: a config or a program with the settings of a preset. */
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import type { Preset } from "../../../rl/presets/Presets.ts"
import { files, type InitFile } from "./files.ts"

/** Returns the file of a preset, as a config or as a program. By default it is in a new folder with the preset's name. */
export const presetInitFile = (preset: Preset, kind: "training" | "program"): InitFile => {
  const { id, env, source, settings, yaml } = preset
  const ownRun = `  npx effect run --preset ${id}\n`
  const text = yaml.replace(ownRun, "  npx effect run FILE_NAME\n")
  return {
    ...files[kind],
    file: `${settings.name}/${files[kind].file}`,
    about: `${settings.algorithm.name} on ${env}, with the settings of ${source}`,
    text: kind === "training" ? text : programOf(preset, text),
  }
}

/** Returns the program of a preset, which begins with the comments of the config. */
const programOf = ({ settings }: Preset, text: string): string => {
  const comments = (/^(#.*\n)*/.exec(text)?.[0] ?? "").replaceAll(/^#/gm, "//")
  const { algorithm, ...rest } = settings
  const { name, ...options } = algorithm
  const module = name.replaceAll(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase())
  const entries = Object.entries(rest).map(([key, value]) => `  ${key}: ${literal(value, "  ")},`)
  const made = `  algorithm: ${module}.make(${literal(options, "  ")}),`
  return `${comments}import { ${[module, "Train"].toSorted().join(", ")} } from "effect-rl"

export default Train.run({
${[...entries, made].join("\n")}
})
`
}

/** Returns plain data as TypeScript: a section with a line for each key if it is long, anything else in one line. */
const literal = (value: unknown, indent: string): string => {
  if (Array.isArray(value)) return `[${value.map((item) => literal(item, indent)).join(", ")}]`
  if (!isPlain(value)) return JSON.stringify(value)
  const inLine = pairs(value, indent).join(", ")
  if (inLine.length < 80) return inLine === "" ? "{}" : `{ ${inLine} }`
  const lines = pairs(value, `${indent}  `).map((pair) => `${indent}  ${pair},\n`)
  return `{\n${lines.join("")}${indent}}`
}

const pairs = (section: Plain, indent: string): ReadonlyArray<string> =>
  Object.entries(section).map(([key, value]) => `${key}: ${literal(value, indent)}`)
