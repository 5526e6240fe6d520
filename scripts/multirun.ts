// Collects the settings of a multi-run trainer's YAML file, and of the `orch.yaml` or `orch.toml` of one of its runs.
// Defaults come from the Schemas, and meanings from the comments in src/, which it reads. settings.ts describes the
// settings in docs/settings.md by this file, and multirunSchema.ts makes their JSON Schemas by it.
import { Schema } from "effect"
import { isPlain, type Plain } from "../src/base/config/Config.ts"
import { OutputSettings } from "../src/agents/training/RuntimeConfig.ts"
import { MultiRunConfig } from "../src/trainer/config/MultiRunConfig.ts"
import { OrchestratorConfig } from "../src/trainer/config/OrchestratorConfig.ts"
import { meaningsOfMembers } from "./interfaces.ts"
import { type Meanings, meaningsOf } from "./meanings.ts"
import { table } from "./table.ts"

const plain = (value: unknown): Plain => (isPlain(value) ? value : {})

const without = (tree: Plain, ...keys: ReadonlyArray<string>): Plain =>
  Object.fromEntries(Object.entries(tree).filter(([key]) => !keys.includes(key)))

/** The settings of one section: its defaults, and what each key means. */
export interface Section {
  readonly defaults: Plain
  readonly meanings: Meanings
}

const trainerFile = "src/trainer/config/MultiRunConfig.ts"
const runFile = "src/trainer/config/OrchestratorConfig.ts"
const scratch = { type: "scratch", tokenizer: {} } as const
const decoded = Schema.decodeSync(MultiRunConfig)({ model: scratch, runs: {}, trainer: { lora: {} } })
const decodedRun = Schema.decodeSync(OrchestratorConfig)({})

const section = (defaults: unknown, meanings: Meanings): Section => ({ defaults: plain(defaults), meanings })

/** The trainer's file, and its sections by their names in it. */
export const trainer = {
  schema: MultiRunConfig,
  ...section(without(decoded, "model", "runs", "trainer"), meaningsOf(trainerFile, "MultiRunConfig")),
  folder: section({}, meaningsOf(trainerFile, "FolderModel")),
  scratch: section(without(plain(decoded.model), "tokenizer"), meaningsOf(trainerFile, "ScratchModel")),
  tokenizer: section(plain(decoded.model).tokenizer, meaningsOf(trainerFile, "TokenizerSettings")),
  trainer: section({ ...decoded.trainer, lora: null }, meaningsOf(trainerFile, "TrainerSettings")),
  lora: section(decoded.trainer.lora, meaningsOf(trainerFile, "LoraSettings")),
  inference: section(decoded.inference, meaningsOf(trainerFile, "InferenceSettings")),
  broadcast: section(decoded.broadcast, meaningsOf(trainerFile, "BroadcastSettings")),
  output: section(
    Schema.decodeSync(OutputSettings)({}),
    meaningsOfMembers("src/agents/training/RuntimeConfig.ts", "OutputOptions"),
  ),
}

const scheduleMeanings = meaningsOf("src/tensor/graph/schedules.ts", "ScheduleConfig")

/** The file of one run, and its sections by their names in it. */
export const run = {
  schema: OrchestratorConfig,
  ...section(without(decodedRun, "agent"), meaningsOf(runFile, "OrchestratorConfig")),
  sections: {
    validation: section(decodedRun.validation, meaningsOf(runFile, "ValidationConfig")),
    supervised: section(decodedRun.supervised, meaningsOf(runFile, "SupervisedConfig")),
    optimiser: section(
      decodedRun.optimiser,
      meaningsOf("src/trainer/optimisers/OptimiserConfig.ts", "OptimiserConfig"),
    ),
    schedule: section(decodedRun.schedule, scheduleMeanings),
    lora: section(decodedRun.lora, meaningsOf(runFile, "LoraConfig")),
    batch: section(decodedRun.batch, meaningsOf(runFile, "BatchConfig")),
    sampling: section(decodedRun.sampling, meaningsOf(runFile, "SamplingConfig")),
    checkpoint: section(decodedRun.checkpoint, meaningsOf(runFile, "CheckpointConfig")),
  },
  /** All objectives together: each has some of these keys. */
  objectives: meaningsOf("src/rl/losses/TokenObjective.ts", "common"),
}

const tableOf = ({ defaults, meanings }: Section, required: ReadonlyArray<string> = []): string =>
  table(defaults, meanings, required)

/** Returns the settings that are no section of their own. */
const flat = ({ defaults, meanings }: Section): Section =>
  section(Object.fromEntries(Object.entries(defaults).filter(([, value]) => !isPlain(value))), meanings)

/** Returns the part of docs/settings.md about multi-run trainers, as Markdown. */
export const multirunSettings = (): string => {
  const { folder, scratch, tokenizer, lora, inference, broadcast } = trainer
  return `## A multi-run trainer

A multi-run trainer is a YAML file with \`kind: multirun\`: see [Many runs in one trainer](multirun.md). \`effect run\` runs it,
and editors complete it by \`schemas/multirun.schema.json\`.

${tableOf(flat(trainer), ["model", "runs"])}

### \`model\` from a folder: \`{ type: folder, path: … }\`

${tableOf(folder, ["path"])}

### \`model\` from scratch: \`{ type: scratch, … }\`

${tableOf(scratch)}

#### \`model.tokenizer\`

${tableOf(tokenizer)}

### \`trainer\` of the runs

${tableOf(trainer.trainer)}

#### \`trainer.lora\`, if it is not null

${tableOf(lora)}

### \`inference\`

${tableOf(inference)}

### \`broadcast\`

${tableOf(broadcast)}

### One of the \`runs\`

These are the keys of a section of \`runs\`, and of a run's own \`configs/orch.yaml\` or \`configs/orch.toml\`, which editors complete
by \`schemas/orchestrator.schema.json\`. The run's \`agent\` is [as above](#agent), without \`lm_config\`: the model is the one that
is trained. The data sets are [as above](#train_dataset-and-validation_dataset), too.

${tableOf(flat(run))}

${Object.entries(run.sections)
  .map(([name, one]) => `#### \`${name}\` of a run\n\n${tableOf(one)}`)
  .join("\n\n")}
`
}
