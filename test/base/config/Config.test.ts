import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { closest, editDistance } from "../../../src/base/text/closest.ts"
import {
  applyOverrides,
  ConfigError,
  camelCase,
  checkAll,
  decode,
  overLines,
  snakeCase,
  toCamelCase,
  toSnakeCase,
} from "../../../src/base/config/Config.ts"
import { positive, positiveInt, withDefault } from "../../../src/base/config/fields.ts"

const Example = Schema.Struct({
  learningRate: withDefault(positive, 0.1),
  numEnvs: positiveInt,
  nested: withDefault(Schema.Struct({ keepLast: withDefault(positiveInt, 3) }), {}),
})

const complaint = (input: unknown, sources?: ReadonlyMap<string, string>) =>
  Effect.flip(decode(Example, input, { source: "train.ts", ...(sources === undefined ? {} : { sources }) }))

describe("decode", () => {
  it.effect("fills in defaults, also nested ones", () =>
    Effect.gen(function* () {
      const value = yield* decode(Example, { numEnvs: 2 }, { source: "train.ts" })
      assert.deepStrictEqual(value, { learningRate: 0.1, numEnvs: 2, nested: { keepLast: 3 } })
    }),
  )

  it.effect("names the source of a wrong value, the value, and what was expected", () =>
    Effect.gen(function* () {
      const error = yield* complaint({ numEnvs: 1, learningRate: -1 }, new Map([["learningRate", "conf.yaml:3"]]))
      assert.strictEqual(error.message, "conf.yaml:3: learning_rate: expected a value greater than 0, found -1")
      assert.strictEqual(error.key, "learning_rate")
    }),
  )

  it.effect("names the nearest known key for an unknown one", () =>
    Effect.gen(function* () {
      const error = yield* complaint({ numEnvs: 1, nested: { keeplast: 3 } })
      assert.strictEqual(error.message, 'train.ts: unknown key "nested.keeplast"; did you mean "nested.keepLast"?')
      const other = yield* complaint({ numEnvs: 1, colour: "red" })
      assert.strictEqual(other.message, 'train.ts: unknown key "colour"; known keys are learningRate, numEnvs, nested')
    }),
  )

  it.effect("spells keys as they are written where the mistake is", () =>
    Effect.gen(function* () {
      const inYaml = yield* complaint({ numEnvs: 1, learningrate: 3 }, new Map([["learningrate", "a.yaml:3"]]))
      assert.strictEqual(inYaml.message, 'a.yaml:3: unknown key "learningrate"; did you mean "learning_rate"?')
      const inCode = yield* complaint({ numEnvs: 1, learningRates: 3, nested: { keepLast: 0 } })
      assert.include(inCode.message, 'train.ts: unknown key "learningRates"; did you mean "learningRate"?')
      assert.match(inCode.message, /train\.ts: nested\.keepLast: expected .*, found 0/)
      const ofYaml = yield* complaint({ numEnvs: 1, nested: { keep_last: 3 } })
      assert.strictEqual(ofYaml.message, 'train.ts: unknown key "nested.keep_last"; did you mean "nested.keepLast"?')
    }),
  )

  it.effect("says where a key belongs that is known in another section", () =>
    Effect.gen(function* () {
      const whole = Schema.Struct({ title: Schema.String, example: Example, other: Schema.NullOr(Example) })
      const said = (input: unknown, prefix: ReadonlyArray<string> = ["example"]) =>
        Effect.map(Effect.flip(decode(Example, input, { source: "a.yaml", prefix, whole })), ({ message }) => message)
      assert.strictEqual(
        yield* said({ numEnvs: 1, keepLast: 3 }),
        'a.yaml: unknown key "example.keep_last"; it belongs below example.nested',
      )
      assert.match(
        yield* said({ numEnvs: 1, keepLast: 3 }, ["third"]),
        /; it belongs below example\.nested or other\.nested$/,
      )
      assert.match(yield* said({ numEnvs: 1, title: "t" }), /"example\.title"; it belongs at the top, in no section$/)
      assert.match(yield* said({ numEnvs: 1, numenv: 3 }), /did you mean "example\.num_envs"\?$/)
      assert.match(yield* said({ numEnvs: 1, colour: 3 }), /"example\.colour"; known keys are learning_rate,/)
    }),
  )

  it.effect("names the source of a key in an unknown section", () =>
    Effect.gen(function* () {
      const { value, sources } = yield* applyOverrides({ numEnvs: 1 }, [
        { path: "nset.keep_last", value: 3, source: "--set" },
      ])
      assert.strictEqual((yield* complaint(value, sources)).message.split(";")[0], '--set: unknown key "nset"')
      const { value: other } = yield* applyOverrides({ numEnvs: 1 }, [{ path: "nse", value: 3, source: "--set" }])
      const error = yield* complaint(other, new Map([["nset.keepLast", "--set"]]))
      assert.strictEqual(error.message.split(";")[0], 'train.ts: unknown key "nse"')
    }),
  )

  it.effect("names the source of a section that did not exist, but not of one that did", () =>
    Effect.gen(function* () {
      const Whole = Schema.Struct({ runs: Schema.Record(Schema.String, Example) })
      const lines = new Map([
        ["runs", "a.yaml:1"],
        ["runs.a", "a.yaml:2"],
      ])
      const messageFor = Effect.fnUntraced(function* (path: string, config: { readonly [key: string]: unknown }) {
        const { value, sources } = yield* applyOverrides({ runs: { a: config } }, [{ path, value: 1, source: "--set" }])
        const from = { source: "a.yaml", sources: overLines(lines, sources) }
        return (yield* Effect.flip(decode(Whole, value, from))).message
      })
      assert.strictEqual(
        yield* messageFor("runs.b.learning_rate", { numEnvs: 1 }),
        "--set: runs.b.num_envs: missing key",
      )
      assert.strictEqual(yield* messageFor("runs.a.learning_rate", {}), "a.yaml:2: runs.a.num_envs: missing key")
    }),
  )

  it.effect("does not say of a key that it belongs where it is", () =>
    Effect.gen(function* () {
      const whole = Schema.Struct({ section: Schema.Union([Example, Schema.Struct({ other: Schema.String })]) })
      const decoding = decode(Example, { numEnvs: 1, other: "x" }, { source: "a.yaml", prefix: ["section"], whole })
      const { message } = yield* Effect.flip(decoding)
      assert.match(message, /^a\.yaml: unknown key "section\.other"; known keys are learning_rate/)
    }),
  )

  it.effect("says all that is wrong, in one line, each key once", () =>
    Effect.gen(function* () {
      const error = yield* complaint({ numEnvs: "two", learningRate: NaN })
      assert.match(
        error.message,
        /learningRate: expected a finite number, found NaN; train\.ts: numEnvs: expected .*, found "two"$/,
      )
    }),
  )

  it.effect("names the choices where a section has several forms, and the nearest one", () =>
    Effect.gen(function* () {
      const Adam = Schema.Struct({ name: Schema.Literals(["adam", "adamw"]) })
      const Sgd = Schema.Struct({ name: Schema.Literal("sgd"), momentum: Schema.Finite })
      const Forms = Schema.Struct({ optimiser: Schema.NullOr(Schema.Union([Adam, Sgd])) })
      const problem = (optimiser: unknown) =>
        Effect.map(Effect.flip(decode(Forms, { optimiser }, { source: "c.yaml" })), ({ message }) => message)
      const choices = 'c.yaml: optimiser.name: expected "adam" | "adamw" | "sgd"'
      assert.strictEqual(yield* problem({ name: "sdg" }), `${choices}, found "sdg"; did you mean "sgd"?`)
      assert.strictEqual(yield* problem({ name: 3 }), `${choices}, found 3`)
      assert.strictEqual(yield* problem({ name: "sgd" }), "c.yaml: optimiser.momentum: missing key")
      assert.notInclude(yield* problem("sgd"), "readonly")
    }),
  )

  it.effect("says what is missing", () =>
    Effect.gen(function* () {
      assert.match((yield* complaint({})).message, /^train\.ts: numEnvs: missing key$/)
    }),
  )
})

describe("the lines of a file", () => {
  it("are the lines of the file, unless a key or its section is overridden", () => {
    const lines = new Map([
      ["agent", "a.yaml:1"],
      ["agent.historyK", "a.yaml:2"],
      ["output.name", "a.yaml:4"],
    ])
    const sources = overLines(
      lines,
      new Map([
        ["agent.historyK", "--set"],
        ["output", "b.yaml:1"],
      ]),
    )
    assert.deepEqual([...sources].sort(), [
      ["agent", "a.yaml:1"],
      ["agent.historyK", "--set"],
      ["output", "b.yaml:1"],
    ])
  })
})

describe("ConfigError.at", () => {
  const origin = {
    source: "conf.yaml",
    prefix: ["algorithm"],
    sources: new Map([
      ["algorithm.learningRate", "--set"],
      ["algorithm.hidden", "train.ts"],
    ]),
  }

  it("names the source, the full key and the problem", () => {
    const error = ConfigError.at(origin, "nsteps", "expected a positive number, found -1")
    assert.strictEqual(error.message, "conf.yaml: algorithm.nsteps: expected a positive number, found -1")
    assert.deepStrictEqual([error.source, error.key], ["conf.yaml", "algorithm.nsteps"])
  })

  it("blames the source that set the key or a section around it, in that source's spelling", () => {
    assert.strictEqual(ConfigError.at(origin, "learning_rate", "…").message, "--set: algorithm.learning_rate: …")
    assert.strictEqual(
      ConfigError.at(origin, "hidden.layer_sizes", "…").message,
      "train.ts: algorithm.hidden.layerSizes: …",
    )
  })

  it("leaves out the key where the whole config is wrong", () => {
    assert.strictEqual(ConfigError.at({ source: "conf.yaml" }, "", "expected keys").message, "conf.yaml: expected keys")
  })
})

describe("checkAll", () => {
  it.effect("says what is wrong with any part, in one error", () =>
    Effect.gen(function* () {
      const parts = [{ numEnvs: 0 }, { numEnvs: 1 }, { numEnvs: 1, colour: "red" }].map((input) =>
        decode(Example, input, { source: "a.yaml" }),
      )
      const error = yield* Effect.flip(checkAll(parts))
      assert.match(error.message, /^a\.yaml: num_envs: .*, found 0; a\.yaml: unknown key "colour"/)
      assert.isUndefined(yield* checkAll([parts[1]]))
    }),
  )
})

describe("applyOverrides", () => {
  it.effect("overrides values in order, in either spelling, and remembers their sources", () =>
    Effect.gen(function* () {
      const { value, sources } = yield* applyOverrides({ seed: 1, nested: { keepLast: 1, other: 2 } }, [
        { path: "nested.keep_last", value: 5, source: "a.yaml:1" },
        { path: "nested.keepLast", value: 6, source: "--set" },
        { path: "fresh.deep_key", value: true, source: "--set" },
      ])
      assert.deepStrictEqual(value, { seed: 1, nested: { keepLast: 6, other: 2 }, fresh: { deepKey: true } })
      assert.strictEqual(sources.get("nested.keepLast"), "--set")
    }),
  )

  const policies = [
    { policy: "grey_wolf", name: "ppo", gamma: 0.9 },
    { policy: "sheep", name: "ppo" },
  ]
  const inPolicies = (path: string, list: ReadonlyArray<unknown> = policies) =>
    applyOverrides({ policies: list }, [{ path: `policies.${path}`, value: 0.5, source: "--set" }])

  it.effect("overrides a setting of an item of a list by its number or its name, and no other one", () =>
    Effect.gen(function* () {
      for (const path of ["1.learning_rate", "sheep.learning_rate"]) {
        const { value, sources } = yield* inPolicies(path)
        assert.deepStrictEqual(value, { policies: [policies[0], { ...policies[1], learningRate: 0.5 }] })
        assert.strictEqual(sources.get("policies.1.learningRate"), "--set")
      }
      const [wolf, sheep] = policies
      assert.deepStrictEqual((yield* inPolicies("grey_wolf.gamma")).value, {
        policies: [{ ...wolf, gamma: 0.5 }, sheep],
      })
      assert.deepStrictEqual((yield* inPolicies("0")).value, { policies: [0.5, sheep] })
      const layers = [{ name: "dense" }, { name: "conv" }]
      assert.deepStrictEqual((yield* inPolicies("conv.size", layers)).value, {
        policies: [layers[0], { name: "conv", size: 0.5 }],
      })
      // Else it is no list, which the Schema refuses.
      assert.deepStrictEqual((yield* inPolicies("2.gamma")).value, { policies: { "2": { gamma: 0.5 } } })
      assert.deepStrictEqual((yield* inPolicies("a.gamma", [1])).value, { policies: { a: { gamma: 0.5 } } })
    }),
  )

  it.effect("says which names the items of a list have", () =>
    Effect.gen(function* () {
      const message = (path: string, list: ReadonlyArray<unknown> = policies) =>
        Effect.map(Effect.flip(inPolicies(path, list)), (error) => error.message)
      // The name of the algorithm is not that of the policy.
      assert.strictEqual(
        yield* message("ppo.gamma"),
        '--set: policies: no item is called "ppo"; expected one of grey_wolf, sheep, or a number below 2',
      )
      assert.match(
        yield* message("dense.size", [{ name: "dense" }, { name: "dense" }]),
        /more than one item is called "dense"; expected a number below 2$/,
      )
      assert.match(
        yield* message("dense.size", ["flat", { name: "dense" }, { name: "dense" }, { name: "conv" }]),
        /more than one item is called "dense"; expected one of conv, or a number below 4$/,
      )
    }),
  )
})

describe("spelling", () => {
  it("goes there and back for any camelCase key", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]+([A-Z][a-z]+){0,3}$/), (key) =>
        assert.strictEqual(camelCase(snakeCase(key)), key),
      ),
    )
  })

  it("reaches into lists and leaves tags, values and other objects alone", () => {
    const date = new Date(0)
    const tree = { someKey: [{ innerKey: "a_b" }], _tag: "LastN", when: date }
    const snake = toSnakeCase(tree)
    assert.deepStrictEqual(snake, { some_key: [{ inner_key: "a_b" }], _tag: "LastN", when: date })
    assert.deepStrictEqual(toCamelCase(snake), tree)
  })

  it("leaves the names in data as they are: records, and texts of agents", () => {
    const agent = { texts: { my_rules: "a", ownRules: "b" }, items: [{ user_id: 1 }] }
    for (const convert of [toCamelCase, toSnakeCase]) assert.deepStrictEqual(convert({ agent }), { agent })
    // An agent or a run may have one of these names, but has settings.
    const named = { agents: { texts: { max_retries: 1 } }, runs: { items: { max_steps: 2 } } }
    assert.deepStrictEqual(toCamelCase(named), {
      agents: { texts: { maxRetries: 1 } },
      runs: { items: { maxSteps: 2 } },
    })
  })

  it.effect("leaves the names in data as they are in overrides, too", () =>
    Effect.gen(function* () {
      const { value } = yield* applyOverrides({ agent: { texts: { my_rules: "a" } } }, [
        { path: "agent.texts.my_rules", value: "b", source: "--set" },
        { path: "other_agent.texts", value: { your_rules: "c" }, source: "--set" },
      ])
      assert.deepStrictEqual(value, {
        agent: { texts: { my_rules: "b" } },
        otherAgent: { texts: { your_rules: "c" } },
      })
    }),
  )
})

describe("closest", () => {
  it("finds what was probably meant, and nothing where nothing is near", () => {
    assert.strictEqual(closest("learningrat", ["learningRate", "epochs"]), "learningRate")
    assert.strictEqual(closest("cart-pole", ["CartPole", "Acrobot"]), "CartPole")
    assert.isUndefined(closest("banana", ["learningRate", "epochs"]))
  })

  it("two letters that changed places are one mistake", () => {
    assert.strictEqual(closest("modle", ["memory", "model"]), "model")
    assert.strictEqual(closest("agnet", ["agents", "agent"]), "agent")
    assert.strictEqual(closest("gtp", ["vllm", "gpt"]), "gpt")
    assert.isUndefined(closest("tpg", ["vllm", "gpt"]))
  })

  it("finds the only one that begins with all the words", () => {
    assert.strictEqual(closest("reflexion", ["tool_agent", "reflexion_agent"]), "reflexion_agent")
    assert.strictEqual(closest("max_steps", ["maxStepsPerEpisode", "maxEnvsToVisit"]), "maxStepsPerEpisode")
    assert.isUndefined(closest("max", ["maxStepsPerEpisode", "maxEnvsToVisit"]))
    assert.isUndefined(closest("refle", ["tool_agent", "reflexion_agent"]))
  })

  it("distance is a metric", () => {
    const word = fc.string({ maxLength: 8 })
    fc.assert(
      fc.property(word, word, word, (a, b, c) => {
        assert.strictEqual(editDistance(a, a), 0)
        assert.strictEqual(editDistance(a, b), editDistance(b, a))
        assert.isAtMost(editDistance(a, c), editDistance(a, b) + editDistance(b, c))
      }),
    )
  })
})
