import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, PlatformError } from "effect"
import { CartPole, GridWorld, Pendulum, Space, Transitions } from "../../../../src/index.ts"
import { encode } from "../../../../src/base/formats/hdf5/Hdf5.ts"
import { read } from "../../../../src/base/formats/hdf5/read.ts"

const fixtures = fileURLToPath(new URL("../../../fixtures/minari", import.meta.url))
const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "minari-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
)
const onNode = Effect.provide(NodeServices.layer)

describe("data sets that h5py wrote", () => {
  it.effect("are read in the order of their episodes", () =>
    Effect.gen(function* () {
      const transitions = yield* Transitions.fromMinari(Pendulum.env, join(fixtures, "pendulum"))
      const lengths = Array.from({ length: 12 }, (_, episode) => 2 + (episode % 3))
      const steps = lengths.flatMap((length, episode) => Array.from({ length }, (_, t) => t + episode / 16))
      const row = (value: number) => [value, value + 100, value + 200]
      assert.strictEqual(transitions.rows, 36)
      assert.deepEqual([...transitions.lengths], lengths)
      assert.deepEqual([...transitions.observations], steps.flatMap(row))
      assert.deepEqual(
        transitions.actions,
        Float32Array.from(steps, (value) => value / 2),
      )
      assert.deepEqual(
        [...transitions.rewards],
        steps.map((value) => -value),
      )
      const finals = lengths.flatMap((length, episode) => row(length + episode / 16))
      assert.deepEqual([...transitions.finalObservations], finals)
      // Episodes 3, 5 … neither terminated nor were truncated: they were cut short.
      assert.deepEqual(
        [...transitions.terminated],
        lengths.map((_, episode) => (episode % 2 === 0 ? 1 : 0)),
      )
      assert.deepEqual(transitions.returns.slice(0, 2), [-1, -(0 + 1 + 2 + 3 / 16)])
      const sameFolder = yield* Transitions.fromMinari(Pendulum.env, join(fixtures, "pendulum", "data"))
      assert.deepEqual(sameFolder, transitions)
    }).pipe(onNode),
  )

  const parts = {
    id: "parts",
    observationSpace: Space.dict({
      gear: Space.discrete(3),
      pair: Space.tuple(Space.box(-Infinity, Infinity, [2, 2]), Space.multiBinary(2)),
    }),
    actionSpace: Space.discrete(3),
  }

  it.effect("with parts, compression, and choices that begin at other numbers than 0", () =>
    Effect.gen(function* () {
      const { observations, finalObservations, actions, rewards, terminated } = yield* Transitions.fromMinari(
        parts,
        join(fixtures, "parts"),
      )
      const rows = Array.from({ length: 6 }, (_, t) => [
        t % 3,
        ...[0, 1, 2, 3].map((at) => 4 * t + at),
        t === 0 ? 1 : 0,
        t === 1 ? 1 : 0,
      ])
      assert.deepEqual([...observations], rows.slice(0, 5).flat())
      assert.deepEqual([...finalObservations], rows[5])
      assert.deepEqual(actions, Int32Array.of(0, 1, 2, 1, 0))
      assert.deepEqual([...rewards], [0, 0, 0, 0, 1.5])
      assert.deepEqual([...terminated], [1])
    }).pipe(onNode),
  )

  it.effect("are refused if they do not fit the env or are damaged", () =>
    Effect.gen(function* () {
      const folder = yield* temporary
      const refusal = (env: Parameters<typeof Transitions.fromMinari>[0], path: string) =>
        Effect.map(Effect.flip(Transitions.fromMinari(env, path)), ({ message }) =>
          message.replaceAll(fixtures, "…").replaceAll(folder, "…"),
        )
      assert.strictEqual(
        yield* refusal(CartPole.env, join(fixtures, "pendulum")),
        "…/pendulum/data/main_data.hdf5: episode_0/observations: expected 3 rows of 4 numbers, as CartPole-v1 has, found the shape [3, 3]",
      )
      assert.strictEqual(
        yield* refusal(parts, join(fixtures, "pendulum")),
        "…/pendulum/data/main_data.hdf5: episode_0/observations/gear: expected a dataset, found none",
      )
      assert.strictEqual(
        yield* refusal(Pendulum.env, join(fixtures, "nothing")),
        "…/nothing/main_data.hdf5: there is no such file",
      )
      assert.include(
        yield* refusal({ ...parts, actionMask: () => [1, 1, 1] }, join(fixtures, "parts")),
        "parts has action masks, which Minari's files can't hold",
      )
      cpSync(join(fixtures, "parts", "data"), folder, { recursive: true })
      writeFileSync(join(folder, "main_data.hdf5"), "no HDF5")
      assert.match(yield* refusal(parts, folder), /^…\/main_data\.hdf5: not an HDF5 file: /)
    }).pipe(Effect.scoped, onNode),
  )
})

describe("data sets whose numbers no env can have given", () => {
  const good = Transitions.record(CartPole.env, { episodes: 2, policy: "random", seed: 1 })
  const { lengths } = good
  const at = (step: number, width = 1) => (lengths[0] + step) * width
  const cases: Readonly<
    Record<string, readonly [Parameters<typeof Transitions.toMinari>[0], Partial<Transitions.Transitions>, string]>
  > = {
    "another action": [
      CartPole.env,
      { actions: good.actions.with(at(2), 7) },
      "episode_1/actions: step 2: expected a whole number from 0 to 1, found 7",
    ],
    "a fractional action": [
      { ...CartPole.env, actionSpace: Space.box(0, 1) },
      { actions: Float32Array.from(good.actions).with(at(3), 0.5) },
      "episode_1/actions: step 3: expected a whole number from 0 to 1, found 0.5",
    ],
    "an observation that is no number": [
      CartPole.env,
      { observations: good.observations.with(at(4, 4) + 1, NaN) },
      "episode_1/observations: step 4: expected a finite number, found NaN",
    ],
    "an infinite reward": [
      CartPole.env,
      { rewards: good.rewards.with(at(1), Infinity) },
      "episode_1/rewards: step 1: expected a finite number, found Infinity",
    ],
  }
  for (const [what, [env, fields, message]] of Object.entries(cases)) {
    it.effect(`are refused: ${what}`, () =>
      Effect.gen(function* () {
        const folder = yield* temporary
        yield* Transitions.toMinari(env, folder, { ...good, ...fields }, { id: "wrong-v0" })
        const error = yield* Effect.flip(Transitions.fromMinari(CartPole.env, folder))
        assert.include(error.message, message)
      }).pipe(Effect.scoped, onNode),
    )
  }

  it.effect("are refused: other terminations than steps", () =>
    Effect.gen(function* () {
      const folder = yield* temporary
      const floats = (shape: ReadonlyArray<number>) => ({
        shape,
        data: new Float64Array(shape.reduce((product, size) => product * size, 1)),
      })
      const children = {
        rewards: floats([2]),
        terminations: floats([1]),
        observations: floats([3, 4]),
        actions: floats([2]),
      }
      writeFileSync(join(folder, "main_data.hdf5"), encode({ children: { episode_0: { children } } }))
      const error = yield* Effect.flip(Transitions.fromMinari(CartPole.env, folder))
      assert.include(error.message, "episode_0/terminations: expected 2 numbers, as there are rewards, found 1")
    }).pipe(Effect.scoped, onNode),
  )
})

describe("data sets that we write", () => {
  it.effect("are read as they were, with every kind of space", () =>
    Effect.gen(function* () {
      const folder = yield* temporary
      for (const env of [CartPole.env, Pendulum.env, GridWorld.make({ size: 5 })]) {
        const transitions = Transitions.record(env, { episodes: 3, policy: "random", maxSteps: 30, seed: 2 })
        yield* Transitions.toMinari(env, folder, transitions, { id: "some/thing-v0", metadata: { author: "me" } })
        assert.deepEqual(yield* Transitions.fromMinari(env, folder), transitions)
      }
      const metadata = JSON.parse(readFileSync(join(folder, "data", "metadata.json"), "utf8"))
      assert.strictEqual(metadata.dataset_id, "some/thing-v0")
      assert.strictEqual(metadata.author, "me")
      assert.strictEqual(metadata.total_episodes, 3)

      const spaces = {
        id: "spaces",
        observationSpace: Space.dict({
          numbers: Space.box(-1, Infinity, [2, 1]),
          list: Space.tuple(Space.discrete(4), Space.multiDiscrete([2, 3])),
        }),
        actionSpace: Space.multiBinary(2),
      }
      const steps = {
        rows: 3,
        observations: Float32Array.of(0.5, 7, 3, 1, 2, 1.5, 8, 2, 0, 1, 2.5, 9, 1, 1, 0),
        actions: Int32Array.of(0, 1, 1, 1, 1, 0),
        rewards: Float32Array.of(1, 2, 4),
        lengths: Int32Array.of(1, 2),
        terminated: Uint8Array.of(0, 1),
        finalObservations: Float32Array.of(3.5, 9, 0, 0, 0, 4.5, 9, 3, 1, 2),
        returns: [1, 6],
      }
      yield* Transitions.toMinari(spaces, folder, steps, { id: "a-v1" })
      assert.deepEqual(yield* Transitions.fromMinari(spaces, folder), steps)
      const described = JSON.parse(readFileSync(join(folder, "data", "metadata.json"), "utf8"))
      assert.deepEqual(JSON.parse(described.observation_space).subspaces.numbers, {
        type: "Box",
        dtype: "float32",
        shape: [2, 1],
        low: [[-1], [-1]],
        high: [[Infinity], [Infinity]],
      })
      const file = yield* read(readFileSync(join(folder, "data", "main_data.hdf5")))
      assert.deepEqual([...(yield* file.numbers("episode_1/terminations")).data], [0, 1])
      assert.deepEqual(yield* file.namesIn("episode_1/observations/list"), ["_index_0", "_index_1"])
      assert.isUndefined(yield* file.namesIn("episode_1/rewards"))
    }).pipe(Effect.scoped, onNode),
  )

  it.effect("replace an older one as a whole, or leave it as it was", () =>
    Effect.gen(function* () {
      const folder = yield* temporary
      const write = (seed: number) => {
        const transitions = Transitions.record(CartPole.env, { episodes: 1, policy: "random", seed })
        return Effect.as(Transitions.toMinari(CartPole.env, folder, transitions, { id: "a-v0" }), transitions)
      }
      const older = yield* write(1)
      const fs = yield* FileSystem.FileSystem
      // The disk is full when the second file is written.
      let writes = 0
      const full = PlatformError.systemError({ _tag: "WriteZero", module: "FileSystem", method: "writeFile" })
      const limited = {
        ...fs,
        writeFile: (...args: Parameters<typeof fs.writeFile>) =>
          ++writes === 2 ? Effect.fail(full) : fs.writeFile(...args),
        writeFileString: () => Effect.fail(full),
      }
      yield* Effect.flip(Effect.provideService(write(2), FileSystem.FileSystem, limited))
      assert.deepEqual(yield* Transitions.fromMinari(CartPole.env, folder), older)
      assert.deepEqual(readdirSync(folder), ["data"])
      const newer = yield* write(2)
      assert.deepEqual(yield* Transitions.fromMinari(CartPole.env, folder), newer)
      assert.deepEqual(readdirSync(folder), ["data"])
    }).pipe(Effect.scoped, onNode),
  )

  it.effect("have a name with a version", () =>
    Effect.gen(function* () {
      const none = Transitions.record(CartPole.env, { episodes: 1, policy: "random" })
      const error = yield* Effect.flip(Transitions.toMinari(CartPole.env, "nowhere", none, { id: "cartpole" }))
      const expected = 'nowhere: expected a name of a data set such as pendulum/mixed-v0, found "cartpole"'
      assert.strictEqual(error.message, expected)
    }).pipe(onNode),
  )
})
