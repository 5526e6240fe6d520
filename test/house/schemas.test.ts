import * as NodeServices from "@effect/platform-node/NodeServices"
import { globSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Exit } from "effect"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { schemas } from "../../scripts/schemas.ts"
import * as Agents from "../../src/agents/agent/Agents.ts"
import { decode, isPlain, type Plain, toCamelCase } from "../../src/base/config/Config.ts"
import * as Datasets from "../../src/agents/task/Datasets.ts"
import * as EvaluationConfig from "../../src/agents/evaluate/EvaluationConfig.ts"
import { kindOf } from "../../src/run/RunSpec.ts"
import * as Scorers from "../../src/agents/evaluate/Scorers.ts"
import { RunSettings } from "../../src/agents/training/RuntimeConfig.ts"
import { schemaAt, validator } from "./validators.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Every key that an experiment can have, the ones of other programs' files too. */
const everything = `
name: my_experiment
description: all keys
seed: 7
runtime:
  max_envs_to_visit: 1000
  max_steps_per_episode: 50
  verbose: true
  scores_path: scores.jsonl
  verbose_score_logging: true
  num_parallel_episodes: 4
  validation_freq: 50
  validation_num_workers: 100
  run_validation_at_start: true
  checkpoint_dir: checkpoints
  checkpoint_every_episodes: 10
  checkpoint_strategy: last_n
  checkpoint_keep_last: 5
  checkpoint_on_start: false
  resume_from: null
  start_episode_index: 0
train_dataset:
  type: qa
  dataset_path: null
  items: [{ question: "2 + 2?", answer: 4, Level: easy }]
  hf_dataset: null
  hf_subset: null
  split: train
  question_field: question
  answer_field: answer
  choices_field: null
  id_field: null
  meta_fields: [Level]
  task_type: numeric
  env_class: null
  instruction_template: "Answer: {question}"
  max_samples: 10
  shuffle: true
  seed: 42
  verbose: true
validation_dataset:
  type: omega_math
  dataset_path: omega.jsonl
  input_field: input
  target_field: target
  eval_mode: set_tol
  eval_tolerance: 1.0e-6
  expect_boxed: false
  output_type: json
  feedback_type: llm_feedback_from_ground_truth_solution
  feedback_lm_config: { model: gpt-4.1-mini }
  enable_llm_feedback: true
  num_subsets: 2
  samples_per_subset: 5
agent:
  type: reflexion_agent
  lm_config:
    model: "vllm:Qwen/Qwen3-8B"
    temperature: 0.2
    max_output_tokens: 2048
    log_calls: false
    max_retries: 5
    starting_delay: 1.0
    backoff_factor: 2.0
    max_delay: 10.0
    base_url: http://127.0.0.1:8000/v1
    protocol: openai
    api_key: null
    timeout_s: 900
    stop_sequences: ["\\n\\n"]
    thinking_budget: 1024
    use_server: true
    cache: record
    cache_dir: lm_cache
    limits: { concurrency: 8, requests_per_minute: 60, tokens_per_minute: 100000 }
    budget: { tokens: 1000000, calls: 1000, money: 5 }
    prices: [{ model: "vllm:", input: 0.1, output: 0.2 }]
    jitter: 0.25
  system_prompt: null
  parser: [{ tag: answer }, boxed, { json: action }]
  reject_incomplete_completions: true
  trace_tokens: false
  verbose: true
  memory_config: { _type: history_list, max_length: null }
  history_k: 10
  enable_reflection: true
  reflect_on_failure_only: false
  failure_threshold: 1.0
  max_reflections_in_prompt: 10
  agent_system_prompt: null
  reflection_system_prompt: null
  reflection_few_shot_examples: null
output:
  results_dir: outputs/my_experiment
  log_level: INFO
  save_memory_every: 50
  save_rollouts: true
`

/** The same file with something else in one place; undefined takes the key away. */
const changedIn =
  (whole: string) =>
  (path: string, value: unknown): unknown => {
    const put = (tree: unknown, [key, ...rest]: ReadonlyArray<string>): unknown => {
      const { [key]: old, ...others } = isPlain(tree) ? tree : {}
      const now = rest.length === 0 ? value : put(old, rest)
      return now === undefined ? others : { ...others, [key]: now }
    }
    return put(parse(whole), path.split("."))
  }

const changed = changedIn(everything)

/** Tells whether the library itself accepts a whole file. */
const isTaken = (decoding: Effect.Effect<void, unknown, NodeServices.NodeServices>): Promise<boolean> =>
  Effect.runPromise(
    Effect.map(Effect.exit(Effect.provide(decoding, NodeServices.layer)), (exit) => Exit.isSuccess(exit)),
  )

const isAccepted = (file: unknown): Promise<boolean> => {
  const tree = toCamelCase(file)
  const { trainDataset: train, validationDataset: validation, agent, ...settings } = isPlain(tree) ? tree : {}
  const from = { source: "experiment.yaml" }
  return isTaken(
    Effect.gen(function* () {
      yield* decode(RunSettings, settings, from)
      for (const said of [train, validation])
        if (said !== undefined && said !== null) yield* Datasets.decode(said, from)
      yield* Agents.decode(agent ?? {}, { ...from, baseDir: root })
    }),
  )
}

/** All keys of a tree renamed, but for those of data. */
const renamed = (tree: unknown, rename: (key: string) => string): unknown =>
  Array.isArray(tree)
    ? tree.map((item) => renamed(item, rename))
    : isPlain(tree)
      ? Object.fromEntries(
          Object.entries(tree).map(([key, item]) => [rename(key), key === "items" ? item : renamed(item, rename)]),
        )
      : tree

/** Returns the other spelling that the decoder accepts: `lambda_`, for keys that are reserved words in Python. */
const underlined = (key: string): string => (key.startsWith("_") ? key : `${key}_`)

const right: ReadonlyArray<readonly [what: string, file: unknown]> = [
  ["every key", parse(everything)],
  ["every key, spelled as in code", toCamelCase(parse(everything))],
  ["keys with an underscore behind them", changed("runtime", renamed(parse(everything).runtime, underlined))],
  ["no validation", changed("validation_dataset", null)],
  ["an agent alone", { agent: { lm_config: { model: "gpt-4.1-mini" } } }],
  ["a memory without its type", changed("agent.memory_config", { max_reflections: 3 })],
  ["unbounded reflections", changed("agent.memory_config", { _type: "reflections", max_length: null })],
  ["another agent", changed("agent", { type: "tool_agent", lm_config: { model: "o1" }, max_calls: 3 })],
  ["questions without a type", changed("train_dataset", { dataset_path: "train.jsonl" })],
  ["mathematics without a type", changed("train_dataset", { dataset_path: "omega.jsonl", eval_mode: "auto" })],
  ["a game", changed("train_dataset", { type: "key_door", rooms: 3, doors: 1, num_tasks: 5 })],
  ["numbers", changed("train_dataset", { type: "finer", prepend_options: true, options: ["A", "B"] })],
  ["one parser", changed("agent.parser", "boxed")],
]

const wrong: ReadonlyArray<readonly [what: string, file: unknown]> = [
  ["an unknown key", changed("agnet", {})],
  ["an unknown key of the runtime", changed("runtime.max_steps", 5)],
  ["an unknown key of the output", changed("output.dir", "x")],
  ["an unknown key of the agent", changed("agent.histroy_k", 5)],
  ["an unknown key of the model", changed("agent.lm_config.temprature", 0)],
  ["an unknown key of a limit", changed("agent.lm_config.limits.rpm", 5)],
  ["an unknown key of the memory", changed("agent.memory_config.size", 5)],
  ["an unknown key of a data set", changed("train_dataset.path", "x")],
  ["a key of another agent", changed("agent", { type: "history_agent", lm_config: { model: "o1" }, max_calls: 3 })],
  ["a key of another data set", changed("train_dataset", { type: "qa", dataset_path: "x.jsonl", rooms: 3 })],
  ["a key of another kind, without one", changed("train_dataset", { dataset_path: "x.jsonl", expect_boxed: true })],
  ["an unknown agent", changed("agent.type", "reflection_agent")],
  ["an unknown memory", changed("agent.memory_config._type", "list")],
  ["an unknown data set", changed("train_dataset.type", "quiz")],
  ["no model", changed("agent.lm_config.model", undefined)],
  ["an empty model", changed("agent.lm_config.model", "")],
  ["no agent", changed("agent", undefined)],
  ["a text for a number", changed("runtime.validation_freq", "50")],
  ["a number for a switch", changed("runtime.verbose", 1)],
  ["half a step", changed("runtime.max_steps_per_episode", 0.5)],
  ["fewer than none", changed("runtime.checkpoint_keep_last", -1)],
  ["no steps", changed("runtime.max_steps_per_episode", 0)],
  ["an unknown strategy", changed("runtime.checkpoint_strategy", "best")],
  ["null where there is no null", changed("runtime.checkpoint_keep_last", null)],
  ["a cold model", changed("agent.lm_config.temperature", -1)],
  ["an unknown parser", changed("agent.parser", "xml")],
  ["no parsers", changed("agent.parser", [])],
  ["an unknown comparison", changed("train_dataset.task_type", "fuzzy")],
  ["a log level in small letters", changed("output.log_level", "debug")],
  ["too many words", changed("train_dataset", { type: "codebook", words: 1000 })],
]

/** Every key that an evaluation can have. */
const evaluation = `
name: capitals
description: all keys
seed: 7
dataset: { type: qa, dataset_path: capitals.jsonl, meta_fields: [continent] }
agents:
  - name: plain
    type: memoryless_agent
    lm_config: { model: gpt-4.1-mini }
  - { type: history_agent, lm_config: { model: gpt-4.1-mini } }
repeats: 8
workers: 16
max_steps_per_episode: 5
scorers:
  - exact
  - { type: f1, name: words }
  - { type: solved, threshold: 0.5 }
  - { type: judge, name: polite, rubric: Is it polite?, lm_config: { model: gpt-4.1-mini, temperature: 0 } }
pass_at: [1, 4, 8]
pass_threshold: 0.5
by: [continent]
confidence: 0.9
compare_to: results/before
verbose: true
output: { results_dir: outputs }
`

const altered = changedIn(evaluation)
const reader = { lm_config: { model: "scripted:reader" } }
const { agents: _several, ...nobody } = parse(evaluation)

const isAcceptedEvaluation = (file: unknown): Promise<boolean> =>
  isTaken(
    Effect.gen(function* () {
      const { settings, dataset, agents, from } = yield* EvaluationConfig.read(file, {
        source: "tasks.yaml",
        overrides: [],
      })
      yield* Datasets.decode(dataset, { ...from, prefix: ["dataset"] })
      for (const { config, prefix } of agents) yield* Agents.decode(config, { ...from, prefix, baseDir: root })
      const openLm = () => Effect.succeed({ complete: () => Effect.die("nobody is asked") })
      yield* Scorers.openAll(settings.scorers, { baseDir: root, from: { ...from, prefix: ["scorers"] }, openLm })
    }),
  )

const rightEvaluations: ReadonlyArray<readonly [what: string, file: unknown]> = [
  ["every key", parse(evaluation)],
  ["every key, spelled as in code", toCamelCase(parse(evaluation))],
  ["one agent", { ...nobody, agent: reader }],
  ["one with a name", { ...nobody, agent: { name: "reads", ...reader } }],
  [
    "agents by their names",
    altered("agents", { plain: reader, "with a memory": { type: "history_agent", ...reader } }),
  ],
  ["the least", { dataset: { type: "codebook" }, agent: reader }],
  ["a file that was there before", altered("compare_to", null)],
  ["no k", altered("pass_at", null)],
]

const wrongEvaluations: ReadonlyArray<readonly [what: string, file: unknown]> = [
  ["an unknown key", altered("repeat", 3)],
  ["an unknown key of the output", altered("output.save_rollouts", true)],
  ["an unknown key of the data set", altered("dataset.path", "x")],
  ["an unknown key of an agent", altered("agents", [{ ...reader, histroy_k: 1 }])],
  ["an unknown key of a named agent", altered("agents", { plain: { ...reader, histroy_k: 1 } })],
  ["an unknown key of a scorer", altered("scorers", [{ type: "exact", treshold: 1 }])],
  ["an unknown scorer", altered("scorers", ["exakt"])],
  ["a scorer of no type", altered("scorers", [{ threshold: 1 }])],
  ["a judge without a rubric", altered("scorers", [{ type: "judge", ...reader }])],
  ["a judge by its name alone", altered("scorers", ["judge"])],
  ["no scorers", altered("scorers", [])],
  ["no data set", altered("dataset", undefined)],
  ["a data set of null", altered("dataset", null)],
  ["no agent", nobody],
  ["both", altered("agent", reader)],
  ["an empty list of agents", altered("agents", [])],
  ["no agent by its name", altered("agents", {})],
  ["a number for a name", altered("agents", [{ name: 4, ...reader }])],
  ["no name", altered("agents", [{ name: "", ...reader }])],
  ["an agent without a model", altered("agents", [{ type: "memoryless_agent" }])],
  ["no repeats", altered("repeats", 0)],
  ["half a worker", altered("workers", 0.5)],
  ["all confidence", altered("confidence", 1)],
  ["a text for a number", altered("pass_at", ["8"])],
]

describe("schemas/", () => {
  it("is as the code is", () => {
    const found = readdirSync(join(root, "schemas"), { recursive: true, encoding: "utf8" })
    const files = found.filter((name) => name.endsWith(".json")).map((name) => name.replaceAll("\\", "/"))
    const wanted = schemas()
    assert.sameMembers(files, [...wanted.keys()], "npm run schemas writes them")
    for (const [path, schema] of wanted) assert.deepEqual(schemaAt(path), schema, `${path}: npm run schemas writes it`)
  })

  it("repeats no larger part in a file", () => {
    for (const [path, { $defs, ...root }] of schemas()) {
      const seen = new Set<string>()
      const visit = (tree: unknown): void => {
        if (Array.isArray(tree)) return tree.forEach(visit)
        if (!isPlain(tree)) return
        const text = JSON.stringify(tree, undefined, 2)
        if (tree.type === "object" && text.split("\n").length > 12) {
          assert.isFalse(seen.has(text), `${path}: twice ${text.slice(0, 300)}`)
          seen.add(text)
        }
        Object.values(tree).forEach(visit)
      }
      visit([root, $defs])
    }
  })

  it("holds schemas that an independent validator takes", { tags: "slow" }, () => {
    for (const path of schemas().keys()) assert.isFunction(validator(path))
  })

  it("says what each key of an experiment and of an evaluation means, and what it is unless given", () => {
    const unsaid: Array<string> = []
    const visit = (tree: unknown, path: string, definitions: unknown): void => {
      /** The description of a key, or of the shared part to which it refers. */
      const descriptionOf = ({ description, $ref }: Plain): unknown => {
        const shared = isPlain(definitions) ? definitions[String($ref).replace("#/$defs/", "")] : undefined
        return description ?? (isPlain(shared) ? descriptionOf(shared) : undefined)
      }
      if (Array.isArray(tree)) return tree.forEach((one, index) => visit(one, `${path}[${index}]`, definitions))
      if (!isPlain(tree)) return
      for (const [key, value] of Object.entries(tree)) {
        if (key === "properties" && isPlain(value)) {
          for (const [name, item] of Object.entries(value)) {
            // A parser's only key says it by its name.
            const isSaid = isPlain(item) && (descriptionOf(item) !== undefined || /\.parser(_\d+)?(\.|$)/.test(path))
            if (!isSaid) unsaid.push(`${path}.${name}`)
            visit(item, `${path}.${name}`, definitions)
          }
          // `allOf` lists the required keys in both spellings, without a second description.
        } else if (key !== "default" && key !== "allOf") visit(value, `${path}.${key}`, definitions)
      }
    }
    for (const name of ["experiment", "evaluation"]) {
      const schema = schemaAt(`${name}.schema.json`)
      visit(schema, name, schema.$defs)
    }
    assert.deepStrictEqual(unsaid, [])
    const { properties } = schemaAt("experiment.schema.json")
    const { runtime } = isPlain(properties) ? properties : {}
    const { properties: settings } = isPlain(runtime) ? runtime : {}
    const { checkpoint_strategy: strategy } = isPlain(settings) ? settings : {}
    assert.deepInclude(strategy, { default: "last_n" })
  })

  it("takes the experiments that the library takes", async () => {
    const problem = validator("experiment.schema.json")
    for (const [what, file] of right) {
      assert.isUndefined(problem(file), what)
      assert.isTrue(await isAccepted(file), what)
    }
  })

  it("refuses those that the library refuses", async () => {
    const problem = validator("experiment.schema.json")
    for (const [what, file] of wrong) {
      assert.isDefined(problem(file), what)
      assert.isFalse(await isAccepted(file), what)
    }
  })

  it("takes the evaluations that the library takes, and refuses those that it refuses", async () => {
    const problem = validator("evaluation.schema.json")
    for (const [what, file] of rightEvaluations) {
      assert.isUndefined(problem(file), what)
      assert.isTrue(await isAcceptedEvaluation(file), what)
    }
    for (const [what, file] of wrongEvaluations) {
      assert.isDefined(problem(file), what)
      assert.isFalse(await isAcceptedEvaluation(file), what)
    }
  })

  it("takes the experiments and the evaluations among the examples", () => {
    const files = globSync("examples/**/*.yaml", { cwd: root, exclude: ["**/node_modules"] })
    const parsed = files.map((name): [string, unknown] => [name, parse(readFileSync(join(root, name), "utf8"))])
    const evaluations = parsed.filter(([, file]) => kindOf(file) === "evaluation")
    const experiments = parsed.filter(([, file]) => kindOf(file) === "agents")
    for (const [schema, some] of [
      ["experiment.schema.json", experiments],
      ["evaluation.schema.json", evaluations],
    ] as const) {
      assert.isNotEmpty(some)
      for (const [name, file] of some) assert.isUndefined(validator(schema)(file), name)
    }
  })
})
