/** Tests the worker of the page "Play" in Node: over a channel instead of a web worker's own, and in memory. */
import { join } from "node:path"
import { writeFileSync } from "node:fs"
import { MessageChannel } from "node:worker_threads"
import { Effect, Exit, Scope } from "effect"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import type { Answer, Request } from "../../../src/dashboard/play/messages.ts"
import { type Port, serve } from "../../../src/dashboard/play/serve.ts"
import { ObjectStore } from "../../../src/run/store/objects/ObjectStore.ts"
import { effect } from "../../cli/effect.ts"
import { withFolder } from "../folder.ts"
import { configs, digestInNode } from "./configs.ts"

// The page's modules are plain scripts, and these need no browser.
const page = (module: string): string => new URL(`../../../src/dashboard/page/${module}`, import.meta.url).href
const { trajectoriesIn } = await import(/* @vite-ignore */ page("player/trajectories.js"))
const { settingIn, withSetting } = await import(/* @vite-ignore */ page("play/configText.js"))
const { presets, sliders } = await import(/* @vite-ignore */ page("play/presets.js"))

interface Worker {
  readonly send: (request: Request) => void
  /** Waits for the next answer of a kind; answers of other kinds before it are dropped. */
  readonly next: <Tag extends Answer["_tag"]>(tag: Tag) => Promise<Extract<Answer, { readonly _tag: Tag }>>
}

const withWorker = async (body: (worker: Worker) => Promise<void>): Promise<void> => {
  const { port1, port2 } = new MessageChannel()
  const scope = await Effect.runPromise(Scope.make())
  const port: Port = {
    postMessage: (answer) => port1.postMessage(answer),
    addEventListener: (_, listener) => void port1.on("message", (data) => listener({ data })),
  }
  Effect.runFork(serve(port, ObjectStore.layerMemory).pipe(Scope.provide(scope)))
  const answers: Array<Answer> = []
  let wake = (): void => {}
  port2.on("message", (answer: Answer) => {
    answers.push(answer)
    wake()
  })
  const isOf =
    <Tag extends Answer["_tag"]>(tag: Tag) =>
    (answer: Answer): answer is Extract<Answer, { readonly _tag: Tag }> =>
      answer._tag === tag
  try {
    await body({
      send: (request) => port2.postMessage(request),
      next: async (tag) => {
        for (;;) {
          const answer = answers.shift()
          if (answer === undefined) await new Promise<void>((resolve) => (wake = resolve))
          else if (isOf(tag)(answer)) return answer
        }
      },
    })
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    port1.close()
  }
}

describe("the worker of the page Play", () => {
  it("trains with the digest that Node gives, and plays an episode of each policy that the page asks for", () =>
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
    }))

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
