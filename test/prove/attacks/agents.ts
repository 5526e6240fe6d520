/** Attacks by what agents play, call or import: servers of OpenEnv, tasks of Harbor, logs of other tools, and their clients. */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { get } from "node:http"
import { join } from "node:path"
import { Effect } from "effect"
import { servedTasks } from "../../../src/agents/openenv/ServedTasks.ts"
import { listen } from "../../../src/agents/openenv/listen-node.ts"
import { actionForm } from "../../../src/agents/task/openenv/actions.ts"
import * as Datasets from "../../../src/agents/task/Datasets.ts"
import { platform } from "../../../src/node.ts"
import { readAnswer } from "../../../src/spread/openenv/messages.ts"
import { start } from "../../command/cli/effect.ts"
import { must } from "../Proof.ts"
import type { Attack } from "./Attack.ts"

/** Fails if a function takes longer than a hostile input may hold up a run. */
const inTime = <A>(work: () => A): A => {
  const begun = performance.now()
  const result = work()
  must(performance.now() - begun < 10_000, "it took more than 10 s")
  return result
}

/** Returns the status of a response. Fetch would not send these headers. */
const statusOf = (url: string, headers: Readonly<Record<string, string>>): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on("error", reject)
  })

/** Runs `effect import`, which must refuse the file with a message. */
const importProblem = async (folder: string, name: string, value: unknown): Promise<string> => {
  writeFileSync(join(folder, name), typeof value === "string" ? value : JSON.stringify(value))
  const { code, stderr } = await start(["import", name], folder, {}).ended
  must(code === 2, `effect import ${name} ended with the code ${code}: ${stderr}`)
  return stderr.trim().slice(0, 100)
}

const text = "x".repeat(20_000)
const calls = [{ tool_call_id: "c", function_name: "f", arguments: { text } }]
const steps = Array.from({ length: 400 }, (_, at) => ({
  step_id: at + 1,
  source: "agent",
  message: "",
  tool_calls: calls,
}))

export const agentAttacks: ReadonlyArray<Attack> = [
  {
    door: "servers of OpenEnv",
    name: "a Schema whose alternatives refer to each other, and answers of objects without a text",
    attempt: async () => {
      const again = { $ref: "#/$defs/again" }
      const properties = { a: again, b: { type: "__proto__" } }
      const form = actionForm(
        { type: "object", properties, $defs: { again: { anyOf: [again, again, again] } } },
        { actionKey: null, actionDefaults: {} },
      )
      must(!("problem" in form) && form.action !== null, "the Schema has no actions")
      if (!("problem" in form)) inTime(() => form.action?.('{"a": 1, "b": 1}'))
      const answer = readAnswer('{"type":"observation","data":{"observation":{},"reward":{"toString":1,"valueOf":1}}}')
      must("problem" in answer, "the answer was taken")
      return "the check ended, the answer was refused"
    },
  },
  {
    door: "effect openenv",
    name: "pages of other sites and names of other hosts, at each address",
    attempt: () =>
      Effect.gen(function* () {
        const { tasks } = yield* Datasets.open({ type: "arithmetic" }, { baseDir: "." })
        const url = `http://127.0.0.1:${yield* listen(yield* servedTasks(tasks))}`
        const headers: ReadonlyArray<Readonly<Record<string, string>>> = [
          { origin: "http://example.org" },
          { host: "example.org" },
          { origin: "null" },
        ]
        for (const path of ["/health", "/schema", "/mcp", "/ws", "/reset"]) {
          for (const one of headers) {
            const status = yield* Effect.promise(() => statusOf(`${url}${path}`, one))
            must(status === 403 || status === 421, `${path} answered ${status} to ${JSON.stringify(one)}`)
          }
        }
        return `${5 * headers.length} requests were refused`
      }).pipe(Effect.scoped, Effect.provide(platform), Effect.runPromise),
  },
  {
    door: "tasks of Harbor",
    name: "a task whose instruction is a link to a file of the user",
    attempt: (folder) =>
      Effect.gen(function* () {
        mkdirSync(join(folder, "task/tests"), { recursive: true })
        writeFileSync(join(folder, "task/task.toml"), "[task]\n")
        writeFileSync(join(folder, "task/tests/test.sh"), "echo 1 > /logs/verifier/reward.txt")
        writeFileSync(join(folder, "secret"), "the user's secret")
        symlinkSync("../secret", join(folder, "task/instruction.md"))
        const opening = Datasets.open({ type: "harbor", dataset_path: "task" }, { baseDir: folder })
        const { message } = yield* Effect.flip(opening)
        must(message.includes("found a link"), message)
        return message.slice(-60)
      }).pipe(Effect.scoped, Effect.provide(platform), Effect.runPromise),
  },
  {
    door: "logs of other tools",
    name: "a damaged log of quotes, a long text that is named often, and calls that all prompts repeat",
    attempt: async (folder) => {
      await importProblem(folder, "quotes.json", `NaN "${'\\"'.repeat(1_000_000)}`)
      const content = Array.from({ length: 1000 }, () => ({ type: "text", text: "attachment://k" }))
      const messages = [{ role: "user", content }]
      const attachments = { k: text.repeat(50) }
      const samples = [{ id: 1, epoch: 1, input: "", target: "", attachments, messages }]
      const log = { version: 2, status: "success", eval: { task: "t", model: "m" }, samples }
      await importProblem(folder, "parts.json", log)
      const agent = { name: "a", version: "1" }
      return importProblem(folder, "calls.json", { schema_version: "ATIF-v1.7", agent, steps })
    },
  },
]
