import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { hunt } from "../../../examples/several-agents/separate-policies.ts"
import { game as ticTacToe } from "../../../examples/several-agents/past-selves.ts"
import * as Separate from "../../../src/rl/algorithms/agents/Separate.ts"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import * as AlphaZero from "../../../src/rl/algorithms/planning/AlphaZero.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as MultiEnv from "../../../src/rl/env/MultiEnv.ts"
import { box, discrete } from "../../../src/rl/env/Space.ts"
import * as safetensors from "../../../src/base/formats/safetensors.ts"
import * as Policy from "../../../src/rl/policy/Policy.ts"
import { ReturnFile } from "../../../src/run/evaluation.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import { type Kept, keep } from "../train/inMemory.ts"
import { resumable } from "../train/resumable.ts"

const hidden = [8]
const ppo = { hidden, nsteps: 16, minibatches: 2 }
const dqn = { hidden, learningStarts: 40, bufferSize: 200, batchSize: 8, updateTargetFreq: 64 }
const short = {
  env: hunt,
  numEnvs: 8,
  algorithm: Separate.make({ wolf: Ppo.make(ppo), sheep: A2c.make({ hidden, nsteps: 16 }) }),
  totalSteps: 512,
}

/** Agents that do not meet: each walks on a line of its own, and observes only its own place. */
const lines = MultiEnv.parallel({
  id: "lines",
  agents: ["a", "b", "c"],
  observationSpace: box(-10, 10, [1]),
  actionSpace: discrete(2),
  maxSteps: 10,
  reset: () => [0, 0, 0],
  observe: (places, agent) => [places[agent]],
  step: (places, actions) => ({
    state: places.map((place, agent) => place + 2 * actions[agent] - 1),
    rewards: actions.map(Number),
    terminated: false,
  }),
})

/** The weights of a policy at the end of a run, by name. */
const weightsOf = ({ files }: Kept, policy: string) => {
  const path =
    [...files.keys()]
      .filter((file) => file.endsWith("/weights.safetensors"))
      .sort()
      .at(-1) ?? ""
  const all = Object.entries(safetensors.decode(files.get(path) ?? new Uint8Array(0)))
  return all.filter(([name]) => name.startsWith(`${policy}.`))
}

describe("separate policies are resumed bit for bit", () => {
  for (const [name, input] of [
    ["by PPO and A2C", short],
    ["with normalised observations and rewards", { ...short, normalize: { observations: true, rewards: true } }],
    [
      "by two DQN, of which one explores less",
      {
        ...short,
        algorithm: Separate.make({
          wolf: Dqn.make({ ...dqn, trainEvery: 8 }),
          sheep: Dqn.make({ ...dqn, trainEvery: 8, epsilonStart: 0.5, prioritised: {} }),
        }),
      },
    ],
    [
      "by DQN and PPO with a memory, in a game of turns with masks",
      {
        ...short,
        env: ticTacToe,
        algorithm: Separate.make({
          cross: Dqn.make({ ...dqn, trainEvery: 64 }),
          circle: Ppo.make({ ...ppo, lstm: 4, sequence: 8 }),
        }),
      },
    ],
    [
      "by one policy for two agents, and one for the third",
      {
        ...short,
        env: lines,
        numEnvs: 12,
        algorithm: Separate.make({ outer: { agents: ["a", "c"], algorithm: Ppo.make(ppo) }, b: Ppo.make(ppo) }),
      },
    ],
  ] as const) {
    it.effect(
      name,
      () =>
        Effect.gen(function* () {
          const validation = { everySteps: 256, episodes: 12, sampled: true }
          const { whole, resumed, stoppedAt } = yield* resumable({ ...input, validation }, 200)
          assert.isBelow(stoppedAt, whole.steps)
          assert.strictEqual(resumed.digest, whole.digest)
        }),
      // The one with statistics stays quick: its checkpoints have all that those of the others have.
      { tags: "normalize" in input ? [] : "slow" },
    )
  }

  it.effect("or in another order, in which each keeps its statistics", () =>
    Effect.gen(function* () {
      const [wolf, sheep] = [Ppo.make({ ...ppo, gamma: 0.9 }), A2c.make({ hidden, nsteps: 16 })]
      const input = { ...short, normalize: { observations: true, rewards: true } }
      const again = { algorithm: Separate.make({ sheep, wolf }) }
      const { whole, resumed } = yield* resumable({ ...input, algorithm: Separate.make({ wolf, sheep }) }, 200, again)
      assert.strictEqual(resumed.digest, whole.digest)
    }),
  )

  it.effect("or with other settings of updates, but no others", () =>
    Effect.gen(function* () {
      const algorithmOf = (change: object) =>
        Separate.make({ wolf: Ppo.make({ ...ppo, ...change }), sheep: A2c.make({ hidden, nsteps: 16 }) })
      const again = (change: object) =>
        resumable({ ...short, algorithm: algorithmOf({}) }, 200, { algorithm: algorithmOf(change) })
      const { whole, resumed } = yield* again({ learningRate: 0.01 })
      assert.strictEqual(resumed.steps, whole.steps)
      assert.notStrictEqual(resumed.digest, whole.digest)
      const { message } = yield* Effect.flip(again({ hidden: [4] }))
      assert.include(message, "the checkpoint was saved with algorithm.policies.wolf.hidden = [8], found [4]")
    }),
  )
})

describe("a separate policy", () => {
  it.effect("learns from the rows of its own agents alone, and differs from the others", () =>
    Effect.gen(function* () {
      const trained = (other: Parameters<typeof Ppo.make>[0]) =>
        keep({
          env: lines,
          numEnvs: 12,
          algorithm: Separate.make({
            a: Ppo.make(ppo),
            b: Ppo.make({ ...ppo, ...other }),
            c: A2c.make({ hidden, nsteps: 16 }),
          }),
          totalSteps: 768,
          normalize: { observations: true, rewards: true },
        })
      const [first, second] = [yield* trained({}), yield* trained({ learningRate: 0.05, epochs: 1 })]
      assert.isNotEmpty(weightsOf(first, "a"))
      assert.deepStrictEqual(weightsOf(second, "a"), weightsOf(first, "a"))
      assert.deepStrictEqual(weightsOf(second, "c"), weightsOf(first, "c"))
      assert.notDeepEqual(weightsOf(second, "b"), weightsOf(first, "b"))
      // The policies a and b have equal settings, but their first weights and actions are drawn by their names.
      const [a, b] = ["a", "b"].map((name) => weightsOf(first, name).map(([, { data }]) => data))
      assert.notDeepEqual(a, b)
    }),
  )

  it.effect("has its score in each validation, and metrics with its name", () =>
    Effect.gen(function* () {
      const { events } = yield* keep({ ...short, validation: { everySteps: 512, episodes: 10 } })
      const validation = events.find((event) => event._tag === "ValidationEnded")
      assert.deepStrictEqual(
        validation?.episodes.map(({ agent }) => agent),
        Array.from({ length: 10 }, (_, index) => ["wolf", "sheep"][index % 2]),
      )
      const update = events.findLast((event) => event._tag === "UpdateApplied")
      assert.containsAllKeys(update?.metrics ?? {}, ["losses/policy_loss/wolf", "losses/policy_loss/sheep"])
    }),
  )
})

describe("Policy.load", () => {
  it.effect("takes the name of a separate policy", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(import.meta.dirname, "../../..", ".tmp-"))),
        (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true })),
      )
      const store = RunStore.layerFileSystem({ resultsDir: folder, time: new Date(0), commit: "no-hash" })
      const validation = { everySteps: 512, episodes: 4 }
      const { runDir } = yield* Train.run({
        ...short,
        // Not the order of the agents: each file has the statistics of its own policy.
        algorithm: Separate.make({ sheep: A2c.make({ hidden, nsteps: 16 }), wolf: Ppo.make(ppo) }),
        normalize: { observations: true },
        validation,
        render: { everySteps: 512 },
      }).pipe(Effect.provide(store))
      const wolf = yield* Policy.load(runDir, { policy: "wolf" })
      const sheep = yield* Policy.load(runDir, { policy: "sheep" })
      assert.deepStrictEqual([wolf.env, wolf.actionSpace], ["hunt", hunt.actionSpace])
      assert.deepStrictEqual([wolf.algorithm, sheep.algorithm], ["ppo", "a2c"])
      const [step] = readdirSync(join(runDir, "steps"))
      const rendered = yield* Policy.load(join(runDir, "steps", step), { policy: "sheep" })
      const places = Array.from({ length: 30 }, (_, at) => [at / 30, 0.5 - at / 60, 0.3 - at / 40, at / 50])
      assert.deepStrictEqual(yield* rendered.actAll(places), yield* sheep.actAll(places))
      // A trajectory has the actions of both, and what the wolf observed, without the normalisation.
      const trajectories = gunzipSync(readFileSync(join(runDir, "steps", step, "trajectories.json.gz"))).toString()
      const [{ trajectory }] = JSON.parse(trajectories)
      assert.isAbove(trajectory.length, 1)
      for (const { observation, action } of trajectory)
        assert.strictEqual((yield* wolf.act(observation)).action, action[0])
      // As an opponent, it plays its agent.
      const against = MultiEnv.against(hunt, { sheep }, { as: "wolf" })
      yield* keep({ env: against, numEnvs: 2, algorithm: Ppo.make(ppo), totalSteps: 32 })
      // A training can begin with the weights of one of them.
      const weightsAt = (run: string, at: number) => {
        const name = `step_${String(at).padStart(15, "0")}`
        return safetensors.decode(readFileSync(join(run, "checkpoints", name, "weights.safetensors")))
      }
      const start = { from: runDir, weights: ["wolf"] }
      const later = RunStore.layerFileSystem({ resultsDir: folder, time: new Date(1e6), commit: "no-hash" })
      const begun = yield* Train.run({
        ...short,
        seed: 2,
        normalize: { observations: true },
        start,
        checkpoint: { onStart: true, strategy: { _tag: "LastN", keep: 0 } },
      }).pipe(Effect.provide(later))
      const [before, after] = [weightsAt(runDir, 512), weightsAt(begun.runDir, 0)]
      assert.isAbove(Object.keys(before).length, 4)
      for (const [key, { data }] of Object.entries(before)) {
        // Biases begin with zeros in each run.
        if (key.startsWith("wolf.")) assert.deepStrictEqual(after[key].data, data)
        else if (after[key].data.some((number) => number !== 0)) assert.notDeepEqual(after[key].data, data)
      }
      const { message } = yield* Effect.flip(Policy.load(runDir))
      assert.include(message, "it has separate policies: set the option policy to sheep or wolf")
      const inStep = yield* Effect.flip(Policy.load(join(runDir, "steps", step)))
      assert.include(inStep.message, "it has separate policies: set the option policy to sheep or wolf")
      const file = join(runDir, "steps", step, "checkpoint.wolf.onnx")
      const other = yield* Effect.flip(Policy.load(file, { policy: "sheep" }))
      assert.include(other.message, 'expected the folder of a run to choose policy "sheep" from, found one policy')
      const unknown = yield* Effect.flip(Policy.load(runDir, { policy: "fox" }))
      assert.include(unknown.message, "no policy.fox.onnx; it has separate policies")
    }).pipe(Effect.scoped, Effect.provide(Layer.mergeAll(Wasm.layer, NodeServices.layer, Recorder.layerSilent))),
  )
})

describe("a config of separate policies", () => {
  it.effect("trains the same as code", () =>
    Effect.gen(function* () {
      const { result } = yield* keep(short)
      const policies = [
        { policy: "wolf", name: "ppo", hidden, nsteps: 16, minibatches: 2 },
        { policy: "sheep", agents: ["sheep"], name: "a2c", hidden, nsteps: 16 },
      ]
      const fromConfig = (changed: ReadonlyArray<object>) => {
        const overrides = [{ path: "algorithm", value: { name: "separate", policies: changed }, source: "conf.yaml" }]
        return keep({ ...short, algorithm: "separate" }).pipe(
          Effect.provideService(RunOptions, { overrides, source: "test", name: "run" }),
        )
      }
      assert.strictEqual((yield* fromConfig(policies)).result.digest, result.digest)
      const ofPolicy = [{ path: "algorithm.policies.0.clip", value: -1, source: "--set" }]
      const wrong = yield* Effect.flip(
        keep(short).pipe(Effect.provideService(RunOptions, { overrides: ofPolicy, source: "test", name: "run" })),
      )
      assert.include(wrong.message, "--set: algorithm.policies.0.clip: expected a value greater than 0, found -1")
      const [wolf, sheep] = policies
      const unknown = yield* Effect.flip(fromConfig([wolf, { ...sheep, name: "a3c" }]))
      assert.include(
        unknown.message,
        'conf.yaml: algorithm.policies.1.name: unknown algorithm "a3c"; did you mean "a2c"?',
      )
      const misspelt = yield* Effect.flip(fromConfig([wolf, { ...sheep, gama: 0.9 }]))
      assert.include(
        misspelt.message,
        'conf.yaml: unknown key "algorithm.policies.1.gama"; did you mean "algorithm.policies.1.gamma"?',
      )
      assert.include((yield* Effect.flip(fromConfig([wolf, wolf]))).message, 'two policies are called "wolf"')
    }),
  )

  for (const [what, algorithm, expected] of [
    ["an agent without a policy", { wolf: Ppo.make(ppo) }, /the agent "sheep" has no policy/],
    [
      "an agent that the game has not",
      { wolf: Ppo.make(ppo), sheep: Ppo.make(ppo), fox: Ppo.make(ppo) },
      /"fox" is no agent of the game; its agents are wolf, sheep/,
    ],
    [
      "two policies of an agent",
      { wolf: Ppo.make(ppo), both: { agents: ["wolf", "sheep"], algorithm: Ppo.make(ppo) } },
      /the agent "wolf" has two policies/,
    ],
    [
      "rollouts of different lengths",
      { wolf: Ppo.make(ppo), sheep: Ppo.make({ ...ppo, nsteps: 32 }) },
      /algorithm.policies: expected rollouts of equally many steps, found 16 of wolf, 32 of sheep; set nsteps/,
    ],
    [
      "an algorithm that searches",
      { wolf: Ppo.make(ppo), sheep: AlphaZero.make() },
      /algorithm\.policies\.1: alpha-zero/,
    ],
    [
      "an algorithm that plays whole episodes",
      { wolf: Ppo.make(ppo), sheep: Es.make() },
      /algorithm\.policies\.1\.name: the algorithm of "sheep" plays no rollouts of a fixed number of steps/,
    ],
    [
      "a wrong setting",
      { wolf: Ppo.make(ppo), sheep: Ppo.make({ clip: -1 }) },
      /algorithm\.policies\.1\.clip: expected a value greater than 0, found -1/,
    ],
    [
      "settings that do not fit each other",
      { wolf: Ppo.make({ ...ppo, minibatches: 3 }), sheep: Ppo.make(ppo) },
      /algorithm\.policies\.0\.minibatches: expected a divisor/,
    ],
    [
      "a name that is no file's",
      { "the wolf": Ppo.make(ppo), sheep: Ppo.make(ppo) },
      /policies\.0\.policy: expected a name of letters/,
    ],
  ] as const) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(keep({ ...short, algorithm: Separate.make(algorithm) }))
        assert.strictEqual(error._tag, "ConfigError")
        assert.match(error.message, expected)
      }),
    )
  }

  it.effect("refuses envs of one agent, parts of games and validations of one agent", () =>
    Effect.gen(function* () {
      const messageOf = (change: object) =>
        Effect.map(Effect.flip(keep({ ...short, ...change })), ({ message }) => message)
      assert.include(yield* messageOf({ env: CartPole.env }), "separate policies need a game of several agents")
      assert.include(yield* messageOf({ numEnvs: 7 }), "num_envs: the game has a row for each of its 2 agents")
      assert.include(
        yield* messageOf({ validation: { everySteps: 128, episodes: 7 } }),
        "validation.episodes: expected a multiple of 2, because each of the 2 agents of hunt has an episode in each game; found 7",
      )
      const envs = [MultiEnv.against(hunt, "random", { as: "wolf" })]
      assert.include(yield* messageOf({ validation: { everySteps: 128, envs } }), "validation.envs: expected games")
    }),
  )

  it.effect("ends a training in which a learner would restore the games for itself", () =>
    Effect.gen(function* () {
      const trained = (initObsSteps: number) => {
        const rnd = Rnd.make({ hidden, nsteps: 16, minibatches: 2, initObsSteps })
        return keep({ ...short, algorithm: Separate.make({ wolf: Ppo.make(ppo), sheep: rnd }) })
      }
      const { message } = yield* Effect.flip(trained(4))
      assert.include(message, "the policy sheep has only some rows of the games, so it cannot save the games")
      assert.strictEqual((yield* trained(0)).result.steps, 512)
    }),
  )
})

describe("the score of a game", () => {
  const validated = { ...short, validation: { everySteps: 256, episodes: 8, sampled: true } }
  const best = { strategy: { _tag: "TopKValidation", keep: 1 } } as const

  it.effect("is reported for each agent, and warns where it is always 0", () =>
    Effect.gen(function* () {
      const { result, events, files } = yield* keep({ ...validated, checkpoint: best })
      const { meanReturn = 1, agents = [], episodes } = result.validation ?? {}
      assert.deepStrictEqual(
        agents.map(({ agent }) => agent),
        ["wolf", "sheep"],
      )
      const [wolf, sheep] = agents
      assert.isAbove(Math.abs(wolf.meanReturn), 0.01)
      assert.closeTo(wolf.meanReturn, -sheep.meanReturn, 1e-6)
      assert.closeTo(meanReturn, 0, 1e-6)
      assert.strictEqual(episodes, 8)
      const [, last] = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(ReturnFile))(
        new TextDecoder().decode(files.get("return.json")),
      )
      assert.deepStrictEqual(
        last.agents,
        agents.map((one) => ({ agent: one.agent, returns_mean: one.meanReturn })),
      )
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? event.message : []))
      assert.strictEqual(warnings.length, 1)
      assert.match(warnings[0], /mean return of all agents is 0.*name the agents that count in validation\.agents/)
      // Nothing depends on the score of a training that keeps the newest checkpoints.
      assert.isFalse((yield* keep(validated)).events.some((event) => event._tag === "Warning"))
    }),
  )

  it.effect("warns only where each game has the sum 0, not if several cancel each other", () =>
    Effect.gen(function* () {
      const warned = (rewards: (first: number) => ReadonlyArray<number>) =>
        Effect.gen(function* () {
          const env = MultiEnv.parallel({
            id: "turns",
            agents: ["a", "b"],
            observationSpace: box(-1, 1, [1]),
            actionSpace: discrete(2),
            maxSteps: 3,
            // Half of the games of a validation begin with 1.
            reset: (rng): number => (rng.uniform() < 0.5 ? 1 : -1),
            observe: (first) => [first],
            step: (first) => ({ state: first, rewards: rewards(first), terminated: true }),
          })
          const { events, result } = yield* keep({
            ...validated,
            env,
            algorithm: Ppo.make(ppo),
            totalSteps: 256,
            validation: { everySteps: 256, episodes: 8 },
            stopAtReturn: 2,
          })
          assert.strictEqual(result.validation?.meanReturn, 0)
          return events.some((event) => event._tag === "Warning")
        })
      assert.isTrue(yield* warned((first) => [first, -first]))
      assert.isFalse(yield* warned((first) => [first, first]))
    }),
  )

  it.effect("is that of the agents that count, by which checkpoints are kept and the training ends", () =>
    Effect.gen(function* () {
      const validation = { ...validated.validation, agents: ["wolf"] }
      const { result, events, files } = yield* keep({ ...validated, validation, checkpoint: best, stopAtReturn: 2 })
      const scores = events.flatMap((event) => {
        if (event._tag !== "ValidationEnded") return []
        assert.strictEqual(event.episodes.length, 8)
        assert.isTrue(event.episodes.every(({ agent, counts = true }) => counts === (agent === "wolf")))
        return event.meanReturn
      })
      assert.strictEqual(scores.length, 2)
      const { meanReturn, agents = [], episodes } = result.validation ?? {}
      assert.strictEqual(episodes, 4)
      assert.strictEqual(meanReturn, scores[1])
      assert.strictEqual(meanReturn, agents.find(({ agent }) => agent === "wolf")?.meanReturn)
      const manifests = [...files].flatMap(([path, bytes]) =>
        path.endsWith("/manifest.json") ? [JSON.parse(new TextDecoder().decode(bytes)).score] : [],
      )
      assert.include(manifests, Math.max(...scores))
      assert.isFalse(events.some((event) => event._tag === "Warning"))
      const reached = yield* keep({ ...validated, validation, stopAtReturn: scores[0] })
      assert.strictEqual(reached.result.steps, 256)
    }),
  )

  it.effect("names only agents of the games that are played", () =>
    Effect.gen(function* () {
      const problem = (input: Pick<Parameters<typeof keep>[0], "validation">) =>
        Effect.map(Effect.flip(keep({ ...short, ...input })), ({ message }) => message)
      assert.strictEqual(
        yield* problem({ validation: { agents: ["fox"] } }),
        "Train.run: validation.agents: expected agents of hunt, which are wolf, sheep; found fox",
      )
      const alone = {
        ...short,
        algorithm: Ppo.make(ppo),
        validation: { envs: [MultiEnv.against(hunt)], agents: ["wolf"] },
      }
      assert.match(
        (yield* Effect.flip(keep(alone))).message,
        /validation\.agents: expected none with .*, which has one agent; found wolf$/,
      )
    }),
  )
})
