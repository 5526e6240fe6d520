import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import OpenAI, { APIError } from "openai"
import { execute, type PreparedGateway } from "../../../../src/agents/gateway/run/execute.ts"
import { lineOf } from "../../../../src/agents/gateway/run/journal.ts"
import { prepare } from "../../../../src/agents/gateway/run/prepare.ts"
import type { Rollout } from "../../../../src/agents/episode/Rollout.ts"
import * as Node from "../../../../src/node.ts"
import { runLog } from "../../../../src/run/record/runLog.ts"
import { scores } from "../../../../src/run/record/scores.ts"
import { Recorder } from "../../../../src/run/record/Recorder.ts"
import { RunStore } from "../../../../src/run/store/RunStore.ts"
import { disk } from "../../../run/store/disk.ts"
import { serve } from "../../lm/server.ts"
import { send } from "../opened.ts"
import { ask, fileIn, rolloutsIn, running, text } from "./running.ts"

const messages = [{ role: "user" as const, content: "Hi there" }]
const machine = Layer.mergeAll(disk, Node.httpClient)

describe("requests that must not open a session", () => {
  it.live("are those that pages of other sites can send, and those to no route", () =>
    Effect.gen(function* () {
      const { used } = yield* running({}, (url) =>
        Effect.gen(function* () {
          const at = `${url}/sessions/new`
          const body = JSON.stringify({ model: "quick", messages })
          const embedded = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" }
          const answers = [
            yield* send(`${at}/x.png`, { method: "GET" }),
            yield* send(`${at}/v1/chat/completions`, { method: "GET" }),
            yield* send(`${at}/v1/chat/completions`, { body, headers: { "content-type": "text/plain" } }),
            yield* send(`${at}/v1/chat/completions`, { body, headers: embedded }),
            yield* send(`${at}/v1/models`, { method: "GET" }),
          ]
          const health = yield* send(`${url}/health`, { method: "GET" })
          return { statuses: answers.map(({ status }) => status), models: answers[4].text, health: health.text }
        }),
      )
      assert.deepStrictEqual(used.statuses, [404, 404, 415, 403, 200])
      assert.match(used.models, /"id":"quick"/)
      assert.strictEqual(JSON.parse(used.health).sessions, 0)
    }).pipe(Effect.provide(machine)),
  )

  it.live("are those without the gateway's key, whose bodies are not even read", () =>
    Effect.gen(function* () {
      const { used } = yield* running({ key: "right" }, (url) =>
        Effect.forEach(["wrong", "right"], (key) => send(`${url}/sessions`, { key, body: "{" })),
      )
      assert.deepStrictEqual(
        used.map(({ status }) => status),
        [401, 400],
      )
    }).pipe(Effect.provide(machine)),
  )
})

describe("a gateway that is a run", () => {
  it.live("writes a rollout as soon as a session ends, and the others when it is interrupted", () =>
    Effect.gen(function* () {
      const files = new Map<string, Uint8Array>()
      const { used } = yield* running({ files }, (url) =>
        Effect.gen(function* () {
          const opened = yield* send(`${url}/sessions`, { body: '{"agent":"mine","group":"g","tags":{"task":"7"}}' })
          const { id, base_url, api_key } = JSON.parse(opened.text)
          const client = new OpenAI({ baseURL: base_url, apiKey: api_key, maxRetries: 0 })
          yield* Effect.promise(() => client.chat.completions.create({ model: "quick", messages }))
          const at = `${url}/sessions/${id}`
          yield* send(`${at}/reward`, { key: api_key, body: '{"reward":1}' })
          yield* send(`${at}/end`, { key: api_key, body: "{}" })
          yield* ask(url, "by use")
          return rolloutsIn(files)
        }),
      )
      assert.deepStrictEqual(
        used.map(({ id, totalReward }) => [id, totalReward]),
        [["session-000001", 1]],
      )
      assert.deepStrictEqual(used[0].meta.tags, { task: "7" })
      assert.deepStrictEqual([used[0].meta.agent, used[0].meta.groupId], ["mine", "g"])
      const [, second] = rolloutsIn(files)
      assert.deepStrictEqual([second.id, second.ending.truncated, second.steps.length], ["by use", true, 1])
      const metrics = JSON.parse(fileIn(files, "metrics.json") ?? "{}")
      assert.deepStrictEqual([metrics.episodes, metrics.steps, metrics.mean_reward], [2, 2, 1])
      assert.match(fileIn(files, "config.yaml") ?? "", /kind: gateway/)
      assert.match(fileIn(files, "run.log") ?? "", /finished at episode 2/)
    }).pipe(Effect.provide(machine)),
  )

  it.live("continues after a kill from what its journal has, without what was half written", () =>
    Effect.gen(function* () {
      const files = new Map<string, Uint8Array>()
      const { used: killed } = yield* running({ files }, (url) =>
        Effect.gen(function* () {
          yield* ask(url, "a")
          yield* ask(url, "b")
          yield* send(`${url}/sessions/a/end`, { body: "{}" })
          return new Map(files)
        }),
      )
      const journal = [...killed.keys()].find((path) => path.endsWith("sessions.jsonl")) ?? ""
      const half = new Uint8Array([...(killed.get(journal) ?? []), ...new TextEncoder().encode('{"_tag":"Call","id')])
      killed.set(journal, half)
      const resume = journal.replace("/sessions.jsonl", "")
      const { used, exit } = yield* running({ files: killed, resume }, (url) =>
        Effect.gen(function* () {
          const before = rolloutsIn(killed).map(({ id, ending }) => [id, ending.truncated])
          const late = yield* Effect.flip(ask(url, "a"))
          yield* ask(url, "c")
          return { before, status: late instanceof APIError ? late.status : undefined }
        }),
      )
      assert.deepStrictEqual(used, {
        before: [
          ["a", false],
          ["b", true],
        ],
        status: 410,
      })
      assert.isTrue(Exit.isFailure(exit))
      assert.deepStrictEqual(
        rolloutsIn(killed).map(({ id }) => id),
        ["a", "b", "c"],
      )
      assert.strictEqual(JSON.parse(fileIn(killed, "metrics.json") ?? "{}").steps, 3)
    }).pipe(Effect.provide(machine)),
  )

  it.live("continues after it was stopped, with all that it had recorded and its time", () =>
    Effect.gen(function* () {
      const { files } = yield* running({}, (url) => Effect.all([ask(url, "a"), ask(url, "b", "none", "Again")]))
      const end = "/metrics.json"
      const path = [...files.keys()].find((path) => path.endsWith(end)) ?? ""
      const metrics = JSON.parse(fileIn(files, end) ?? "{}")
      files.set(path, new TextEncoder().encode(JSON.stringify({ ...metrics, wall_seconds: 5000 })))
      const resume = path.slice(0, -end.length)
      yield* running({ files, resume }, (url) => ask(url, "c"))
      assert.deepStrictEqual(
        rolloutsIn(files).map(({ id }) => id),
        ["a", "b", "c"],
      )
      const later = JSON.parse(fileIn(files, end) ?? "{}")
      assert.deepStrictEqual([later.episodes, later.steps], [3, 3])
      assert.isAtLeast(later.wall_seconds, 5000)
    }).pipe(Effect.provide(machine)),
  )

  it.live("counts the time of a killed process", () =>
    Effect.gen(function* () {
      const files = new Map<string, Uint8Array>()
      const { used: killed } = yield* running({ files }, (url) =>
        Effect.gen(function* () {
          yield* ask(url, "a")
          yield* send(`${url}/sessions/a/end`, { body: "{}" })
          return new Map(files)
        }),
      )
      const journal = [...killed.keys()].find((path) => path.endsWith("sessions.jsonl")) ?? ""
      const spent = { calls: 7, inputTokens: 0, outputTokens: 0, money: 0 }
      const more = new TextEncoder().encode(lineOf({ _tag: "Embedded", id: "a", spent, seconds: 5000 }))
      killed.set(journal, new Uint8Array([...(killed.get(journal) ?? []), ...more]))
      const resume = journal.replace("/sessions.jsonl", "")
      yield* running({ files: killed, resume }, () => Effect.void)
      assert.isAtLeast(JSON.parse(fileIn(killed, "metrics.json") ?? "{}").wall_seconds, 5000)
    }).pipe(Effect.provide(machine)),
  )

  it.live("refuses to resume without an intact journal, and leaves all files alone", () =>
    Effect.gen(function* () {
      const { files } = yield* running({}, (url) => ask(url, "a"))
      const journal = [...files.keys()].find((path) => path.endsWith("sessions.jsonl")) ?? ""
      const resume = journal.replace("/sessions.jsonl", "")
      const whole = files.get(journal) ?? new Uint8Array()
      const failing = Effect.fnUntraced(function* (content: Uint8Array | undefined) {
        if (content === undefined) files.delete(journal)
        else files.set(journal, content)
        const before = rolloutsIn(files)
        const prepared = yield* prepare({ lmConfig: { model: "scripted:echo" } }, { source: "test", overrides: [] })
        const { layer } = RunStore.memory({ files, resume })
        const gateway: PreparedGateway = {
          ...prepared,
          key: null,
          listen: () => Effect.die("it listens"),
          onListening: () => Effect.void,
        }
        const { message } = yield* execute(gateway).pipe(
          Effect.scoped,
          Effect.provide(Layer.mergeAll(layer, Recorder.layer(runLog, scores))),
          Effect.flip,
        )
        assert.deepStrictEqual(rolloutsIn(files), before)
        assert.isDefined(fileIn(files, "/metrics.json"))
        return message
      })
      const changed = new TextEncoder().encode(text.decode(whole).replace("external", "another"))
      assert.match(yield* failing(changed), /sessions.jsonl:1: the line was changed after it was written/)
      assert.match(yield* failing(undefined), /sessions.jsonl: expected the journal of the gateway, found no file/)
    }).pipe(Effect.provide(machine)),
  )

  it.live("gives ids that no client has taken", () =>
    Effect.gen(function* () {
      const { used } = yield* running({}, (url) =>
        Effect.gen(function* () {
          yield* ask(url, "session-000002")
          const ids: Array<string> = []
          for (let nth = 0; nth < 3; nth++)
            ids.push(JSON.parse((yield* send(`${url}/sessions`, { body: "{}" })).text).id)
          return ids
        }),
      )
      assert.deepStrictEqual(used, ["session-000003", "session-000004", "session-000005"])
    }).pipe(Effect.provide(machine)),
  )

  it.live("opens sessions only with its key, and each call only with the session's", () =>
    Effect.gen(function* () {
      const key = "sesame-sesame"
      const { used, files } = yield* running({ key, config: { maxSessions: 2 } }, (url) =>
        Effect.gen(function* () {
          const statuses: Array<number> = []
          const post = Effect.fnUntraced(function* (path: string, body: string, sent?: string) {
            const { status, text } = yield* send(`${url}${path}`, {
              body,
              ...(sent === undefined ? {} : { key: sent }),
            })
            statuses.push(status)
            return text
          })
          yield* post("/sessions", "{}")
          yield* post("/sessions", "{}", "wrong")
          const opened = JSON.parse(yield* post("/sessions", '{"id":"a"}', key))
          yield* post("/sessions", '{"id":"a"}', key)
          yield* post("/sessions", '{"id":"../a"}', key)
          yield* post("/sessions", '{"tags":{"a":1}}', key)
          yield* post("/sessions/a/end", "{}", key)
          yield* post("/sessions/b/reward", '{"reward":1}', opened.api_key)
          yield* post("/sessions/b/reward", '{"reward":1}', key)
          yield* post("/sessions/c/reward", '{"reward":1}', key)
          yield* post("/sessions/a/end", "{}", opened.api_key)
          return statuses
        }),
      )
      assert.deepStrictEqual(used, [401, 401, 200, 409, 400, 400, 401, 401, 200, 429, 200])
      for (const content of files.values()) assert.notInclude(text.decode(content), key)
    }).pipe(Effect.provide(machine)),
  )

  it.live("passes embeddings on, and asks the server for the models of aliases", () =>
    Effect.gen(function* () {
      const server = yield* serve({ say: () => "Hello" })
      const lmConfig = { model: "default", protocol: "openai", baseUrl: server.url }
      const config = { lmConfig, anyModel: true, aliases: [{ name: "quick", model: "small-1" }] }
      const { used } = yield* running({ config }, (url) =>
        Effect.gen(function* () {
          yield* ask(url, "a")
          const answers: Array<string> = []
          for (const model of ["quick", "other"]) {
            const { text } = yield* send(`${url}/sessions/a/v1/embeddings`, {
              body: JSON.stringify({ model, input: "Hi" }),
            })
            answers.push(text)
          }
          return answers
        }),
      )
      assert.deepStrictEqual(used, ['{"data":[]}', '{"data":[]}'])
      assert.deepStrictEqual(
        server.asked.map(({ path, body }) => [path, body.model]),
        [
          ["/v1/chat/completions", "small-1"],
          ["/v1/embeddings", "small-1"],
          ["/v1/embeddings", "other"],
        ],
      )
    }).pipe(Effect.provide(machine)),
  )

  it.live("counts embeddings against the budget, after a resume too", () =>
    Effect.gen(function* () {
      const fault = () => ({ kind: "body" as const, body: '{"data":[],"usage":{"prompt_tokens":7}}' })
      const server = yield* serve({ fault })
      const lmConfig = { model: "m", protocol: "openai", baseUrl: server.url, budget: { tokens: 14 } }
      const files = new Map<string, Uint8Array>()
      const body = JSON.stringify({ model: "m", input: "Hi" })
      const embed = (url: string, id: string) => send(`${url}/sessions/${id}/v1/embeddings`, { body })
      const { used } = yield* running({ files, config: { lmConfig } }, (url) => embed(url, "a"))
      assert.strictEqual(used.status, 200)
      const journal = [...files.keys()].find((path) => path.endsWith("sessions.jsonl")) ?? ""
      const resume = journal.replace("/sessions.jsonl", "")
      const later = yield* running({ files, resume, config: { lmConfig } }, (url) =>
        Effect.all([embed(url, "b"), embed(url, "b")]),
      )
      assert.deepStrictEqual(
        later.used.map(({ status }) => status),
        [200, 429],
      )
      assert.match(later.used[1].text, /insufficient_quota/)
      assert.strictEqual(server.asked.length, 2)
    }).pipe(Effect.provide(machine)),
  )

  it.live("gives each session a seed of its own, always the same for the same id", () =>
    Effect.gen(function* () {
      const seeds = (rollouts: ReadonlyArray<Rollout>) => rollouts.map(({ meta }) => meta.samplingSeed)
      const talk = (url: string) => Effect.all([ask(url, "a"), ask(url, "b", "none", "Again")])
      const one = yield* running({ config: { seed: 3 } }, talk)
      const other = yield* running({ config: { seed: 3 } }, talk)
      const different = yield* running({ config: { seed: 4 } }, talk)
      assert.deepStrictEqual(seeds(rolloutsIn(one.files)), seeds(rolloutsIn(other.files)))
      assert.notDeepEqual(seeds(rolloutsIn(one.files)), seeds(rolloutsIn(different.files)))
    }).pipe(Effect.provide(machine)),
  )
})
