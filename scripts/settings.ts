// Writes docs/settings.md, which lists every setting with its default (from the Schemas) and its meaning (from the
// comments in src/, which it reads). Run it by `npm run settings`. schemas.ts uses its functions, too.
import { readdirSync, writeFileSync } from "node:fs"
import { basename } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { fromData, names, schemaOf } from "../src/rl/algorithms/registry.ts"
import { isPlain, type Plain } from "../src/base/config/Config.ts"
import { builtIn } from "../src/rl/env/Envs.ts"
import {
  CheckpointSettings,
  NormalizeSettings,
  RenderSettings,
  Settings,
  ValidationSettings,
} from "../src/rl/train/Settings.ts"
import { ofAlgorithm, TrainerConfig } from "../src/rl/train/TrainerConfig.ts"
import { evaluationSettings } from "./evaluation.ts"
import { promptsSettings } from "./prompts.ts"
import { experimentSettings } from "./experiment.ts"
import { meaningsOfMembers } from "./interfaces.ts"
import { type Meanings, meaningsOf } from "./meanings.ts"
import { multirunSettings } from "./multirun.ts"
import { table } from "./table.ts"

const trainFile = "src/rl/train/Settings.ts"

/** Reads the meanings of the settings of a training. Comments on the Schema replace those on `TrainInput`. */
export const trainMeanings = (): Meanings =>
  new Map([...meaningsOfMembers(trainFile, "TrainInput"), ...meaningsOf(trainFile, "Settings")])

/** Reads the meanings of the settings in one block of a training's settings. */
export const blockMeanings = (options: string): Meanings => meaningsOfMembers(trainFile, options)

export const trainerMeanings = (): Meanings => meaningsOfMembers("src/rl/train/TrainerConfig.ts", "TrainerOptions")

export const algorithmMeanings = (name: string): Meanings =>
  meaningsOfMembers(fileOfAlgorithm(titleOf(name)), `${titleOf(name)}Options`)

const block = (key: string, options: string, defaults: Plain): string =>
  `### \`${key}\`\n\n${table(defaults, blockMeanings(options))}`

/** Returns the table of the settings that are not in a block such as `validation`. */
const general = (): string => {
  // A setting whose key is left out of saved configs has its default here.
  const decoded = Schema.decodeSync(Settings)({ env: "", totalSteps: 1, algorithm: {}, machineCode: true })
  const plain = Object.entries(decoded).filter(
    ([key, value]) => !["env", "totalSteps", "algorithm"].includes(key) && !isPlain(value),
  )
  return table(Object.fromEntries(plain), trainMeanings(), ["env", "totalSteps", "algorithm"])
}

/** Returns the name of an algorithm's module: `DiscreteSac` for `discrete-sac`. */
export const titleOf = (name: string): string =>
  name
    .split("-")
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join("")

/** Returns the file of an algorithm's module: `src/rl/algorithms/rollouts/Ppo.ts` for `Ppo`. */
export const fileOfAlgorithm = (title: string): string => {
  const folder = "src/rl/algorithms"
  const file = readdirSync(new URL(`../${folder}`, import.meta.url), { recursive: true, encoding: "utf8" }).find(
    (file) => basename(file) === `${title}.ts`,
  )
  return `${folder}/${file}`
}

const algorithm = (name: string): string => {
  const config = Schema.decodeSync(schemaOf(name))({})
  return `### ${name}\n\n${table(config, algorithmMeanings(name))}`
}

/** Returns the text of docs/settings.md before it is formatted. */
export const page = (): string =>
  `# Settings

These are the settings that \`Train.run\` takes (in camelCase), that \`--set\` and a file of \`--config\` change, and that a run's
\`config.yaml\` holds (in snake_case). A dot in a key goes one level down: \`--set validation.every_steps=5000\`. Choosing another
algorithm or env (\`--set algorithm.name=a2c\`, \`--set env=Acrobot-v1\`) drops the settings of the previous one.

Agents that ask a language model have files of their own: [an experiment](#an-experiment), in which one learns, and
[an evaluation](#an-evaluation), in which some are compared. \`effect init\` writes each of them. So have
[a run that learns prompts](#a-run-that-learns-prompts), and
[a multi-run trainer](#a-multi-run-trainer), which trains the language model itself.

## A training

${general()}

${block("validation", "ValidationOptions", Schema.decodeSync(ValidationSettings)({}))}

${block("checkpoint", "CheckpointOptions", Schema.decodeSync(CheckpointSettings)({}))}

${block("render", "RenderOptions", Schema.decodeSync(RenderSettings)({}))}

${block("normalize", "NormalizeOptions", Schema.decodeSync(NormalizeSettings)({}))}

### \`start\`

${table({ weights: "all" }, blockMeanings("StartOptions"), ["from"])}

### \`trainer\`: the same in one flat block

This block has other names for some of the settings above. A setting that is also given above takes precedence.

${table(Schema.decodeSync(TrainerConfig)({}), trainerMeanings(), [], new Map(ofAlgorithm.map((key) => [key, "the algorithm's"])))}

## Envs

${builtIn.map(({ id }) => `\`${id}\``).join(", ")}.

Envs with options are written as \`env: { name: KeyDoor, size: 12, rooms: 4 }\`, and wrapped envs as
\`env: { name: ScaleReward, factor: 0.1, env: Pendulum-v1 }\`.

## Algorithms

\`algorithm: { name: ppo, … }\`

${[...names, ...Object.keys(fromData)].sort().map(algorithm).join("\n\n")}

${experimentSettings()}
${evaluationSettings()}
${promptsSettings()}
${multirunSettings()}`

const target = new URL("../docs/settings.md", import.meta.url)
if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(target, page())
