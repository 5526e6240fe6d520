import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import OpenAI from "openai"
import { assert, describe, it } from "vitest"
import { command } from "../../../src/command/cli/command.ts"
import { exitCodeOf } from "../../../src/command/cli/output/errors.ts"
import { Output } from "../../../src/command/cli/output/output.ts"
import { effect, root, withFolder, write } from "./effect.ts"

const model = join(root, "test/fixtures/hugging-face/llama")
const poet = join(model, "adapter")
const small = ["--port", "0", "--backend", "wasm", "--max-model-len", "64", "--slots", "2", "--max-lora-rank", "4"]

interface Served {
  readonly client: OpenAI
  /** The output of the command on stdout. */
  readonly printed: string
  readonly stderr: () => string
}

/** Runs `effect serve` in this process, and interrupts it as Ctrl-C does when the test is over. Returns its exit code. */
const serving = async (args: ReadonlyArray<string>, test: (served: Served) => Promise<void>): Promise<number> => {
  const controller = new AbortController()
  let stderr = ""
  let printed: (text: string) => void = () => {}
  const address = new Promise<string>((resolve) => (printed = resolve))
  const running = command(["serve", ...args]).pipe(
    Effect.provideService(Output, {
      stdout: (text) => Effect.sync(() => printed(text)),
      stderr: (text) => void (stderr += text),
    }),
    Effect.provide(NodeServices.layer),
  )
  const ended = Effect.runPromiseExit(running, { signal: controller.signal })
  const early = ended.then((): string => {
    throw new Error(`the command ended: ${stderr}`)
  })
  const text = await Promise.race([address, early])
  early.catch(() => {})
  const baseURL = /http:[^\s"]+/.exec(text)?.[0] ?? ""
  const apiKey = /API key: (.+)/.exec(stderr)?.[1] ?? "none"
  try {
    const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 })
    await test({ client, printed: text, stderr: () => stderr })
  } finally {
    controller.abort()
  }
  return exitCodeOf(await ended)
}

const namesOf = async (client: OpenAI): Promise<ReadonlyArray<string>> =>
  (await client.models.list()).data.map(({ id }) => id)

const ask = (name: string) => ({
  model: name,
  messages: [{ role: "user" as const, content: "Hello" }],
  max_tokens: 8,
  temperature: 0,
})

describe("effect serve", () => {
  it("serves a model of Hugging Face with an adapter, beside it or merged, and ends at Ctrl-C", async () => {
    const code = await serving(
      [model, ...small, "--adapter", `poet=${poet}`, "--json"],
      async ({ client, printed }) => {
        const { url, ...line } = JSON.parse(printed)
        assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/v1$/)
        assert.deepStrictEqual(line, { model: "llama", models: ["llama", "poet"], maxModelLen: 64, apiKey: null })
        assert.deepStrictEqual(await namesOf(client), ["llama", "poet"])
        const [base, adapted] = await Promise.all([
          client.chat.completions.create(ask("llama")),
          client.chat.completions.create(ask("poet")),
        ])
        assert.strictEqual(adapted.system_fingerprint, "poet@0")
        assert.notStrictEqual(adapted.choices[0].message.content, base.choices[0].message.content)
        await serving([model, ...small, "--merge", poet], async ({ client }) => {
          assert.deepStrictEqual(await namesOf(client), ["llama"])
          const merged = await client.chat.completions.create(ask("llama"))
          assert.strictEqual(merged.choices[0].message.content, adapted.choices[0].message.content)
        })
      },
    )
    assert.strictEqual(code, 130)
  })

  it("prints its address and an example that works", () =>
    serving([model, ...small, "--name", "tiny", "--host", "0.0.0.0"], async ({ client, printed, stderr }) => {
      assert.match(printed, /^http:\/\/localhost:\d+\/v1\n$/)
      const [, url, key, body] =
        /^curl (\S+) -H 'content-type: application\/json' -H '(.+)' -d '(.+)'$/m.exec(stderr()) ?? []
      const headers = { "content-type": "application/json", authorization: key.replace("authorization: ", "") }
      const answer = await fetch(url, { method: "POST", headers, body })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual((await fetch(url, { method: "POST", body })).status, 401)
      assert.deepStrictEqual(await namesOf(client), ["tiny"])
      assert.include(stderr(), "serving tiny; stop with Ctrl-C")
    }).then(() => {}))

  it("prints with --tinker where clients of Tinker find it", { tags: "slow" }, () =>
    withFolder((folder) =>
      serving([model, ...small, "--name", "tiny", "--tinker", "--tinker-dir", folder], async ({ stderr }) => {
        const [, address] =
          /^for Tinker's clients: TINKER_BASE_URL=(\S+) TINKER_API_KEY=tml-local$/m.exec(stderr()) ?? []
        const answer = await fetch(`${address}/api/v1/get_server_capabilities`)
        const models = [{ model_name: "tiny", max_context_length: 64 }]
        assert.deepStrictEqual(await answer.json(), { supported_models: models })
      }),
    ).then(() => {}),
  )

  it("loads each broadcast of a run, and skips one that is broken", () =>
    withFolder(async (folder) => {
      const run = join(folder, "run_a")
      const publish = (step: number): void => {
        const path = join(run, `broadcast/step_${step}`)
        mkdirSync(join(run, "broadcast"), { recursive: true })
        cpSync(poet, path, { recursive: true })
        writeFileSync(join(path, "STABLE"), "")
      }
      const fingerprintOf = async (client: OpenAI) =>
        (await client.chat.completions.create(ask("run_a"))).system_fingerprint
      await serving([model, ...small, "--watch", folder, "--verbose"], async ({ client, stderr }) => {
        assert.deepStrictEqual(await namesOf(client), ["llama"])
        publish(1)
        while (!(await namesOf(client)).includes("run_a"));
        assert.strictEqual(await fingerprintOf(client), "run_a@1")
        publish(2)
        while ((await fingerprintOf(client)) !== "run_a@2");
        assert.include(stderr(), "run_a: loaded step 2")
        writeFileSync(join(run, "broadcast/step_2/adapter_config.json"), "{")
        cpSync(join(run, "broadcast/step_2"), join(run, "broadcast/step_3"), { recursive: true })
        while (!stderr().includes("step 3 was not loaded")) await namesOf(client)
      })
    }))

  it("serves the base model that a run's newest adapter names, and the adapter", () =>
    withFolder(async (folder) => {
      const path = join(folder, "run_b/broadcast/step_4")
      mkdirSync(join(folder, "run_b/broadcast"), { recursive: true })
      cpSync(poet, path, { recursive: true })
      const config = JSON.parse(readFileSync(join(poet, "adapter_config.json"), "utf8"))
      const named = (base: string) =>
        writeFileSync(join(path, "adapter_config.json"), JSON.stringify({ ...config, base_model_name_or_path: base }))
      named("elsewhere")
      writeFileSync(join(path, "STABLE"), "")
      const { stderr } = await effect(["serve", join(folder, "run_b")])
      assert.include(
        stderr,
        "its base model is elsewhere, which is no folder here; serve the base model: effect serve MODEL",
      )
      named(model)
      // The trainer's folder, which has a config.json of its own, stands for its only run.
      write(folder, "config.json", "{}")
      await serving([folder, ...small], async ({ client, stderr }) => {
        while (!(await namesOf(client)).includes("run_b"));
        assert.include(stderr(), "run_b: loaded step 4, then each newer one\n")
        const { system_fingerprint } = await client.chat.completions.create(ask("run_b"))
        assert.strictEqual(system_fingerprint, "run_b@4")
      })
    }))

  it("names what is wrong with its arguments", () =>
    withFolder(async (folder) => {
      const wrong = async (...args: ReadonlyArray<string>) => {
        const { code, stderr } = await effect(["serve", ...args], folder)
        assert.isAbove(code ?? 0, 0)
        assert.lengthOf(stderr.trim().split("\n"), 1, stderr)
        return stderr
      }
      assert.include(await wrong("none"), "none: there is no such folder")
      assert.include(await wrong("latest"), "latest:")
      assert.include(
        await wrong("."),
        ".: expected config.json of a model, adapter_config.json of an adapter, or a run with",
      )
      assert.include(
        await wrong(poet),
        `expected a model, found an adapter; serve its base model: effect serve MODEL --adapter`,
      )
      assert.include(await wrong(model, "--port", "70000"), '--port: "70000". Expected: a value between 0 and 65535')
      for (const flag of ["--slots", "--page-size", "--max-lora-rank", "--max-model-len", "--max-requests"])
        for (const value of ["0", "1000000000"])
          assert.include(await wrong(model, flag, value), `${flag}: "${value}". Expected: a value between 1 and `)
      assert.include(await wrong(model, "--max-adapters", "1000000000"), "Expected: a value between 0 and 4096")
      assert.include(await wrong(model, "--threads", "1000000"), "between 1 and 1024 (each is a thread), or auto")
      assert.strictEqual(
        await wrong(model, "--max-model-len", "257"),
        "effect: --max-model-len: expected at most 256, the model's positions (max_position_embeddings), found 257\n",
      )
      assert.strictEqual(
        await wrong(model, "--max-lora-rank", "65"),
        "effect: --max-lora-rank: expected at most 64, the model's hidden size, beyond which a rank adds nothing; found 65\n",
      )
      assert.include(
        await wrong(model, "--enable-return-routed-experts"),
        "--enable-return-routed-experts: expected a model with experts, such as Qwen3-MoE, found one without",
      )
      assert.include(await wrong(model, "--adapter", "poet"), '--adapter: expected name=path, found "poet"')
      assert.include(await wrong(model, ...small, "--adapter", "poet=none"), "none/adapter_config.json")
      assert.include(await wrong(model, "--merge", "none"), "none/adapter_config.json")
      assert.include(
        await wrong(model, "--merge", poet, "--watch", "."),
        "--merge: expected neither --tinker nor broadcasts of a run",
      )
      assert.include(
        await wrong(model, "--tinker", "--adapter", "poet=none", "--max-adapters", "1"),
        "--max-adapters: expected at least 2 with --tinker",
      )
      assert.include(await wrong(model, "--watch", "none"), "--watch: there is no folder none")
      write(folder, "config.json", "{}")
      assert.include(await wrong("."), "config.json: model_type")
      mkdirSync(join(folder, "trainer"))
      write(
        folder,
        "trainer/config.yaml",
        `kind: multirun\nmodel: { type: folder, path: ${model} }\ntrainer: { width: 64, lora: { rank: 2 } }\nruns: {}\n`,
      )
      assert.include(await wrong("trainer", "--max-model-len", "257"), "--max-model-len: expected at most 256")
      assert.include(await wrong("trainer", "--max-lora-rank", "65"), "--max-lora-rank: expected at most 64")
      for (const run of ["run_a", "run_b"]) mkdirSync(join(folder, run))
      assert.include(await wrong("."), ".: it has several runs; name one of them: run_a, run_b")
    }))
})
