import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Curiosity from "../../../src/rl/algorithms/rollouts/Curiosity.ts"
import * as Daac from "../../../src/rl/algorithms/rollouts/Daac.ts"
import * as Randal from "../../../src/rl/algorithms/rollouts/Randal.ts"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as Unreal from "../../../src/rl/algorithms/rollouts/Unreal.ts"
import * as Vin from "../../../src/rl/algorithms/rollouts/Vin.ts"
import * as GridWorld from "../../../src/rl/env/grid/GridWorld.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import * as Bc from "../../../src/rl/algorithms/demonstrations/Bc.ts"
import * as Gail from "../../../src/rl/algorithms/demonstrations/Gail.ts"
import * as Ddqn from "../../../src/rl/algorithms/rollouts/Ddqn.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as Optimisers from "../../../src/tensor/graph/optimisers.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Graph from "../../../src/tensor/graph/ops.ts"
import * as Schedules from "../../../src/tensor/graph/schedules.ts"
import { type Algorithm, define } from "../../../src/rl/learner/Algorithm.ts"
import type { Task } from "../../../src/rl/learner/Learner.ts"
import { actorCritic } from "../../../src/rl/model/ActorCritic.ts"
import * as Demonstrations from "../../../src/rl/learner/Demonstrations.ts"
import * as Learner from "../../../src/rl/learner/public.ts"
import * as Losses from "../../../src/rl/losses/Losses.ts"
import type { Networks } from "../../../src/rl/model/network/layers.ts"
import * as Network from "../../../src/rl/model/network/Network.ts"
import { fromConfig } from "../../../src/rl/train/Train.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import { keep, textOf } from "../train/inMemory.ts"
import { resumable } from "../train/resumable.ts"
import { Layer } from "effect"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { parseYaml } from "../../../src/base/config/yaml.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"

const { dense, tanh } = Network
const small = { nsteps: 16, epochs: 2, minibatches: 2 }
const short = { env: CartPole.env, numEnvs: 2, totalSteps: 128 }
const shown = Demonstrations.record(CartPole.env, { episodes: 2, policy: ([, , angle]) => (angle > 0 ? 1 : 0) })

const train = (algorithm: Algorithm) => keep({ ...short, algorithm })
const digestOf = (algorithm: Algorithm) => Effect.map(train(algorithm), ({ result }) => result.digest)

const cloning = Learner.lossWith(shown, { batchSize: 8 }, function cloning(_, out, shown) {
  const { distribution } = out.evaluate(shown.observations)
  const term = Losses.behaviourCloning(distribution.logProbability(shown.actions))
  return { loss: Graph.add(out.loss, term), metrics: { "losses/cloning": term } }
})

describe("parts of an algorithm that a user replaces", () => {
  it.effect("have the same bits as the built-in ones if they are the same", () =>
    Effect.gen(function* () {
      const layers = [dense(16), tanh, dense(8), tanh]
      const same = [
        Ppo.make({ ...small, hidden: [16, 8] }),
        Ppo.make({ ...small, network: { actor: layers, critic: Network.sequential(layers) } }),
        Ppo.make({ ...small, hidden: [16, 8], optimiser: { name: "adam", epsilon: 1e-5 } }),
        Ppo.make({ ...small, hidden: [16, 8], schedule: Schedules.linear(1) }),
        Ppo.make({ ...small, hidden: [16, 8], loss: (_, out) => out.loss }),
      ]
      const digests = yield* Effect.forEach(same, digestOf)
      assert.deepStrictEqual(new Set(digests).size, 1)
    }),
  )

  it.effect(
    "change what is learned",
    () =>
      Effect.gen(function* () {
        const different = [
          A2c.make({ hidden: [8] }),
          A2c.make({ network: [dense(8), tanh] }),
          A2c.make({ hidden: [8], optimiser: "sgd" }),
          A2c.make({ hidden: [8], optimiser: "muon" }),
          A2c.make({ hidden: [8], optimiser: { name: "adamw", weightDecay: 0.1 } }),
          A2c.make({ hidden: [8], schedule: { type: "cosine", warmUp: 0.5 } }),
          A2c.make({ hidden: [8], schedule: (progress) => 1 - progress ** 2 }),
          A2c.make({
            hidden: [8],
            loss: ({ targets }, out) => Losses.valueLoss({ v_t: out.value, target_t: targets }),
          }),
          A2c.make({ hidden: [8], loss: cloning }),
        ]
        const digests = yield* Effect.forEach(different, digestOf)
        assert.strictEqual(new Set(digests).size, different.length)
      }),
    { tags: "slow" },
  )

  it.effect("resume to the same bits: own layers, losses with data, functions", () =>
    Effect.gen(function* () {
      const doubled = Network.custom("doubled", { apply: (_, x) => Graph.mul(x, 2) })
      const options = { network: [doubled, dense(8), tanh], loss: cloning, optimiser: "adamw" } as const
      for (const algorithm of [
        Ppo.make({ ...small, ...options, schedule: Schedules.cosine(1) }),
        Ppo.make({ ...small, ...options, slices: 2 }),
        A2c.make({ ...options, lstm: 4, nsteps: 8 }),
      ]) {
        const { whole, resumed, stoppedAt } = yield* resumable({ ...short, algorithm }, 64)
        assert.isBelow(stoppedAt, whole.steps)
        assert.strictEqual(resumed.digest, whole.digest)
      }
    }),
  )

  it.effect(
    "are the same for algorithms with a replay buffer, and for cloning",
    () =>
      Effect.gen(function* () {
        const replay = { learningStarts: 32, batchSize: 16, bufferSize: 64 }
        const layers = [dense(8), Network.relu]
        const distribution = { type: "quantiles", count: 5 } as const
        const both = { actor: layers, critic: layers }
        const pendulum = { env: Pendulum.env, numEnvs: 1, totalSteps: 96 }
        const parts = { optimiser: { name: "sgd", momentum: 0.9 }, schedule: { type: "linear", warmUp: 0.1 } } as const
        const cases: ReadonlyArray<readonly [Parameters<typeof keep>[0], ReadonlyArray<Algorithm>]> = [
          [
            { ...pendulum, algorithm: "sac" },
            [
              Sac.make({ ...replay, hidden: [8] }),
              Sac.make({ ...replay, network: both }),
              Sac.make({ ...replay, network: both, ...parts }),
            ],
          ],
          [
            { ...pendulum, algorithm: "td3" },
            [
              Td3.make({ ...replay, hidden: [8] }),
              Td3.make({ ...replay, network: layers }),
              Td3.make({ ...replay, network: layers, ...parts }),
            ],
          ],
          [
            { ...short, algorithm: "dqn" },
            [
              Dqn.make({ ...replay, hidden: [8] }),
              Dqn.make({ ...replay, network: layers }),
              Dqn.make({ ...replay, network: layers, ...parts }),
            ],
          ],
          [
            { ...short, algorithm: "dqn" },
            [
              Dqn.make({ ...replay, distribution, hidden: [8] }),
              Dqn.make({ ...replay, distribution, network: layers }),
              Dqn.make({ ...replay, distribution, network: layers, noisy: true, ...parts }),
            ],
          ],
          [
            { ...short, algorithm: "ddqn" },
            [Ddqn.make({ hidden: [8] }), Ddqn.make({ network: layers }), Ddqn.make({ network: layers, ...parts })],
          ],
          [
            { ...short, algorithm: "bc" },
            [
              Bc.make(shown, { hidden: [8], activation: "relu" }),
              Bc.make(shown, { network: both }),
              Bc.make(shown, { network: both, ...parts }),
            ],
          ],
        ]
        for (const [input, algorithms] of cases) {
          const digests = yield* Effect.forEach(algorithms, (algorithm) =>
            Effect.map(keep({ ...input, algorithm }), ({ result }) => result.digest),
          )
          assert.deepStrictEqual(
            [digests[0] === digests[1], digests[1] === digests[2]],
            [true, false],
            algorithms[0].name,
          )
          const { whole, resumed } = yield* resumable({ ...input, algorithm: algorithms[2] }, 48)
          assert.strictEqual(resumed.digest, whole.digest, algorithms[0].name)
        }
        const nameless = Sac.make({
          ...replay,
          optimiser: ({ size, learningRate }) => Optimisers.adam({ size, learningRate }),
        })
        const { message } = yield* Effect.flip(keep({ ...pendulum, algorithm: nameless }))
        assert.include(message, "algorithm.optimiser: expected states whose names begin with the `name` that it gets")
        const two = yield* Effect.flip(keep({ ...short, algorithm: Dqn.make({ network: both }) }))
        assert.include(
          two.message,
          "algorithm.network: expected one network, found one for an actor and one for a critic",
        )
      }),
    { tags: "slow" },
  )

  it.effect(
    "are losses of all algorithms that extend A2C and PPO, too",
    () =>
      Effect.gen(function* () {
        const maze = { env: KeyDoor.make({ size: 6, maxSteps: 40 }), numEnvs: 2, totalSteps: 128 }
        const rooms = { ...maze, env: GridWorld.make({ size: 6 }) }
        const memory = { hidden: [8], replaySize: 40, replaySteps: 8, cell: 2 }
        type Own = { readonly loss?: Learner.OwnLoss }
        const cases: ReadonlyArray<
          readonly [string, typeof short | typeof maze | typeof rooms, (own: Own) => Algorithm]
        > = [
          ["curiosity", short, (own) => Curiosity.make({ hidden: [8], ...own })],
          ["gail", short, (own) => Gail.make(shown, { hidden: [8], ...small, ...own })],
          ["rnd", short, (own) => Rnd.make({ hidden: [8], ...small, initObsSteps: 4, ...own })],
          ["vin", rooms, (own) => Vin.make({ ...small, planning: { iterations: 2, filters: 2 }, ...own })],
          ["unreal", maze, (own) => Unreal.make({ nsteps: 8, ...memory, ...own })],
          ["randal", maze, (own) => Randal.make({ ...small, initObsSteps: 4, ...memory, ...own })],
        ]
        const steady: Learner.OwnLoss = (_, out) => Graph.add(out.loss, Graph.mean(Graph.square(out.value)))
        for (const [name, input, make] of cases) {
          const digestOf = (own: Own) =>
            Effect.map(keep({ ...input, algorithm: make(own) }), ({ result }) => result.digest)
          const expected = yield* digestOf({})
          assert.strictEqual(yield* digestOf({ loss: (_, out) => out.loss }), expected, name)
          assert.notStrictEqual(yield* digestOf({ loss: steady }), expected, name)
        }
        // The data of the loss come to those of the algorithm.
        for (const [name, input, make] of cases.slice(0, 3)) {
          const { whole, resumed } = yield* resumable({ ...input, algorithm: make({ loss: cloning }) }, 64)
          assert.strictEqual(resumed.digest, whole.digest, name)
          assert.notStrictEqual(whole.digest, yield* digestOf(make({})), name)
        }
      }),
    { tags: "slow" },
  )

  it.effect(
    "are networks of all algorithms that extend A2C and PPO, too",
    () =>
      Effect.gen(function* () {
        const maze = { env: KeyDoor.make({ size: 6, maxSteps: 40 }), numEnvs: 2, totalSteps: 128 }
        const vectors = (size: number) => ({ network: { actor: [dense(size), tanh], critic: [dense(size), tanh] } })
        // The critic's features differ from the actor's in number.
        const uneven = { network: { actor: [dense(8), tanh], critic: [dense(5), tanh] } }
        const images = (size: number) => ({ network: [Network.flatten, dense(size), Network.relu] })
        const unevenImages = { network: { actor: images(8).network, critic: images(5).network } }
        const memory = { replaySize: 40, replaySteps: 8, cell: 2, convolutions: [] }
        type Parts = { readonly network?: Networks; readonly hidden?: ReadonlyArray<number> }
        const cases: ReadonlyArray<
          readonly [string, typeof short | typeof maze, (parts: Parts) => Algorithm, Array<Parts>]
        > = [
          ["ppo", short, (parts) => Ppo.make({ hidden: [8], ...small, ...parts }), [vectors(8), uneven]],
          ["curiosity", short, (parts) => Curiosity.make({ hidden: [8], ...parts }), [vectors(8), uneven]],
          [
            "rnd",
            short,
            (parts) => Rnd.make({ hidden: [8], ...small, initObsSteps: 4, ...parts }),
            [vectors(8), uneven],
          ],
          [
            "daac",
            short,
            (parts) => Daac.make({ hidden: [8], ...small, ...parts }),
            // One network serves both, each with its own weights.
            [vectors(8), uneven, { network: [dense(8), tanh] }],
          ],
          [
            "unreal",
            maze,
            (parts) => Unreal.make({ hidden: [8], nsteps: 8, ...memory, ...parts }),
            [images(8), unevenImages],
          ],
          [
            "randal",
            maze,
            (parts) => Randal.make({ hidden: [8], ...small, initObsSteps: 4, ...memory, ...parts }),
            [images(8), unevenImages],
          ],
        ]
        for (const [name, input, make, [same, other, also]] of cases) {
          const digestOf = (parts: Parts) =>
            Effect.map(keep({ ...input, algorithm: make(parts) }), ({ result }) => result.digest)
          const expected = yield* digestOf({})
          assert.strictEqual(yield* digestOf(same), expected, name)
          if (also !== undefined) assert.strictEqual(yield* digestOf(also), expected, name)
          const { whole, resumed, stoppedAt } = yield* resumable({ ...input, algorithm: make(other) }, 64)
          assert.isBelow(stoppedAt, whole.steps)
          assert.notStrictEqual(whole.digest, expected, name)
          assert.strictEqual(resumed.digest, whole.digest, name)
        }
      }),
    { tags: "slow" },
  )

  it.effect(
    "leave the KL limit to the algorithm's divergence, also if a metric of theirs has its name",
    () =>
      Effect.gen(function* () {
        const none = { metrics: { "losses/approx_kl": Graph.constant(0) } }
        const much = { metrics: { "losses/approx_kl": Graph.constant(100) } }
        for (const slices of [1, 2]) {
          const digest = (targetKl: number | null, own: object) =>
            digestOf(
              Ppo.make({
                ...small,
                slices,
                targetKl,
                learningRate: 0.01,
                loss: (_, { loss }) => ({ loss, metrics: {}, ...own }),
              }),
            )
          const limited = yield* digest(0.001, {})
          assert.notStrictEqual(limited, yield* digest(null, {}))
          assert.strictEqual(yield* digest(0.001, none), limited)
          assert.strictEqual(yield* digest(0.001, much), limited)
        }
      }),
    { tags: "slow" },
  )

  it.effect("standardise over the whole minibatch, of which they get a slice", () =>
    Effect.gen(function* () {
      for (const slices of [1, 2, 4]) {
        const loss: Learner.OwnLoss = ({ advantages }, out) => {
          const square = Graph.mean(Graph.square(out.standardised(advantages)))
          return { loss: out.loss, metrics: { "losses/square": square } }
        }
        const { events } = yield* train(Ppo.make({ ...small, slices, loss }))
        const squares = events.flatMap((event) => ("metrics" in event ? [event.metrics["losses/square"]] : []))
        assert.isNotEmpty(squares)
        // The 16 rows of a minibatch have a variance of 1, which divides by 15.
        for (const square of squares) assert.closeTo(square, 15 / 16, 1e-5)
      }
    }),
  )

  it.effect("can be demonstrations beside rewards, which are normalised", () =>
    Effect.gen(function* () {
      const config = Ppo.PpoConfig
      const setup = Effect.fnUntraced(function* (settings: Ppo.PpoConfig, task: Task) {
        const network = yield* Learner.build(() => actorCritic({ ...task, ...settings }))
        const returns = { gamma: settings.gamma, lambda: settings.lambda }
        const plain = Learner.experience({ name: "shown", task, actor: network, steps: settings.nsteps, returns })
        const resolved = Learner.resolved(settings)
        return Learner.rolloutLearner(Learner.withDemonstrations(plain, shown), {
          learningRate: Learner.learningRateOf(resolved),
          phases: [
            Ppo.ppoPhase(resolved, ({ batch, weights, standardised }) => {
              const { loss, metrics } = Ppo.ppoLoss(
                resolved,
                batch,
                network.evaluate(weights, batch.observations),
                standardised,
              )
              const { distribution } = network.evaluate(weights, batch.shownObservations)
              const cloning = Losses.behaviourCloning(distribution.logProbability(batch.shownActions))
              return { loss: Graph.add(loss, cloning), metrics }
            }),
          ],
        })
      })
      const algorithm = define({ name: "shown", config, setup }).make(small)
      const { result } = yield* keep({ ...short, algorithm, normalize: { rewards: true } })
      assert.strictEqual(result.steps, short.totalSteps)
    }),
  )

  it.effect("stand in the config: as data, which makes the same training, or as the name of code", () =>
    Effect.gen(function* () {
      const network = [dense(8), Network.residual([Network.norm, tanh])]
      const optimiser = { name: "sgd", momentum: 0.9 } as const
      const algorithm = Ppo.make({ ...small, network, optimiser, schedule: { type: "linear", end: 0.5 } })
      const made = yield* train(algorithm)
      const parsed = parseYaml(textOf(made, "config.yaml"))
      const again = yield* fromConfig("value" in parsed ? parsed.value : {}).pipe(
        Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.layerMemory, Recorder.layerSilent)),
      )
      assert.strictEqual(again.digest, made.result.digest)

      const halved = Network.custom("halved", { apply: (_, x) => Graph.mul(x, 0.5) })
      const coded = Ppo.make({ ...small, network: [halved], loss: cloning, schedule: Schedules.linear(1) })
      const files = yield* train(coded)
      const config = textOf(files, "config.yaml")
      assert.include(config, "network:\n    - type: custom\n      name: halved\n")
      assert.include(config, "loss:\n    code: cloning\n")
      const parsedCode = parseYaml(config)
      const absent = yield* fromConfig("value" in parsedCode ? parsedCode.value : {}).pipe(
        Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.layerMemory, Recorder.layerSilent)),
        Effect.flip,
      )
      assert.match(absent.message, /algorithm\.\w+: (the layer )?"\w+" is made in code, by the program of the run/)
    }),
  )

  it.effect("are refused before anything is written if they do not fit", () =>
    Effect.gen(function* () {
      const problemOf = (algorithm: Algorithm) => Effect.map(Effect.flip(train(algorithm)), ({ message }) => message)
      const vector = yield* problemOf(Ppo.make({ ...small, loss: (_, out) => out.value }))
      assert.strictEqual(
        vector,
        "algorithm.loss: expected a scalar, such as Graph.mean(…) of the rows, found f32 of shape [16]",
      )
      const expected = "expected a scalar, such as Graph.mean(…) of the rows, found"
      // A program in JavaScript may return anything.
      for (const [json, found] of [
        ["null", "algorithm.loss: EXPECTED null"],
        ["3", "algorithm.loss: EXPECTED 3"],
        ['{ "loss": 3 }', "algorithm.loss: EXPECTED 3"],
      ]) {
        const loss = () => JSON.parse(json)
        assert.strictEqual(yield* problemOf(Ppo.make({ ...small, loss })), found.replace("EXPECTED", expected))
      }
      const rows = yield* problemOf(
        Ppo.make({ ...small, loss: (_, { loss, value }) => ({ loss, metrics: { "losses/value": value } }) }),
      )
      assert.strictEqual(rows, `algorithm.loss: losses/value: ${expected} f32 of shape [16]`)
      const throwing = yield* problemOf(
        A2c.make({
          loss: () => {
            throw new TypeError("x is undefined")
          },
        }),
      )
      assert.strictEqual(throwing, "algorithm.loss: x is undefined")
      const one = Network.custom("one", { apply: (_, x) => x })
      const other = Network.custom("one", { apply: (_, x) => Graph.neg(x) })
      assert.include(yield* problemOf(Ppo.make({ network: [one, other] })), 'two layers are called "one"')
      const named = yield* Effect.flip(
        Effect.provideService(train(Ppo.make(small)), RunOptions, {
          overrides: [{ path: "algorithm.network", value: [{ type: "dens" }], source: "--set" }],
          source: "train.ts",
          name: "run",
        }),
      )
      assert.include(named.message, "--set: algorithm.network.0: expected a layer, whose type is one of dense, ")
    }),
  )
})
