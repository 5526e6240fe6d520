import { mkdirSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { command } from "../../../src/command/cli/command.ts"
import { exitCodeOf } from "../../../src/command/cli/output/errors.ts"
import { Output } from "../../../src/command/cli/output/output.ts"
import { effect, withFolder, write } from "./effect.ts"
import { withVariables } from "./withVariables.ts"

/** Runs `effect openenv` in this process, and interrupts it as Ctrl-C does when the test is over. Returns its exit code. */
const serving = async (args: ReadonlyArray<string>, test: (url: string) => Promise<void>): Promise<number> => {
  const controller = new AbortController()
  let stderr = ""
  const address = Promise.withResolvers<string>()
  const running = command(["openenv", ...args, "--port", "0"]).pipe(
    Effect.provideService(Output, {
      stdout: (text) => Effect.sync(() => address.resolve(text.trim())),
      stderr: (text) => void (stderr += text),
    }),
    Effect.provide(NodeServices.layer),
  )
  const ended = Effect.runPromiseExit(running, { signal: controller.signal })
  const early = ended.then((): string => {
    throw new Error(`the command ended: ${stderr}`)
  })
  early.catch(() => {})
  try {
    await test(await Promise.race([address.promise, early]))
  } finally {
    controller.abort()
  }
  return exitCodeOf(await ended)
}

const reset = async (url: string, body: object = { seed: 1 }): Promise<unknown> => {
  const headers = { "content-type": "application/json" }
  const response = await fetch(`${url}/reset`, { method: "POST", headers, body: JSON.stringify(body) })
  return response.json()
}

const nameAt = async (url: string): Promise<string> => (await fetch(`${url}/metadata`)).text()

describe("effect openenv", () => {
  it("serves an env, a kind of data set, and what a file describes", async () => {
    const code = await serving(["CartPole-v1"], async (url) => {
      assert.match(await nameAt(url), /CartPole-v1: an observation has 4 numbers/)
      assert.match(JSON.stringify(await reset(url)), /^\{"observation":\{"values":\[(-?\d[\d.e-]*,?){4}\]\}/)
    })
    assert.strictEqual(code, 130)
    await serving(["GridWorld", "--set", "size=5"], async (url) => assert.match(await nameAt(url), /GridWorld/))
    const settings = ["--set", "num_tasks=3", "--set", "max_digits=1"]
    await serving(["arithmetic", ...settings, "--key", "key-of-8"], async (url) => {
      assert.match(url, /\/key-of-8$/)
      assert.match(await nameAt(url), /3 tasks of the type arithmetic/)
      const first = await reset(url, { task: 2 })
      assert.deepStrictEqual(await reset(url, { task: 2 }), first)
    })
    await withFolder(async (folder) => {
      const env = write(folder, "train.yaml", "env: { name: KeyDoor, size: 6, max_steps: 9 }\n")
      await serving([env], async (url) => assert.match(await nameAt(url), /KeyDoor/))
      const items = '{ type: qa, items: [{ question: "2 + 2?", answer: "4" }] }'
      const tasks = write(folder, "experiment.yaml", `train_dataset: ${items}\n`)
      await serving([tasks], async (url) => assert.match(JSON.stringify(await reset(url)), /2 \+ 2\?/))
    })
  })

  it("says what is wrong", () =>
    withFolder(async (folder) => {
      const of = async (...words: ReadonlyArray<string>) => {
        const { code, stderr } = await effect(["openenv", ...words], folder)
        return `${code} ${stderr.trim()}`
      }
      assert.match(
        await of("arithmetics"),
        /^2 effect: arithmetics: there is no such env, kind of data set or YAML file; did you mean "arithmetic"\?/,
      )
      assert.match(await of("arithmetic", "--key", "short"), /^2 effect: --key: expected at least 8 letters/)
      assert.match(await of("arithmetic", "--set", "num_task=3"), /^2 effect: .*num_task.*did you mean/)
      assert.match(await of("none.yaml"), /^2 effect: none.yaml/)
      write(folder, "wrong.yaml", "train_dataset: { type: arithmetic, num_tasks: 0 }\n")
      assert.match(await of("wrong.yaml"), /^2 effect: wrong.yaml:1: train_dataset.num_tasks: expected/)
    }))

  it("starts the programs that files of the user name, and asks about others", () =>
    withFolder((folder) =>
      Effect.gen(function* () {
        yield* withVariables({ XDG_CONFIG_HOME: join(folder, "settings") })
        mkdirSync(join(folder, "results/run"), { recursive: true })
        const program = "train_dataset: { type: foreign, id: x, num_tasks: 1, command: [./none] }\n"
        const errorOf = (file: string) =>
          Effect.map(
            Effect.promise(() => effect(["openenv", write(folder, file, program)], folder)),
            ({ code, stderr }) => `${code} ${stderr}`,
          )
        assert.match(yield* errorOf("results/run/config.yaml"), /^2 effect: .*: train_dataset.command: it would start/)
        // The program is started, and in this case not found.
        assert.match(yield* errorOf("own.yaml"), /^2 effect: .*own.yaml:1: train_dataset.command: x: .*none/)
      }).pipe(Effect.scoped, Effect.runPromise),
    ))
})
