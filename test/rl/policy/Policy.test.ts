import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CartPole, Env, Pendulum, Policy, Ppo, Rng, RunStore, Space, Train, Wasm } from "../../../src/index.ts"
import { sizeOf } from "../../../src/rl/env/Space.ts"
import { aboutText } from "../../../src/rl/policy/about.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { policyCases } from "../export/policyCases.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

const observationsOf = (size: number, count = 30): ReadonlyArray<ReadonlyArray<number>> => {
  const random = Rng.stream(8)
  return Array.from({ length: count }, () => Array.from({ length: size }, () => Math.fround(random.normal())))
}

describe("a policy that was loaded from its ONNX file acts as it does in the training", () => {
  for (const [at, [env, algorithm]] of policyCases.entries()) {
    it.effect(
      `of ${algorithm.name} in ${env.id} with ${JSON.stringify(algorithm.input)}`,
      () =>
        Effect.gen(function* () {
          const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
          const { observationSpace, actionSpace, id } = env
          const learner = yield* learnerOf(configured, {
            observationSpace,
            actionSpace,
            numEnvs: 2,
            totalSteps: 100,
            seed: 5,
            model: env,
          })
          const about = {
            env: id,
            algorithm: algorithm.name,
            step: 7,
            observationSpace,
            actionSpace,
            hasActionMask: false,
          }
          const bytes = yield* learner.exportPolicy?.(undefined, aboutText(about)) ?? Effect.die("no export")
          const observations = observationsOf(sizeOf(observationSpace))

          const inTraining = yield* learner.policy?.(1) ?? Effect.die("no policy")
          yield* inTraining.refresh
          const policy = yield* Policy.fromOnnx(bytes)
          let state: Policy.PolicyState = undefined
          for (const observation of observations) {
            inTraining.observations.set(observation)
            yield* inTraining.program.run
            const acted: Policy.PolicyAction = yield* policy.act(observation, state)
            state = acted.state
            for (const [at, value] of [acted.action].flat().entries())
              assert.closeTo(value, inTraining.actions[at], 1e-5)
          }
          const { act: _act, actAll: _actAll, stateSize, ...readable } = policy
          assert.deepStrictEqual(readable, about)
          // A file whose description is of another env is refused, not read beyond its arrays.
          const wider = { ...about, observationSpace: Space.tuple(observationSpace, Space.discrete(2)) }
          const foreign = yield* learner.exportPolicy?.(undefined, aboutText(wider)) ?? Effect.die("no export")
          const size = sizeOf(observationSpace)
          assert.strictEqual(
            (yield* Effect.flip(Policy.fromOnnx(foreign))).message,
            `policy.onnx: expected a program that reads ${size + 1} numbers, found ${size}`,
          )
          assert.strictEqual(state === undefined ? 0 : state.length, stateSize)

          // Sampled actions are in the space; the same seed draws the same ones, and a batch draws as single calls do.
          const sampled = yield* Policy.fromOnnx(bytes, { sampled: true, seed: 3 })
          const again = yield* Policy.fromOnnx(bytes, { sampled: true, seed: 3 })
          const drawn = yield* Effect.forEach(observations, (observation) => sampled.act(observation))
          assert.deepStrictEqual(yield* again.actAll(observations), drawn)
          for (const { action } of drawn) assert.isTrue(Space.contains(actionSpace, action))
          const greedy = yield* policy.actAll(observations)
          if (!["es", "dqn", "ddqn"].includes(algorithm.name)) assert.notDeepEqual(drawn, greedy)
        }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
      { tags: at % 2 === 0 ? [] : "slow" },
    )
  }
})

/** An env that is made in code, whose observations have very different sizes. */
const uneven = Env.make({
  id: "uneven",
  observationSpace: Space.box([-Infinity, 0], [Infinity, 1000]),
  actionSpace: Space.discrete(3),
  maxSteps: 20,
  reset: (random) => ({ at: random.integer(10) }),
  observe: ({ at }) => [at * 1e-3, at * 100],
  step: ({ at }, action) => ({ state: { at: (at + action) % 10 }, reward: action, terminated: false }),
})

const inFolder = <A, E>(body: (folder: string) => Effect.Effect<A, E, Layer.Success<typeof layers>>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(import.meta.dirname, "../../..", ".tmp-"))),
    body,
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
  ).pipe(Effect.provide(layers))

const layers = Layer.mergeAll(Wasm.layer, NodeServices.layer, Recorder.layerSilent)

const trained = (folder: string, input: Partial<Parameters<typeof Train.run>[0]> = {}) =>
  Train.run({
    env: uneven,
    numEnvs: 2,
    algorithm: Ppo.make({ hidden: [8], nsteps: 16, lstm: 4, minibatches: 1 }),
    totalSteps: 96,
    normalize: { observations: true },
    validation: { everySteps: 32, episodes: 2 },
    render: { everySteps: 32 },
    checkpoint: { everySteps: 32, strategy: { _tag: "LastN", keep: 0 } },
    ...input,
  }).pipe(
    Effect.provide(
      RunStore.layerFileSystem({ resultsDir: join(folder, "results"), time: new Date(0), commit: "no-hash" }),
    ),
  )

describe("Policy.load", () => {
  it.effect("loads from a run, a checkpoint, `latest`, a step folder or a file, without the env", () =>
    inFolder((folder) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { runDir } = yield* trained(folder)
          const policy = yield* Policy.load(runDir)
          assert.deepStrictEqual(
            [policy.env, policy.algorithm, policy.step, policy.stateSize, policy.actionSpace],
            ["uneven", "ppo", 96, 16, uneven.actionSpace],
          )
          assert.deepStrictEqual(policy.observationSpace, uneven.observationSpace)
          const first = yield* policy.act([0.003, 300])
          const { state = [] } = first
          assert.isTrue(state.some((number) => number !== 0))
          const second = yield* policy.act([0.003, 300], state)
          assert.notDeepEqual(second.state, first.state)

          const checkpoint = join(runDir, "checkpoints", "step_000000000000096")
          copyFileSync(join(checkpoint, "policy.onnx"), join(folder, "mine.onnx"))
          const [step = ""] = readdirSync(join(runDir, "steps")).slice(-1)
          for (const path of [
            checkpoint,
            `${checkpoint}/`,
            join(runDir, "checkpoints", "latest"),
            join(runDir, "steps", step),
            join(folder, "mine.onnx"),
          ]) {
            const same = yield* Policy.load(path)
            assert.deepStrictEqual([yield* same.act([0.003, 300]), same.step], [first, 96], path)
            const { message } = yield* Effect.flip(Policy.load(path, { checkpoint: "best" }))
            assert.include(message, 'expected the folder of a run to choose checkpoint "best" from, found one policy')
          }
          const earlier = yield* Policy.load(runDir, { checkpoint: "step_000000000000032" })
          assert.strictEqual(earlier.step, 32)
          assert.notDeepEqual((yield* earlier.act([0.003, 300])).state, first.state)
        }),
      ),
    ),
  )

  it.effect("takes the best checkpoint by its validation score", () =>
    inFolder((folder) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { runDir } = yield* trained(folder)
          const scoreAt = (step: string): number => {
            const { score } = JSON.parse(readFileSync(join(runDir, "checkpoints", step, "manifest.json"), "utf8"))
            return score
          }
          const steps = readdirSync(join(runDir, "checkpoints")).filter((name) => /^step_\d+$/.test(name))
          assert.isAbove(steps.length, 2)
          const most = Math.max(...steps.map(scoreAt))
          const { step } = yield* Policy.load(runDir, { checkpoint: "best" })
          assert.strictEqual(scoreAt(`step_${String(step).padStart(15, "0")}`), most)
        }),
      ),
    ),
  )

  it.effect("refuses what is no policy, naming the file and the problem", () =>
    inFolder((folder) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { runDir } = yield* trained(folder)
          const checkpoint = join(runDir, "checkpoints", "step_000000000000096")
          writeFileSync(join(checkpoint, "policy.onnx"), "torn")
          writeFileSync(join(folder, "other.onnx"), "no message")
          const refused: ReadonlyArray<readonly [string, string]> = [
            [join(folder, "nothing"), "expected a run, a checkpoint or an ONNX file, found nothing"],
            [folder, "expected the folder of a run (with config.yaml) or of a checkpoint (with manifest.json)"],
            [checkpoint, "policy.onnx: expected"],
            [join(folder, "other.onnx"), "the bytes are no message"],
          ]
          for (const [path, problem] of refused) {
            const error = yield* Effect.flip(Policy.load(path))
            assert.instanceOf(error, Policy.PolicyError)
            assert.include(error.message, problem)
          }
          // As in a resume, a damaged newest checkpoint is passed over.
          assert.strictEqual((yield* Policy.load(runDir)).step, 64)
        }),
      ),
    ),
  )
})

describe("act", () => {
  it.effect("refuses an observation or a state that it cannot read", () =>
    inFolder((folder) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { runDir } = yield* trained(folder, {
            env: CartPole.env,
            algorithm: Ppo.make({ hidden: [8], nsteps: 16 }),
            render: { everySteps: 0 },
          })
          const policy = yield* Policy.load(runDir)
          assert.deepStrictEqual(yield* policy.act([1, 2, 3, 4], null, null), yield* policy.act([1, 2, 3, 4]))
          const refused = [
            [yield* Effect.flip(policy.act([1, 2, 3])), "observation: expected 4 numbers, found 3"],
            [yield* Effect.flip(policy.act([1, NaN, 3, 4])), "observation[1] is NaN, not a finite number"],
            [yield* Effect.flip(policy.act([1, 2, 3, 1e300])), "observation[3] is 1e+300, not a finite number"],
            [yield* Effect.flip(policy.act([1, 2, 3, 4], [0])), "state: the policy has no memory, so it takes none"],
            [yield* Effect.flip(policy.actAll([[1, 2, 3, 4], []])), "at 1: observation: expected 4 numbers, found 0"],
            [
              yield* Effect.flip(policy.act([1, 2, 3, 4], undefined, [1, 1])),
              "mask: the env has no action masks, so it takes none",
            ],
          ] as const
          for (const [error, message] of refused) {
            assert.instanceOf(error, Policy.PolicyError)
            assert.strictEqual(error.message, message)
          }
          const { state } = yield* policy.act([0, 0, 0, 0])
          assert.isUndefined(state)
        }),
      ),
    ),
  )

  it.effect("gives each caller its own action when many act at the same time", () =>
    inFolder((folder) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { runDir } = yield* trained(folder, {
            env: Pendulum.env,
            algorithm: Ppo.make({ hidden: [8], nsteps: 16 }),
            render: { everySteps: 0 },
          })
          const policy = yield* Policy.load(runDir)
          const observations = observationsOf(3, 50)
          const together = yield* Effect.forEach(observations, (one) => policy.act(one), { concurrency: "unbounded" })
          assert.deepStrictEqual(together, yield* policy.actAll(observations))
          assert.isAbove(new Set(together.map(({ action }) => String(action))).size, 40)
        }),
      ),
    ),
  )
})

describe("a policy for observations with parts and action masks", () => {
  it.effect("takes them as the env gives them, and never takes a choice that is not allowed", () =>
    inFolder((folder) =>
      Effect.scoped(
        Effect.gen(function* () {
          const env = Env.make({
            id: "parts",
            observationSpace: Space.dict({ map: Space.box(0, 1, [1, 4, 4]), keys: Space.discrete(3) }),
            actionSpace: Space.discrete(4),
            maxSteps: 10,
            reset: (random) => ({ keys: random.integer(3) }),
            observe: ({ keys }) => ({ map: new Float32Array(16).fill(keys / 3), keys }),
            actionMask: ({ keys }) => [1, 1, keys > 0, 0],
            step: ({ keys }, action) => ({ state: { keys: (keys + action) % 3 }, reward: 1, terminated: false }),
          })
          const { runDir } = yield* trained(folder, {
            env,
            algorithm: Ppo.make({ hidden: [8], nsteps: 16 }),
            render: { everySteps: 0 },
          })
          const policy = yield* Policy.load(runDir, { sampled: true })
          assert.deepStrictEqual(policy.observationSpace, env.observationSpace)
          assert.isTrue(policy.hasActionMask)
          const observation = { map: new Float32Array(16).fill(0.5), keys: 1 }
          const acted = (mask: ReadonlyArray<number> | "all") =>
            Effect.map(
              policy.actAll(
                Array.from({ length: 60 }, () => observation),
                [],
                Array.from({ length: 60 }, () => mask),
              ),
              (all) => [...new Set(all.map(({ action }) => action))].sort(),
            )
          assert.deepStrictEqual(yield* acted("all"), [0, 1, 2, 3])
          assert.deepStrictEqual(yield* acted([0, 1, 0, 1]), [1, 3])
          const refused = [
            [
              yield* Effect.flip(policy.act({ map: new Float32Array(16), keys: 3 }, null, "all")),
              "observation.keys is 3",
            ],
            [
              yield* Effect.flip(policy.act(observation)),
              'mask: expected 4 zeros and ones, a 1 for each choice that the env allows, or "all"; found none',
            ],
            [
              yield* Effect.flip(policy.act(observation, undefined, [1, 0])),
              "mask: expected 4 zeros and ones, found 2",
            ],
            [
              yield* Effect.flip(policy.act(observation, undefined, [0, 0, 0, false])),
              "mask: it forbids all 4 choices; expected at least one that is allowed",
            ],
          ] as const
          for (const [{ message }, expected] of refused) assert.include(message, expected)
        }),
      ),
    ),
  )
})
