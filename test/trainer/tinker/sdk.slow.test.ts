/** Real servers, killed while clients train: by plain HTTP, and by Tinker's own SDK where Python has it. */
import { spawn } from "node:child_process"
import { mkdirSync, readFileSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { stream } from "../../../src/base/rng/Rng.ts"
import { root, withFolder } from "../../command/cli/effect.ts"
import { has, python } from "../../rl/env/foreign/python.ts"
import { freePort } from "../../servers/listen.ts"
import { done, exampleOf, persistently } from "./speaking.ts"
import { serve, writeModel } from "./tinkerProcess.ts"

/** A client's training: updates, of two gradients each. Returns all outcomes. */
const train = async (port: number, client: number, steps: number, onStep: () => void) => {
  const session = await persistently(port, "/create_session", { tags: [], user_metadata: null, sdk_version: "0" })
  const settings = { session_id: session.session_id, model_seq_id: 0, base_model: "base" }
  const { model_id } = await done(port, "/create_model", { ...settings, lora_config: { rank: 4, seed: client } })
  const random = stream(5, "client", client)
  const outcomes: Array<unknown> = []
  for (let seq_id = 1; seq_id <= 3 * steps; seq_id++) {
    const data = Array.from({ length: 4 }, () => exampleOf(Array.from({ length: 9 }, () => random.integer(26))))
    const input = { data, loss_fn: "cross_entropy", loss_fn_config: null }
    const isUpdate = seq_id % 3 === 0
    outcomes.push(
      isUpdate
        ? await done(port, "/optim_step", { model_id, seq_id, adam_params: { learning_rate: 0.01 } })
        : await done(port, "/forward_backward", { model_id, seq_id, forward_backward_input: input }),
    )
    onStep()
  }
  return outcomes
}

describe("a Tinker server of its own process", () => {
  it("loses no update and makes none twice, however often it is killed", () =>
    withFolder(async (folder) => {
      await writeModel(folder, { hiddenSize: 16, layers: 1 })
      const port = await freePort()
      const [clients, steps] = [2, 4]
      const all = (onStep: () => void) =>
        Promise.all(Array.from({ length: clients }, (_, client) => train(port, client, steps, onStep)))
      const calm = await serve(folder, port)
      const expected = await all(() => undefined)
      await calm.kill()

      let server = await serve(folder, port)
      let kills = 0
      let restarting = Promise.resolve()
      let requests = 0
      const notRestarted = Promise.withResolvers<never>()
      const trained = all(() => {
        if (++requests % 5 !== 0) return
        kills++
        restarting = restarting.then(async () => {
          await server.kill()
          server = await serve(folder, port)
        })
        restarting.catch(notRestarted.reject)
      })
      const outcomes = await Promise.race([trained, notRestarted.promise])
      await restarting
      assert.strictEqual(kills, 4)
      assert.deepStrictEqual(outcomes, expected)
      await server.kill()
    }))

  it("does not start on a folder with a link, through which it would write elsewhere", () =>
    withFolder(async (folder) => {
      await writeModel(folder, { hiddenSize: 16, layers: 1 })
      mkdirSync(join(folder, "models"))
      symlinkSync(folder, join(folder, "models", "elsewhere"))
      const message = await serve(folder, await freePort()).then(() => "it started", String)
      assert.match(message, /--tinker-dir: .*elsewhere is a link/)
    }))

  it("answers while it computes a gradient", () =>
    withFolder(async (folder) => {
      await writeModel(folder, { hiddenSize: 64, layers: 2 })
      const port = await freePort()
      const server = await serve(folder, port)
      const session = await persistently(port, "/create_session", { tags: [], user_metadata: null, sdk_version: "0" })
      const settings = { session_id: session.session_id, model_seq_id: 0, base_model: "base" }
      const { model_id } = await done(port, "/create_model", { ...settings, lora_config: { rank: 4, seed: 1 } })
      // Exactly the tokens of the largest program, so that the gradient is computed in one piece.
      const data = Array.from({ length: 32 }, (_, at) =>
        exampleOf(Array.from({ length: 33 }, (_, token) => (at + token) % 26)),
      )
      const input = { data, loss_fn: "cross_entropy", loss_fn_config: null }
      let isComputed = false
      const computed = done(port, "/forward_backward", { model_id, seq_id: 1, forward_backward_input: input }).then(
        () => {
          isComputed = true
        },
      )
      const computedBefore: Array<boolean> = []
      for (let request = 0; request < 20; request++) {
        const { status } = await fetch(`http://127.0.0.1:${port}/api/v1/healthz`)
        assert.strictEqual(status, 200)
        computedBefore.push(isComputed)
      }
      await computed
      assert.deepStrictEqual(
        computedBefore,
        computedBefore.map(() => false),
      )
      await server.kill()
    }))

  it("trains for Tinker's SDK, which does not notice that it is killed", async (context) => {
    if (!has("tinker")) return context.skip(`${python} has no package tinker`)
    await withFolder(async (folder) => {
      await writeModel(folder, { hiddenSize: 64, layers: 2 })
      const port = await freePort()
      let server = await serve(folder, port)
      const run = (script: string, args: ReadonlyArray<string>, onLine: (line: string) => void) =>
        new Promise<string>((resolve, reject) => {
          const env = { ...process.env, TINKER_BASE_URL: `http://127.0.0.1:${port}`, TINKER_TELEMETRY: "0" }
          const child = spawn(python, [join(root, "examples/tinker", script), join(folder, "base"), ...args], { env })
          let text = ""
          child.stderr.on("data", (chunk) => (text += String(chunk)))
          child.stdout.on("data", (chunk) => {
            text += String(chunk)
            for (const line of String(chunk).split("\n")) onLine(line)
          })
          child.on("close", (code) => (code === 0 ? resolve(text) : reject(new Error(text))))
        })
      let restarting = Promise.resolve()
      const text = await run("supervised.py", ["81"], (line) => {
        if (line.startsWith("step 20:"))
          restarting = restarting.then(async () => {
            await server.kill()
            server = await serve(folder, port)
          })
      })
      await restarting
      const losses = Array.from(text.matchAll(/loss ([\d.]+)/g), ([, loss]) => Number(loss))
      assert.strictEqual(losses.length, 5, text)
      assert.isBelow(losses[4], losses[0] / 2)
      const path = /tinker:\/\/\S+/.exec(text)?.[0] ?? ""
      const rewards = await run("grpo.py", ["12"], () => undefined)
      const means = Array.from(rewards.matchAll(/mean reward ([\d.]+)/g), ([, mean]) => Number(mean))
      assert.isAbove(means[11], means[0] + 0.5, rewards)
      const info = readFileSync(join(folder, "models", path.replace("tinker:/", "models"), "checkpoint.json"), "utf8")
      assert.strictEqual(JSON.parse(info).steps, 81)
      await server.kill()
    })
  })
})
