/** Real servers, killed while clients train: by plain HTTP, and by Tinker's own SDK where Python has it. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "@effect/vitest"
import { stream } from "../../../src/base/rng/Rng.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { modelToSave, openBaseModel } from "../../../src/trainer/baseModel.ts"
import { root, start, withFolder } from "../../command/cli/effect.ts"
import { has, python } from "../../rl/env/foreign/python.ts"
import { disk } from "../../run/store/disk.ts"

/** Writes a model with random weights into `base` of a folder. */
const writeModel = (folder: string, hiddenSize: number, layers: number): Promise<void> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const tokenizer = { alphabet: "abcdefghijklmnopqrstuvwxyzQ: ", template: null }
      const sizes = { hiddenSize, layers, heads: 4, maxPositions: 48, intermediateSize: null, initializerRange: 0.1 }
      const base = yield* openBaseModel({ type: "scratch", tokenizer, ...sizes }, { baseDir: ".", seed: 1 })
      yield* LmDirectory.save(yield* onDisk(folder), "base", modelToSave(base))
    }).pipe(Effect.provide(disk)),
  )

/** Returns a port that was free a moment ago, which a server can use again after a kill. */
const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
}

/** Starts a server, and waits until it answers. */
const serve = async (folder: string, port: number) => {
  const flags = ["--tinker", "--tinker-dir", "models", "--backend", "wasm", "--json"]
  const { child, ended } = start(["serve", "base", "--port", String(port), ...flags], folder)
  let printed = ""
  child.stdout?.on("data", (chunk) => (printed += String(chunk)))
  const failed = ended.then(({ stderr }) => Promise.reject(new Error(stderr)))
  failed.catch(() => undefined)
  const listening = new Promise<void>((resolve) =>
    child.stdout?.on("data", () => (printed.includes("\n") ? resolve() : undefined)),
  )
  await Promise.race([listening, failed])
  return {
    kill: async () => {
      child.kill("SIGKILL")
      await ended
    },
  }
}

const post = async (port: number, path: string, body: unknown) => {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

/** Sends a request until a server answers it. */
const persistently = async (port: number, path: string, body: unknown): Promise<ReturnType<typeof JSON.parse>> => {
  for (;;) {
    const answer = await post(port, path, body).catch(() => undefined)
    if (answer?.status === 200) return answer.body
    if (answer !== undefined && answer.status !== 408) throw new Error(JSON.stringify(answer.body))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const done = async (port: number, path: string, body: unknown) => {
  const { request_id } = await persistently(port, path, body)
  return persistently(port, "/retrieve_future", { request_id })
}

const datum = (tokens: ReadonlyArray<number>) => ({
  model_input: { chunks: [{ type: "encoded_text", tokens: tokens.slice(0, -1) }] },
  loss_fn_inputs: { target_tokens: { data: tokens.slice(1), dtype: "int64", shape: [tokens.length - 1] } },
})

/** A client's training: updates, of two gradients each. Returns all outcomes. */
const train = async (port: number, client: number, steps: number, onStep: () => void) => {
  const session = await persistently(port, "/create_session", { tags: [], user_metadata: null, sdk_version: "0" })
  const settings = { session_id: session.session_id, model_seq_id: 0, base_model: "base" }
  const { model_id } = await done(port, "/create_model", { ...settings, lora_config: { rank: 4, seed: client } })
  const random = stream(5, "client", client)
  const outcomes: Array<unknown> = []
  for (let seq_id = 1; seq_id <= 3 * steps; seq_id++) {
    const data = Array.from({ length: 4 }, () => datum(Array.from({ length: 9 }, () => random.integer(26))))
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
      await writeModel(folder, 16, 1)
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
      const outcomes = await all(() => {
        if (++requests % 5 !== 0) return
        kills++
        restarting = restarting.then(async () => {
          await server.kill()
          server = await serve(folder, port)
        })
      })
      await restarting
      assert.strictEqual(kills, 4)
      assert.deepStrictEqual(outcomes, expected)
      await server.kill()
    }))

  it("trains for Tinker's SDK, which does not notice that it is killed", async (context) => {
    if (!has("tinker")) return context.skip(`${python} has no package tinker`)
    await withFolder(async (folder) => {
      await writeModel(folder, 64, 2)
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
