// Writes docs/settings.md: every setting with its default, from the Schemas, and its meaning, from the comments. Run it
// by `npm run settings`.
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
import { BcConfig } from "../src/algorithms/Bc.ts"
import { byName, names } from "../src/algorithms/registry.ts"
import { isPlain, type Plain } from "../src/config/Config.ts"
import { builtIn } from "../src/env/Envs.ts"
import {
  CheckpointSettings,
  NormalizeSettings,
  RenderSettings,
  Settings,
  ValidationSettings,
} from "../src/train/Settings.ts"
import { TrainerConfig } from "../src/train/TrainerConfig.ts"
import { evaluationSettings } from "./evaluation.ts"
import { experimentSettings } from "./experiment.ts"
import { fieldsOf, meaningsOfFields } from "./fields.ts"
import { meaningsIn, meaningsOf, read } from "./meanings.ts"
import { table } from "./table.ts"

/** Reads the meanings of one Schema among a training's settings. */
export const settingMeanings = (name: string): ReadonlyMap<string, string> => meaningsOf("src/train/Settings.ts", name)

export const trainerMeanings = (): ReadonlyMap<string, string> => meaningsIn([read("src/train/TrainerConfig.ts")])

export const algorithmMeanings = (name: string): ReadonlyMap<string, string> =>
  meaningsOfFields(fieldsOf(`src/algorithms/${titleOf(name)}.ts`, `${titleOf(name)}Config`))

const block = (key: string, schema: string, defaults: Plain): string =>
  `### \`${key}\`\n\n${table(defaults, settingMeanings(schema))}`

const general = (): string => {
  const decoded = Schema.decodeSync(Settings)({ env: "", totalSteps: 1, algorithm: {} })
  const plain = Object.entries(decoded).filter(
    ([key, value]) => !["env", "totalSteps", "algorithm"].includes(key) && !isPlain(value),
  )
  return table(Object.fromEntries(plain), settingMeanings("Settings"), ["env", "totalSteps", "algorithm"])
}

const titleOf = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`

const algorithm = (name: string): string => {
  const config =
    name === "bc"
      ? Schema.decodeSync(BcConfig)({})
      : Effect.runSync(Effect.flatMap(byName(name, ""), (algorithm) => algorithm.configure({}, { source: "" }))).config
  return `### ${name}\n\n${table(config, algorithmMeanings(name))}`
}

/** Returns the text of the page. */
export const page = (): string =>
  `# Settings

These are the settings that \`Train.run\` takes (in camelCase), that \`--set\` and a file of \`--config\` change, and that a run's
\`config.yaml\` holds (in snake_case). A dot in a key goes one level down: \`--set validation.every_steps=5000\`. Choosing another
algorithm or env (\`--set algorithm.name=a2c\`, \`--set env=Acrobot-v1\`) drops the settings of the previous one.

Agents that ask a language model have files of their own: [an experiment](#an-experiment), in which one learns, and
[an evaluation](#an-evaluation), in which some are compared. \`effect init\` writes each of them.

## A training

${general()}

${block("validation", "ValidationSettings", Schema.decodeSync(ValidationSettings)({}))}

${block("checkpoint", "CheckpointSettings", Schema.decodeSync(CheckpointSettings)({}))}

${block("render", "RenderSettings", Schema.decodeSync(RenderSettings)({}))}

${block("normalize", "NormalizeSettings", Schema.decodeSync(NormalizeSettings)({}))}

### \`trainer\`: the same in one flat block

This block has other names for some of the settings above. A setting that is also given above takes precedence.

${table(Schema.decodeSync(TrainerConfig)({}), trainerMeanings())}

## Envs

${builtIn.map(({ id }) => `\`${id}\``).join(", ")}.

Envs with options are written as \`env: { name: KeyDoor, size: 12, rooms: 4 }\`, and wrapped envs as
\`env: { name: ScaleReward, factor: 0.1, env: Pendulum-v1 }\`.

## Algorithms

\`algorithm: { name: ppo, … }\`

${[...names, "bc"].sort().map(algorithm).join("\n\n")}

${experimentSettings()}
${evaluationSettings()}`

const target = new URL("../docs/settings.md", import.meta.url)
if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(target, page())
