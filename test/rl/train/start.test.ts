import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { parse } from "yaml"
import {
  A2c,
  CartPole,
  Dqn,
  Es,
  Pendulum,
  Ppo,
  Recorder,
  RunStore,
  Sac,
  Td3,
  Train,
  Wasm,
  Wrapper,
} from "../../../src/index.ts"
import * as safetensors from "../../../src/base/formats/safetensors.ts"
import type { Sink } from "../../../src/run/record/Recorder.ts"
import { FindRun } from "../../../src/run/FindRun.ts"

type Input = Parameters<typeof Train.run>[0]

/** A store in memory for several runs, with the notes and warnings of the newest. */
const house = () => {
  const store = RunStore.memory()
  const messages: Array<string> = []
  const sink: Sink = () =>
    Effect.succeed({
      emit: (events) =>
        Effect.sync(() => {
          for (const event of events) {
            if (event._tag === "Note" || event._tag === "Warning") messages.push(event.message)
          }
        }),
      flush: Effect.void,
    })
  const layers = (layer = store.layer) => Layer.mergeAll(Wasm.layer, layer, Recorder.layer(sink))
  const train = (input: Input, resume?: string) =>
    Effect.suspend(() => {
      messages.length = 0
      const layer = resume === undefined ? store.layer : RunStore.memory({ files: store.files, resume }).layer
      return Train.run(input).pipe(Effect.provide(layers(layer)))
    })
  const arraysOf = (run: string, file: string, name = "latest"): safetensors.TensorEntries => {
    const decoder = new TextDecoder()
    const at = name === "latest" ? decoder.decode(store.files.get(`${run}/checkpoints/latest`)) : name
    return safetensors.decode(store.files.get(`${run}/checkpoints/${at}/${file}.safetensors`) ?? new Uint8Array(0))
  }
  const configOf = (run: string) => parse(new TextDecoder().decode(store.files.get(`${run}/config.yaml`)))
  return { ...store, train, messages, arraysOf, configOf }
}

const hidden = [8]
const ppo = Ppo.make({ hidden, nsteps: 16, minibatches: 2 })
const first: Input = { env: CartPole.env, numEnvs: 2, algorithm: ppo, totalSteps: 64, seed: 3 }
/** A training that saves the weights that it begins with. */
const saving = { checkpoint: { onStart: true, strategy: { _tag: "LastN", keep: 0 } } } as const
const beginning = "step_000000000000000"

describe("start.from", () => {
  it.effect("begins with the weights of another run, with other envs, settings and numEnvs", () =>
    Effect.gen(function* () {
      const { train, arraysOf, configOf, messages } = house()
      const { runDir } = yield* train(first)
      const other: Input = {
        ...saving,
        env: Wrapper.timeLimit(CartPole.env, 30),
        numEnvs: 4,
        algorithm: Ppo.make({ hidden, nsteps: 8, learningRate: 1e-5 }),
        totalSteps: 32,
        start: { from: runDir },
      }
      const second = yield* train(other)
      assert.deepStrictEqual(arraysOf(second.runDir, "weights", beginning), arraysOf(runDir, "weights"))
      const from = `${runDir}/checkpoints/step_000000000000064`
      assert.deepStrictEqual(configOf(second.runDir).start, { from, weights: "all" })
      assert.include(messages, `started with all weights of ${from}`)
      // The config that the run saved repeats it.
      const again = yield* train({ ...other, start: { from } })
      assert.strictEqual(again.digest, second.digest)
      const scratch = yield* train({ ...other, start: null })
      assert.notStrictEqual(scratch.digest, second.digest)
    }),
  )

  it.effect("takes only some parts of the network", () =>
    Effect.gen(function* () {
      const { train, arraysOf } = house()
      const { runDir } = yield* train(first)
      const wider = { ...first, ...saving, start: { from: runDir, weights: ["actor"] } }
      const second = yield* train({ ...wider, seed: 4 })
      const [theirs, ours] = [arraysOf(runDir, "weights"), arraysOf(second.runDir, "weights", beginning)]
      for (const [name, { data }] of Object.entries(ours))
        assert.strictEqual(data.join() === theirs[name].data.join(), name.startsWith("actor."), name)
    }),
  )

  for (const [env, algorithm] of [
    [CartPole.env, Dqn.make({ hidden, bufferSize: 200, learningStarts: 40 })],
    [Pendulum.env, Sac.make({ hidden, bufferSize: 300, learningStarts: 300 })],
    [Pendulum.env, Td3.make({ hidden, bufferSize: 300, learningStarts: 300 })],
    [CartPole.env, Es.make({ hidden, maxEpisodeSteps: 20 })],
    [CartPole.env, A2c.make({ hidden, lstm: 4 })],
  ] as const) {
    it.effect(`works for ${algorithm.name}, whose target networks copy the weights`, () =>
      Effect.gen(function* () {
        const { train, arraysOf } = house()
        const input = { ...saving, env, numEnvs: 2, algorithm, totalSteps: 100 }
        const { runDir } = yield* train(input)
        const second = yield* train({ ...input, seed: 9, start: { from: runDir } })
        const weights = arraysOf(second.runDir, "weights", beginning)
        assert.deepStrictEqual(weights, arraysOf(runDir, "weights"))
        const optimizer = arraysOf(second.runDir, "optimizer", beginning)
        for (const [name, { data }] of Object.entries(optimizer)) {
          const network = /^target\.(.+)$/.exec(name)?.[1]
          // A target network is saved as one flat vector of the parameters in their order.
          const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, value) => total + value, 0)
          if (network === undefined)
            assert.isTrue(
              data.every((value) => Math.abs(value) <= 1),
              name,
            )
          else if (network !== "actor") continue
          else {
            const own = Object.entries(weights).filter(([key]) => !key.startsWith("critic"))
            assert.closeTo(sum(data), sum(own.flatMap(([, one]) => [...one.data])), 1e-3)
          }
        }
      }),
    )
  }

  it.effect("brings the statistics by which observations are normalised", () =>
    Effect.gen(function* () {
      const { train, arraysOf, messages } = house()
      const normalised: Input = { ...first, normalize: { observations: true, rewards: true } }
      const { runDir } = yield* train(normalised)
      const { runDir: second } = yield* train({ ...normalised, ...saving, numEnvs: 4, start: { from: runDir } })
      const counts = [arraysOf(runDir, "envs"), arraysOf(second, "envs", beginning)].map((arrays) =>
        Object.entries(arrays).flatMap(([name, { data }]) => (name.endsWith("Moments.count") ? [data[0]] : [])),
      )
      // The first observations of the new envs are counted; rewards there were none.
      assert.deepStrictEqual(
        counts[1],
        counts[0].map((count, index) => count + (index === 0 ? 4 : 0)),
      )
      const { message } = yield* Effect.flip(train({ ...first, start: { from: runDir } }))
      assert.include(message, "normalize.observations: ")
      assert.include(message, "was trained with normalised observations; expected true, found false")
      const { runDir: raw } = yield* train(first)
      yield* train({ ...normalised, start: { from: raw } })
      assert.isTrue(
        messages.some((one) =>
          one.endsWith("trained without normalised observations, so its weights fit only raw ones"),
        ),
      )
    }),
  )

  it.effect("is not read again by a resume, so that the other run may be gone", () =>
    Effect.gen(function* () {
      const { train, files } = house()
      const { runDir } = yield* train(first)
      const input = { ...first, numEnvs: 4, start: { from: runDir }, checkpoint: { everySteps: 64 } }
      const whole = yield* train({ ...input, totalSteps: 256 })
      const half = yield* train({ ...input, totalSteps: 128 })
      for (const path of files.keys()) if (path.startsWith(`${runDir}/`)) files.delete(path)
      const resumed = yield* train({ ...input, totalSteps: 256 }, half.runDir)
      assert.strictEqual(resumed.steps, 256)
      // A linear schedule depends on the total number of steps, so compare with a run of the same schedule.
      assert.notStrictEqual(whole.digest, half.digest)
    }),
  )

  it.effect("says what does not fit", () =>
    Effect.gen(function* () {
      const { train } = house()
      const { runDir } = yield* train(first)
      const at = `${runDir}/checkpoints/step_000000000000064`
      const refused: ReadonlyArray<readonly [Partial<Input>, string]> = [
        [
          { algorithm: Ppo.make({ hidden: [16], nsteps: 16 }) },
          `Train.run: start.from: parameter "actor.0.weight" has the shape [4, 8] in ${at}, and [4, 16] in this training; leave its part out of start.weights, or make the networks equal`,
        ],
        [
          { algorithm: Dqn.make({ hidden }) },
          `; start.weights takes only some parts: those of the run are actor, critic`,
        ],
        [{ start: { from: "nowhere" } }, "start.from: nowhere: expected the folder of a run (with config.yaml)"],
        [{ start: { from: `${at.slice(0, -1)}5` } }, "expected the folder of a run"],
        [
          { start: { from: runDir, weights: ["actor", "brain"] } },
          `start.weights: expected "all" or some of actor, critic, found "brain"`,
        ],
      ]
      for (const [change, expected] of refused) {
        const error = yield* Effect.flip(train({ ...first, start: { from: runDir }, ...change }))
        assert.strictEqual(error._tag, "ConfigError")
        assert.include(error.message, expected)
      }
    }),
  )

  it.effect("may be found by the launcher, as `latest` is", () =>
    Effect.gen(function* () {
      const { train, configOf } = house()
      const { runDir } = yield* train(first)
      const second = yield* train({ ...first, start: { from: "latest" } }).pipe(
        Effect.provideService(FindRun, () => Effect.succeed(runDir)),
      )
      assert.strictEqual(configOf(second.runDir).start.from, `${runDir}/checkpoints/step_000000000000064`)
      const error = yield* Effect.flip(
        train({ ...first, start: { from: "latest" } }).pipe(
          Effect.provideService(FindRun, () => Effect.fail({ message: "there is no run" })),
        ),
      )
      assert.include(error.message, "start.from: there is no run")
    }),
  )
})
