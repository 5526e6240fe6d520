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

/** Returns plain data as TypeScript: in one line if that is short, else with a line for each part. */
const literal = (value: unknown, indent: string): string => {
  if (!Array.isArray(value) && !isPlain(value)) return JSON.stringify(value)
  const [open, space, close] = Array.isArray(value) ? ["[", "", "]"] : ["{", " ", "}"]
  const inLine = partsOf(value, indent).join(", ")
  if (inLine === "") return `${open}${close}`
  if (inLine.length < 80) return `${open}${space}${inLine}${space}${close}`
  const lines = partsOf(value, `${indent}  `).map((part) => `${indent}  ${part},\n`)
  return `${open}\n${lines.join("")}${indent}${close}`
}

const partsOf = (value: ReadonlyArray<unknown> | Plain, indent: string): ReadonlyArray<string> =>
  Array.isArray(value)
    ? value.map((item) => literal(item, indent))
    : Object.entries(value).map(([key, item]) => `${key}: ${literal(item, indent)}`)
