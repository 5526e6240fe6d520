/** Tests the game of the page in Node: the policy of a checkpoint acts, or a person does. */
import { Effect, Layer } from "effect"
import { InferenceSession, Tensor } from "onnxruntime-node"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { fromConfig } from "../../../../src/rl/env/fromConfig.ts"
import { rowOf } from "../../../../src/rl/env/internal/rows.ts"
import * as Layout from "../../../../src/run/Layout.ts"
import { RunStore } from "../../../../src/run/store/RunStore.ts"
import * as Train from "../../../../src/rl/train/Train.ts"
import * as Web from "../../../../src/web.ts"
import { configs } from "./configs.ts"
import { withWorker } from "./worker.ts"

/** Trains, and returns the run's files as the page sends them to the worker. */
const trained = async (config: string) => {
  const { layer, files } = RunStore.memory()
  const training = Train.fromConfig(parse(config))
  const { runDir } = await Effect.runPromise(Effect.provide(training, Layer.merge(Web.layer, layer)))
  const checkpoint = Layout.checkpointName("step", 1024)
  const folder = `${runDir}/${Layout.checkpoint(checkpoint)}/`
  return {
    config: new TextDecoder().decode(files.get(`${runDir}/${Layout.config}`)),
    checkpoint,
    files: [...files].flatMap(([path, bytes]) =>
      path.startsWith(folder) ? [{ path: path.slice(runDir.length + 1), bytes }] : [],
    ),
  }
}

const lstm = configs.CartPole.replace("nsteps: 32", "nsteps: 32\n  lstm: 8")

/** Choices from numbers and from images stay quick. */
const quick = new Set(["CartPole", "GridWorld"])

describe("the game of the page Play", () => {
  for (const name of ["CartPole", "Pendulum", "GridWorld", "with a memory"] as const)
    it(`acts as the exported policy does: ${name}`, { tags: quick.has(name) ? [] : "slow" }, () =>
      withWorker(async ({ send, next }) => {
        const config = name === "with a memory" ? lstm : configs[name]
        const run = await trained(config)
        const onnx = run.files.find(({ path }) => path.endsWith(Layout.inCheckpoint.policy))
        const session = await InferenceSession.create(onnx?.bytes ?? new Uint8Array())
        const env = await Effect.runPromise(fromConfig(parse(config).env, { source: "" }))
        send({ _tag: "Open", ...run })
        const opened = await next("Opened")
        assert.deepInclude(opened, { env: env.id, step: 1024, actionSpace: env.actionSpace })
        assert.include(opened.ui, "export")
        const zeros = new Tensor("float32", new Float32Array(32), [1, 32])
        let memory: Awaited<ReturnType<typeof session.run>>[string] = zeros
        for (let step = 0; step < 40; step++) {
          send({ _tag: "Act", action: null })
          const { state, action, terminated, truncated } = (await next("Acted")).step
          const observation = rowOf(env, state)
          const feeds = { observations: new Tensor("float32", observation, [1, observation.length]) }
          const outputs = await session.run(name === "with a memory" ? { ...feeds, memory } : feeds)
          const wanted = Array.from(outputs.actions.data, Number)
          for (const [index, value] of wanted.entries()) assert.closeTo(action[index], value, 1e-4)
          memory = outputs.nextMemory
          if (terminated || truncated) {
            send({ _tag: "Restart" })
            memory = zeros
          }
        }
      }),
    )

  it("sends the moments of a body, which a person may pull at", { tags: "slow" }, () =>
    withWorker(async ({ send, next }) => {
      send({ _tag: "Open", ...(await trained(configs.HalfCheetah)) })
      const { picture, ui } = await next("Opened")
      assert.deepStrictEqual(picture, { width: 480, height: 400 })
      assert.include(ui, "export")
      const step = async (pull: { readonly _tag: "Push"; readonly right: number; readonly up: number } | null) => {
        send({ _tag: "Act", action: null, pull })
        return (await next("Acted")).step
      }
      const alone = await step(null)
      assert.deepInclude(alone, { state: null, seconds: 0.01, length: 1 })
      assert.strictEqual(alone.moments?.length, 5)
      assert.closeTo(alone.reward, (alone.terms?.forward ?? NaN) + (alone.terms?.ctrl ?? NaN), 1e-9)
      const pushed = await step({ _tag: "Push", right: -1, up: 0 })
      assert.isTrue(
        pushed.moments?.every((moment) => typeof moment === "object" && moment !== null && "pull" in moment),
      )
    }),
  )

  it("takes a person's action, counts the return, and begins again", () =>
    withWorker(async ({ send, next }) => {
      send({ _tag: "Open", ...(await trained(configs.CartPole)) })
      await next("Opened")
      const pushRight = async () => {
        send({ _tag: "Act", action: [1] })
        return (await next("Acted")).step
      }
      for (let episode = 0; episode < 2; episode++) {
        let step = await pushRight()
        assert.deepInclude(step, { action: [1], reward: 1, total: 1, length: 1 })
        // Pushed to one side only, the pole falls within a few steps.
        while (!step.terminated) step = await pushRight()
        assert.isBelow(step.length, 15)
        assert.strictEqual(step.total, step.length)
        send({ _tag: "Restart" })
      }
    }))

  it("says what is wrong with a request, a checkpoint or an action", () =>
    withWorker(async ({ send, next }) => {
      const problem = async () => (await next("Refused")).message
      send({ _tag: "Act", action: null })
      assert.strictEqual(await problem(), "there is no game; open one first")
      const run = await trained(configs.CartPole)
      const [first, ...others] = run.files.filter(({ path }) => path.endsWith(Layout.inCheckpoint.weights))
      assert.isEmpty(others)
      const damaged = run.files.map((file) => (file === first ? { ...file, bytes: file.bytes.slice(1) } : file))
      send({ _tag: "Open", ...run, files: damaged })
      assert.match(await problem(), /weights\.safetensors: expected \d+ bytes, found \d+$/)
      send({ _tag: "Open", ...run, config: run.config.replace("CartPole-v1", "Mine-v0") })
      assert.match(await problem(), /^config\.yaml:\d+: env: unknown env "Mine-v0".*\. A page plays built-in envs only/)
      send({ _tag: "Open", ...run })
      await next("Opened")
      for (const action of [[2], [0.5], [0, 1], []]) {
        send({ _tag: "Act", action })
        assert.strictEqual(
          await problem(),
          `CartPole-v1: expected an action in Discrete(2), found [${action.join(", ")}]`,
        )
      }
    }))
})
