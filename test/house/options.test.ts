import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import { membersOf } from "../../scripts/interfaces.ts"
import { algorithmMeanings, fileOfAlgorithm, titleOf } from "../../scripts/settings.ts"
import { fromData, names, schemaOf } from "../../src/rl/algorithms/registry.ts"
import { isPlain, type Plain } from "../../src/base/config/Config.ts"
import { Her, Prioritised } from "../../src/rl/learner/replay/fields.ts"
import * as LmConfig from "../../src/agents/lm/LmConfig.ts"
import { Planning } from "../../src/rl/model/valueIteration.ts"
import { OutputSettings, RunSettings, RuntimeSettings } from "../../src/agents/training/RuntimeConfig.ts"
import * as Settings from "../../src/rl/train/Settings.ts"
import { ofAlgorithm, TrainerConfig } from "../../src/rl/train/TrainerConfig.ts"

interface Options {
  readonly name: string
  readonly file: string
  readonly schema: Schema.Codec<Plain, Plain>
  /** Values of the required keys. */
  readonly base?: Plain
  /** The keys that only a file has, because code gives the values otherwise or not at all. */
  readonly onlyInFiles?: ReadonlyArray<string>
  /** The keys without a default of their own: a training takes the algorithm's setting. */
  readonly fromAlgorithm?: ReadonlyArray<string>
  /** The keys that only code has. */
  readonly onlyInCode?: ReadonlyArray<string>
}

const algorithms: ReadonlyArray<Options> = [...names, ...Object.keys(fromData)].map((algorithm) => {
  const title = titleOf(algorithm)
  const schema = schemaOf(algorithm)
  return { name: `${title}Options`, file: fileOfAlgorithm(title), schema }
})

const trainFile = "src/rl/train/Settings.ts"
const runtimeFile = "src/agents/training/RuntimeConfig.ts"
const lmFile = "src/agents/lm/LmConfig.ts"

const all: ReadonlyArray<Options> = [
  ...algorithms,
  { name: "PlannerOptions", file: "src/rl/model/valueIteration.ts", schema: Planning },
  { name: "PrioritisedOptions", file: "src/rl/learner/replay/fields.ts", schema: Prioritised },
  { name: "HerOptions", file: "src/rl/learner/replay/fields.ts", schema: Her },
  {
    name: "TrainInput",
    file: trainFile,
    schema: Settings.Settings,
    // The setting machine_code is left out of saved configs unless somebody has written it, so it has no default there.
    base: { env: "", algorithm: {}, totalSteps: 1, machineCode: true },
    onlyInFiles: ["kind"],
    onlyInCode: ["trainer"],
  },
  { name: "ValidationOptions", file: trainFile, schema: Settings.ValidationSettings },
  { name: "CheckpointOptions", file: trainFile, schema: Settings.CheckpointSettings },
  { name: "RenderOptions", file: trainFile, schema: Settings.RenderSettings },
  { name: "NormalizeOptions", file: trainFile, schema: Settings.NormalizeSettings },
  { name: "StartOptions", file: trainFile, schema: Settings.StartSettings, base: { from: "any" } },
  { name: "TrainerOptions", file: "src/rl/train/TrainerConfig.ts", schema: TrainerConfig, fromAlgorithm: ofAlgorithm },
  {
    name: "RuntimeInput",
    file: "src/agents/training/Runtime.ts",
    schema: RunSettings,
    onlyInFiles: ["kind"],
    onlyInCode: ["agentConfig", "logCalls"],
  },
  { name: "RuntimeOptions", file: runtimeFile, schema: RuntimeSettings },
  { name: "OutputOptions", file: runtimeFile, schema: OutputSettings },
  { name: "LmOptions", file: lmFile, schema: LmConfig.LmConfig, base: { model: "any" } },
  { name: "LimitsOptions", file: lmFile, schema: LmConfig.Limits },
  { name: "BudgetOptions", file: lmFile, schema: LmConfig.Budget },
]

/** Writes a default as the comments do. Blocks state none, as each of their keys states its own. */
const written = (value: unknown): string | undefined =>
  isPlain(value) && !("_tag" in value) ? undefined : JSON.stringify(value)

describe("the interfaces of settings", () => {
  it.each(all)("have a comment with the Schema's default on each setting: $name", (options) => {
    const { name, file, schema, base = {}, onlyInFiles = [], onlyInCode = [], fromAlgorithm = [] } = options
    const members = membersOf(file, name)
    const decoded = Schema.decodeSync(schema)(base)
    const keys = Object.keys(decoded).filter((key) => !onlyInFiles.includes(key))
    assert.sameMembers([...members.keys()], [...keys, ...onlyInCode])
    for (const key of keys) {
      assert.isNotEmpty(members.get(key)?.meaning, key)
      assert.strictEqual(
        members.get(key)?.byDefault,
        key in base || fromAlgorithm.includes(key) ? undefined : written(decoded[key]),
        key,
      )
    }
  })
})

describe("what a setting means", () => {
  it("is each algorithm's own, where several have settings of one name", () => {
    const meaning = (algorithm: string, key: string): string => algorithmMeanings(algorithm).get(key) ?? ""
    for (const algorithm of ["dqn", "sac", "td3"]) {
      assert.strictEqual(
        meaning(algorithm, "nsteps"),
        "The number of rewards in a value target, before it continues with the next observation's value.",
      )
      const sequences = algorithm === "dqn" ? "; with `lstm`, the number of sequences" : ""
      assert.strictEqual(
        meaning(algorithm, "batchSize"),
        `The number of transitions that each gradient step learns from${sequences}.`,
      )
      assert.strictEqual(meaning(algorithm, "gamma"), "The discount factor of future rewards.")
    }
    assert.strictEqual(meaning("bc", "batchSize"), "The number of demonstrated steps that an update learns from.")
    assert.strictEqual(meaning("ppo", "nsteps"), "The number of env steps that each env takes between two updates.")
    assert.include(meaning("ppo", "gamma"), "In self-play it is negative")
  })
})
