import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import type { Override } from "../../../src/base/config/Config.ts"
import { namesOf, read } from "../../../src/agents/evaluate/EvaluationConfig.ts"
import * as Evaluations from "../../../src/agents/evaluate/Evaluations.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"

const dataset = { items: [{ question: "What is the capital of France?", answer: "Paris" }] }
const reader = { type: "memoryless_agent", lm_config: { model: "scripted:reader" } }
const from = { source: "tasks.yaml", overrides: [] }

const layers = () =>
  Layer.mergeAll(NodeServices.layer, NodeHttpClient.layerUndici, RunStore.layerMemory, Recorder.layerSilent)

const messageOf = (config: object) =>
  Evaluations.fromConfig(config, { source: "tasks.yaml" }).pipe(
    Effect.flip,
    Effect.map(({ message }) => message),
    Effect.provide(layers()),
  )

describe("the config of an evaluation", () => {
  it.effect("names agents by unchanged keys, in a list by a name, or not at all", () =>
    Effect.gen(function* () {
      const named = yield* read({ dataset, agents: { my_agent: reader, "Other one": reader } }, from)
      assert.deepStrictEqual(
        named.agents.map(({ name }) => name),
        ["my_agent", "Other one"],
      )
      const listed = yield* read({ dataset, agents: [{ name: "first", ...reader }, reader] }, from)
      assert.deepStrictEqual(
        listed.agents.map(({ name, prefix }) => [name, prefix.join(".")]),
        [
          ["first", "agents.0"],
          [undefined, "agents.1"],
        ],
      )
      const one = yield* read({ dataset, agent: reader }, from)
      assert.deepStrictEqual(one.agents[0].prefix, ["agent"])
    }),
  )

  it.effect("names the override that misspells the name of an agent", () =>
    Effect.gen(function* () {
      const overrides = [{ path: "agents.my_agnt.history_k", value: 1, source: "--set" }]
      const { message } = yield* Effect.flip(read({ dataset, agents: { my_agent: reader } }, { ...from, overrides }))
      assert.strictEqual(message, '--set: agents.my_agnt: unknown agent; did you mean "my_agent"?')
    }),
  )

  it.effect("is overridden below an agent by its name or its position", () =>
    Effect.gen(function* () {
      const overrides = (path: string) => [{ path, value: "scripted:echo", source: "--set" }]
      const modelOf = (said: unknown): unknown => Object(Object(said).lmConfig).model
      const named = yield* read(
        { dataset, agents: { my_agent: reader, other: reader } },
        {
          source: "tasks.yaml",
          overrides: overrides("agents.my_agent.lm_config.model"),
        },
      )
      assert.deepStrictEqual(
        named.agents.map(({ config }) => modelOf(config)),
        ["scripted:echo", "scripted:reader"],
      )
      const listed = yield* read(
        { dataset, agents: [reader, reader] },
        {
          source: "tasks.yaml",
          overrides: overrides("agents.1.lm_config.model"),
        },
      )
      assert.deepStrictEqual(
        listed.agents.map(({ config }) => modelOf(config)),
        ["scripted:reader", "scripted:echo"],
      )
    }),
  )

  it("has a different name for each agent", () => {
    const agent = (type: string, model: string | null, name?: string) => ({ type, model, name })
    assert.deepStrictEqual(namesOf([agent("a", "m"), agent("b", "m")]), ["a", "b"])
    assert.deepStrictEqual(namesOf([agent("a", "m"), agent("a", "n"), agent("b", "m")]), ["a m", "a n", "b"])
    assert.deepStrictEqual(namesOf([agent("a", "m"), agent("a", "m"), agent("a", "m", "mine")]), [
      "a m",
      "a m 2",
      "mine",
    ])
  })

  it.effect("says what is wrong in one line", () =>
    Effect.gen(function* () {
      const table: ReadonlyArray<readonly [object, string]> = [
        [{ dataset, agent: reader, repeat: 3 }, 'unknown key "repeat"; did you mean "repeats"?'],
        [
          { dataset, agent: reader, scorers: ["exakt"] },
          'scorers.0: expected a scorer, found "exakt"; did you mean "exact"?',
        ],
        [{ dataset, agent: reader, scorers: [] }, "scorers: "],
        [{ dataset, agent: reader, repeats: 2, pass_at: [5] }, "pass_at: expected 2 at most, the repeats; found 5"],
        [{ dataset, agent: reader, confidence: 1 }, "confidence: "],
        [
          { dataset, agent: reader, agents: [reader] },
          "agent: expected either agent, or agents as a list or by their names; found both",
        ],
        [{ dataset }, "agent: expected either agent, or agents as a list or by their names; found neither"],
        [{ dataset, agents: [] }, "agents: expected a list of agents, or agents by their names"],
        [
          { dataset, agents: { a: { type: "memoryles_agent" } } },
          'agents.a.type: unknown agent "memoryles_agent"; did you mean "memoryless_agent"?',
        ],
        [{ dataset, agent: { ...reader, lm_config: { model: "scripted:raeder" } } }, 'did you mean "scripted:reader"?'],
        [{ dataset, agents: [{ name: 4, ...reader }] }, "agents.0.name: expected the agent's name in tables, found 4"],
        [{ agent: reader }, "dataset: expected the data set to evaluate on, found nothing"],
        [
          { dataset: { type: "codebok" }, agent: reader },
          'dataset.type: unknown kind of data set "codebok"; did you mean "codebook"?',
        ],
        [
          { dataset, agent: reader, compare_to: "/nowhere" },
          "compare_to: expected the folder of a finished evaluation at /nowhere, found nothing",
        ],
      ]
      for (const [config, message] of table) {
        const found = yield* messageOf(config)
        assert.include(found, message)
        assert.notInclude(found, "\n")
      }
    }),
  )

  it.effect("names the line of a missing or unfinished evaluation to compare with", () =>
    Effect.gen(function* () {
      for (const compare_to of ["/nowhere", import.meta.dirname]) {
        const lines = new Map([["compareTo", "tasks.yaml:4"]])
        const config = { dataset, agent: reader, compare_to }
        const evaluation = Evaluations.fromConfig(config, { source: "tasks.yaml", lines })
        const error = yield* Effect.flip(Effect.provide(evaluation, layers()))
        assert.strictEqual(error._tag, "ConfigError")
        assert.match(error.message, /^tasks\.yaml:4: compare_to: .*expected the folder of a finished evaluation/)
      }
    }),
  )

  it.effect("names the lines of problems, in the data set and the agents at once", () =>
    Effect.gen(function* () {
      const lines = new Map([
        ["dataset", "tasks.yaml:1"],
        ["dataset.numTaks", "tasks.yaml:3"],
        ["agents.a", "tasks.yaml:5"],
        ["seed", "tasks.yaml:9"],
      ])
      const said = (config: object, overrides: ReadonlyArray<Override> = []) =>
        Effect.map(
          Effect.flip(
            Evaluations.fromConfig({ dataset, agent: reader, ...config }, { source: "tasks.yaml", lines, overrides }),
          ),
          ({ message }) => message,
        )
      const both = yield* said({
        agent: undefined,
        dataset: { ...dataset, num_taks: 2 },
        agents: { a: { ...reader, modle: 1 } },
      })
      assert.match(
        both,
        /^tasks\.yaml:3: unknown key "dataset\.num_taks".*; tasks\.yaml:5: unknown key "agents\.a\.modle"/,
      )
      assert.match(yield* said({ seed: "x" }), /^tasks\.yaml:9: seed: /)
      assert.match(yield* said({ seed: 1 }, [{ path: "seed", value: "x", source: "--set" }]), /^--set: seed: /)
      assert.match(yield* said({ history_k: 1 }), /: unknown key "history_k"; it belongs below agent$/)
    }).pipe(Effect.provide(layers())),
  )

  it.effect("gives an evaluation", () =>
    Effect.gen(function* () {
      const agents = {
        silent: reader,
        told: { ...reader, system_prompt: "RULE: [What is the capital of France?] -> Paris" },
      }
      const config = {
        dataset,
        agents,
        scorers: ["exact", { type: "judge", rubric: "?", lm_config: { model: "scripted:echo" } }],
      }
      const { report, episodes } = yield* Evaluations.fromConfig(config)
      assert.strictEqual(episodes, 2)
      assert.deepStrictEqual(
        report.agents.map(({ agent, scores }) => [agent, ...scores.map(({ scorer, mean }) => `${scorer} ${mean}`)]),
        [
          ["silent", "exact 0"],
          ["told", "exact 1"],
        ],
      )
    }).pipe(Effect.provide(layers())),
  )
})
