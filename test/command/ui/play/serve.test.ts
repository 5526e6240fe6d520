/** Tests the worker of the page "Play" in Node: over a channel instead of a web worker's own, and in memory. */
import { join } from "node:path"
import { writeFileSync } from "node:fs"
import { assert, describe, it } from "vitest"
import { Effect, Layer } from "effect"
import { parse } from "yaml"
import * as Envs from "../../../../src/rl/env/Envs.ts"
import { contains } from "../../../../src/rl/env/Space.ts"
import { ObjectStore } from "../../../../src/run/store/objects/ObjectStore.ts"
import { effect } from "../../cli/effect.ts"
import { withFolder } from "../folder.ts"
import { configs, digestInNode } from "./configs.ts"
import { withWorker } from "./worker.ts"

// The page's modules are plain scripts, and these need no browser.
const page = (module: string): string => new URL(`../../../../src/command/ui/page/${module}`, import.meta.url).href
const { trajectoriesIn } = await import(/* @vite-ignore */ page("player/trajectories.js"))
const { settingIn, withSetting } = await import(/* @vite-ignore */ page("play/configText.js"))
const { keysOf } = await import(/* @vite-ignore */ page("play/keys.js"))
const { presets, sliders } = await import(/* @vite-ignore */ page("play/presets.js"))

describe("the worker of the page Play", () => {
  it(
    "trains with the digest that Node gives, and plays an episode of each policy that the page asks for",
    { tags: "slow" },
    () =>
      withWorker(async ({ send, next }) => {
        for (const [name, config] of Object.entries(configs)) {
          send({ _tag: "Watch" })
          send({ _tag: "Train", config, resume: null })
          assert.include((await next("Started")).env, name)
          const { trajectories, ui } = await next("Episode")
          const [{ trajectory }] = await trajectoriesIn(trajectories)
          assert.isAbove(trajectory.length, 0)
          assert.include(ui, "export")
          const { reason, digest } = await next("Ended")
          assert.deepStrictEqual({ reason, digest }, { reason: "finished", digest: await digestInNode(parse(config)) })
        }
      }),
  )

  it("keeps what was learned when it is stopped, and goes on bit for bit", () =>
    withWorker(async ({ send, next }) => {
      const config = withSetting(configs.CartPole, "total_steps", "8192")
      send({ _tag: "Train", config, resume: null })
      await next("Progress")
      send({ _tag: "Stop" })
      const { reason, directory = "" } = await next("Ended")
      assert.strictEqual(reason, "stopped")
      send({ _tag: "List" })
      assert.deepStrictEqual((await next("Listed")).directories, [directory])
      send({ _tag: "Load", directory })
      const { saved } = await next("Loaded")
      send({ _tag: "Train", config: saved.config, resume: directory })
      assert.isAbove((await next("Started")).step, 0)
      assert.strictEqual((await next("Ended")).digest, await digestInNode(parse(config)))
      send({ _tag: "Remove", directory })
      assert.deepStrictEqual((await next("Listed")).directories, [])
      send({ _tag: "Load", directory })
      assert.strictEqual((await next("Refused")).message, `${directory}: there is no such training`)
    }))

  it("refuses a second training while one is in progress", () =>
    withWorker(async ({ send, next }) => {
      send({ _tag: "Train", config: withSetting(configs.CartPole, "total_steps", "1000000"), resume: null })
      await next("Progress")
      send({ _tag: "Train", config: configs.CartPole, resume: null })
      assert.strictEqual((await next("Refused")).message, "a training is in progress; stop it first")
      send({ _tag: "Stop" })
      assert.strictEqual((await next("Ended")).reason, "stopped")
    }))

  it("answers also if there is a bug, and then goes on", () => {
    const broken = Layer.effect(
      ObjectStore,
      Effect.map(ObjectStore, (store) => ({ ...store, list: () => Effect.die(new Error("a bug")) })),
    ).pipe(Layer.provide(ObjectStore.layerMemory))
    return withWorker(async ({ send, next }) => {
      for (let time = 0; time < 2; time++) {
        send({ _tag: "List" })
        assert.strictEqual((await next("Refused")).message, "a bug")
      }
    }, broken)
  })

  it("says the same of a wrong config as the command does", () =>
    withFolder(async (folder) => {
      const wrong = [
        withSetting(configs.CartPole, "algorithm.learning_rate", "-1"),
        withSetting(configs.CartPole, "total_steps", "many"),
        configs.CartPole.replace("CartPole-v1", "CartPol-v1"),
        configs.CartPole.replace("num_envs", "num_env"),
        configs.GridWorld.replace("density: 0.1", "density: 2"),
        "env: [",
      ]
      await withWorker(async ({ send, next }) => {
        for (const config of wrong) {
          writeFileSync(join(folder, "play.yaml"), config)
          const { code, stderr } = await effect(["run", "play.yaml"], folder)
          send({ _tag: "Train", config, resume: null })
          const { reason, message } = await next("Ended")
          assert.strictEqual(reason, "failed")
          assert.notStrictEqual(code, 0)
          assert.include(String(message), "play.yaml")
          assert.include(stderr, String(message), config)
        }
      })
    }))
})

describe("the settings of the page Play", () => {
  it("begin with configs whose sliders all work", () => {
    for (const { config } of presets.values()) {
      for (const { path, values } of sliders) {
        const value = settingIn(config, path)
        assert.isFalse(Number.isNaN(Number(value)), path)
        const changed = withSetting(config, path, String(values[0]))
        assert.strictEqual(settingIn(changed, path), String(values[0]))
        assert.strictEqual(withSetting(changed, path, value), config)
      }
    }
  })

  it("change one line of the text, with its comment, and no line of another section", () => {
    const text = "gamma: 1 # mine\nalgorithm:\n  gamma: 2 # theirs\n"
    assert.strictEqual(settingIn(text, "gamma"), "1")
    assert.strictEqual(settingIn(text, "algorithm.gamma"), "2")
    assert.isUndefined(settingIn(text, "seed"))
    assert.strictEqual(withSetting(text, "algorithm.gamma", "3"), text.replace("gamma: 2", "gamma: 3"))
    assert.strictEqual(withSetting(text, "seed", "3"), text)
  })
})

describe("the keys of the page Play", () => {
  /** The envs of docs/browser.md's table, with the number of actions that a person can take by keys. */
  const envs: Readonly<Record<string, number>> = {
    "CartPole-v1": 2,
    "MountainCar-v0": 3,
    "Acrobot-v1": 3,
    "Catch-v0": 3,
    "MinAtar/Breakout-v1": 3,
    "MinAtar/Asterix-v1": 5,
    "MinAtar/Freeway-v1": 3,
    "MinAtar/Seaquest-v1": 6,
    "MinAtar/SpaceInvaders-v1": 4,
    "GridWorld-8x8-v0": 8,
    "KeyDoor-6x6-v0": 4,
    "ApplePicker-v0": 4,
    "PixelMaze-v0": 4,
  }

  it("reach every action of the envs that the docs list", () => {
    for (const [id, count] of Object.entries(envs)) {
      const env = Envs.byId(id)
      const taken = new Set<number>()
      for (let held = 0; held < 32; held++) {
        const [left, right, up, down, fire] = [1, 2, 4, 8, 16].map((bit) => (held & bit) !== 0)
        for (const action of keysOf(id).choose({ left, right, up, down, fire }, held, 0) ?? []) {
          assert.isTrue(contains(env.actionSpace, action), `${id}: ${action}`)
          taken.add(action)
        }
      }
      assert.strictEqual(taken.size, count, id)
    }
  })

  it("push with the numbers that the env takes", () => {
    for (const id of ["Pendulum-v1", "MountainCarContinuous-v0"])
      for (const push of [-1, 0, 0.3, 1])
        assert.isTrue(contains(Envs.byId(id).actionSpace, keysOf(id).choose({}, 0, push)), `${id}: ${push}`)
  })
})
