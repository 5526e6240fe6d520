import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { stream } from "../../../../src/base/rng/Rng.ts"
import type { Plain } from "../../../../src/base/config/plain.ts"
import { refuseAll, Trust } from "../../../../src/base/trust/Trust.ts"
import { makeServers } from "../../../../src/spread/openenv/connect-node.ts"
import { OpenEnvServers } from "../../../../src/spread/openenv/OpenEnvServers.ts"
import {
  advanced,
  type FaultyServer,
  hangsUp,
  never,
  observation,
  recorded,
  refusal,
  serve,
} from "../../../spread/openenv/served.ts"
import { opened, problem } from "../opening.ts"
import { play, saying } from "../support.ts"

const connected = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideServiceEffect(effect, OpenEnvServers, makeServers)

/** Serves, and opens a data set of that server. */
const tasksOf = Effect.fnUntraced(function* (server: FaultyServer, more: object = {}) {
  const served = yield* serve(server)
  const { tasks } = yield* connected(opened({ type: "openenv", url: served.url, ...more }))
  return { tasks, served }
})

/** Plays the first task of a server, and returns its failure. */
const failureOf = (server: FaultyServer, more: object = {}, answer = "on") =>
  Effect.gen(function* () {
    const { tasks, served } = yield* tasksOf(server, more)
    const { message } = yield* Effect.flip(play(yield* tasks.at(0), saying(answer)))
    return message.replace(served.url, "URL")
  }).pipe(Effect.scoped)

const openingFailure = (server: FaultyServer, more: object = {}) =>
  Effect.gen(function* () {
    const served = yield* serve(server)
    const message = yield* connected(problem({ type: "openenv", url: served.url, ...more }))
    return message.replace(served.url, "URL")
  }).pipe(Effect.scoped)

const schemaOf = (properties: Plain, required: ReadonlyArray<string> = Object.keys(properties)) => ({
  action: {
    type: "object",
    properties: { metadata: { type: "object" }, ...properties },
    required,
    additionalProperties: false,
  },
  observation: { type: "object" },
})

const textSchema = schemaOf({ message: { type: "string" } })

/** Counts the steps of each session, and ends the third. */
const counting = (): FaultyServer => {
  const steps = new Map<number, number>()
  return {
    schema: textSchema,
    answer: ({ type }, session) => {
      const at = type === "reset" ? 0 : (steps.get(session) ?? 0) + 1
      steps.set(session, at)
      return observation({ text: `At ${at}.` }, { reward: at === 3 ? 0.5 : 0.25, done: at === 3 })
    },
  }
}

describe("a task that a server of OpenEnv plays", () => {
  it.effect("sends a seed of the run, and sums the rewards of the steps", () =>
    Effect.gen(function* () {
      const { tasks, served } = yield* tasksOf(counting(), {
        num_tasks: 5,
        id: "count",
        options: { up_to: 3 },
        task_key: "task_id",
        prompt: "Count.",
      })
      assert.deepStrictEqual([tasks.name, tasks.size], ["count", 5])
      const { observations, score, terminated, steps } = yield* play(yield* tasks.at(2), saying("a", "think: b", "c"))
      assert.deepStrictEqual(observations, ["Count.\n\nAt 0.", "At 1.", "OK.", "At 2.", "At 3."])
      assert.deepStrictEqual([score, terminated], [1, true])
      assert.deepStrictEqual(steps[0].feedback, { score: 0.25, target: null, message: "At 1." })
      const seed = stream(1, "env").child("begin").uint32()
      assert.deepStrictEqual(served.messages.slice(0, 2), [
        { type: "reset", data: { up_to: 3, seed, episode_id: `count-3-${seed}`, task_id: 2 } },
        { type: "step", data: { message: "a" } },
      ])
    }).pipe(Effect.scoped),
  )

  it.effect("plays the tools of an echo server, whose answers were recorded", () =>
    Effect.gen(function* () {
      const { tasks, served } = yield* tasksOf({ answer: recorded })
      const env = yield* tasks.at(0)
      assert.deepStrictEqual(
        env.tools?.map(({ name, parameters }) => [name, parameters["required"]]),
        [
          ["echo_message", ["message"]],
          ["echo_with_length", ["message"]],
        ],
      )
      const episode = yield* env.begin(stream(1, "env"))
      assert.strictEqual(episode.observation, "Act by calling functions. Your answer ends the episode.")
      const call = (name: string, text: string) => episode.call({ id: "1", name, arguments: text })
      assert.deepStrictEqual(yield* call("echo_message", '{"message":"hi"}'), { content: "hi" })
      assert.deepStrictEqual(yield* call("echo_with_length", '{"message":"Hello"}'), {
        content: '{"message":"Hello","length":5}',
      })
      assert.isTrue((yield* call("echo_message", "{}")).isError)
      assert.include((yield* call("echo_message", "[")).content, "not JSON")
      const { terminated, feedback, observation: last } = yield* episode.step("I am done.")
      assert.deepStrictEqual([terminated, feedback.score, last], [true, 0, null])
      assert.deepStrictEqual([served.sessions.all, served.sessions.most], [2, 1])
    }).pipe(Effect.scoped),
  )

  it.effect("adds the rewards of calls to the next answer, and ends when a call has ended the episode", () =>
    Effect.gen(function* () {
      let calls = 0
      const { tasks, served } = yield* tasksOf({
        answer: (message) =>
          message["type"] === "step" && calls++ > 0
            ? observation({ tool_name: "echo_message", result: calls }, { reward: true, done: calls === 3 })
            : recorded(message),
      })
      const episode = yield* (yield* tasks.at(0)).begin(stream(1, "env"))
      const call = episode.call({ id: "1", name: "echo_message", arguments: '{"message":"x"}' })
      assert.deepStrictEqual(yield* call, { content: "2" })
      assert.deepStrictEqual(yield* call, { content: "3\nThe episode is over." })
      assert.isTrue((yield* call).isError)
      const { feedback, terminated } = yield* episode.step("done")
      assert.deepStrictEqual([feedback.score, terminated], [2, true])
      assert.strictEqual(served.messages.length, 4)
    }).pipe(Effect.scoped),
  )

  it.effect("makes actions by the Schema of the server", () =>
    Effect.gen(function* () {
      const sent = (schema: Plain, more: object, ...answers: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const { tasks, served } = yield* tasksOf({ ...counting(), schema }, { max_steps: answers.length, ...more })
          const { observations } = yield* play(yield* tasks.at(0), saying(...answers))
          const actions = served.messages.filter(({ type }) => type === "step").map(({ data }) => data)
          return { actions, observations }
        }).pipe(Effect.scoped)
      const number = schemaOf({ column: { type: "integer", minimum: 0, maximum: 6 } })
      const numbers = yield* sent(number, {}, "3", "seven", "7")
      assert.deepStrictEqual(numbers.actions, [{ column: 3 }])
      assert.deepStrictEqual(numbers.observations.slice(2), [
        'The answer is no action: column: expected a value of type integer, found "seven"',
        "The answer is no action: column: expected at most 6, found 7",
      ])
      const two = schemaOf({ tool: { enum: ["look", "go"] }, place: { type: "string" } }, ["tool"])
      const json = yield* sent(
        two,
        {},
        '```json\n{"tool":"go","place":"hall"}\n```',
        "go",
        '{"tool":"run"}',
        '{"place":1}',
      )
      assert.deepStrictEqual(json.actions, [{ tool: "go", place: "hall" }])
      assert.include(json.observations[0] ?? "", 'Answer with an object of JSON by this schema: {"type":"object",')
      assert.deepStrictEqual(json.observations.slice(2), [
        "The answer is no action: expected an object of JSON",
        'The answer is no action: tool: expected one of "look", "go", found "run"',
        'The answer is no action: expected a key "tool", found none',
      ])
      const set = yield* sent(two, { action_key: "place", action_defaults: { tool: "go" } }, "cellar")
      assert.deepStrictEqual(set.actions, [{ tool: "go", place: "cellar" }])
      const wrong = yield* openingFailure({ ...counting(), schema: two }, { action_key: "plaice" })
      assert.strictEqual(wrong, 'conf.yaml: action_key: expected one of tool, place, found "plaice"')
    }),
  )

  it.effect("shows what the server refuses, and fails at what it cannot do, unless the config says otherwise", () =>
    Effect.gen(function* () {
      const errors = [{ loc: ["message"], msg: "too short" }]
      const refusing = (code: string): FaultyServer => ({
        schema: textSchema,
        answer: ({ type }) => (type === "reset" ? observation({ a: 1, b: 2 }) : refusal(code, "no", { errors })),
      })
      const shown = (code: string, more: object) =>
        Effect.gen(function* () {
          const { tasks } = yield* tasksOf(refusing(code), { max_steps: 1, ...more })
          return (yield* play(yield* tasks.at(0), saying("on"))).observations
        }).pipe(Effect.scoped)
      const refused = "The environment refused the action: no: message: too short"
      assert.deepStrictEqual(yield* shown("VALIDATION_ERROR", {}), ['{"a":1,"b":2}', refused])
      assert.deepStrictEqual(yield* shown("EXECUTION_ERROR", { step_errors: "show", observation_key: "b" }), [
        "2",
        refused,
      ])
      assert.strictEqual(
        yield* failureOf(refusing("EXECUTION_ERROR")),
        "openenv-1: its server failed at step 1 with EXECUTION_ERROR: no: message: too short",
      )
      assert.include(yield* failureOf(refusing("SESSION_ERROR"), { step_errors: "show" }), "with SESSION_ERROR")
      assert.include(
        yield* failureOf(refusing("X"), { observation_key: "c" }),
        'has no key "c" (observation_key); it has a, b',
      )
    }),
  )
})

describe("a server of OpenEnv that is wrong", () => {
  const answering = (reply: ReturnType<FaultyServer["answer"]>): FaultyServer => ({
    schema: textSchema,
    answer: ({ type }) => (type === "reset" ? observation({ text: "Begin." }) : reply),
  })

  it.effect("fails the episode with its address and what was expected", () =>
    Effect.gen(function* () {
      const wrong = "openenv: its server at URL answered a step by a wrong message: "
      assert.strictEqual(
        yield* failureOf(answering("{bad")),
        `${wrong}expected JSON, found "{bad" (${"Expected property name or '}' in JSON at position 1 (line 1 column 2)"})`,
      )
      assert.strictEqual(
        yield* failureOf(answering('{"type":"state","data":{}}')),
        `${wrong}expected a message of the type observation or error, found "state"`,
      )
      const raw = (reward: string) => `{"type":"observation","data":{"observation":{},"reward":${reward},"done":false}}`
      assert.include(yield* failureOf(answering(raw("NaN"))), `${wrong}expected JSON`)
      assert.strictEqual(
        yield* failureOf(answering(raw("1e999"))),
        `${wrong}data.reward: expected a finite number or null, found Infinity`,
      )
      assert.include(yield* failureOf(answering(raw("1e39"))), "gave the score 1e+39 at step 1")
      assert.include(yield* failureOf(answering(observation({}, { done: "yes" }))), "data.done: expected true or false")
      assert.include(
        yield* failureOf(answering('{"type":"observation","data":[]}')),
        "data.observation: expected an object",
      )
      assert.include(yield* failureOf(answering("[".repeat(1000))), "lists and objects inside each other")
      assert.include(yield* failureOf(answering(new Uint8Array(3))), "at URL sent bytes; expected a text")
      assert.include(yield* failureOf(answering(hangsUp)), "at URL closed the connection (code 1006)")
      const large = answering(observation({ text: "x".repeat(2 ** 20) }))
      assert.strictEqual(
        yield* failureOf(large, { max_message_mb: 0.5 }),
        "openenv: its server at URL sent a message of more than 0.5 MB (max_message_mb)",
      )
      const over: FaultyServer = { schema: textSchema, answer: () => observation({}, { done: true }) }
      assert.strictEqual(yield* failureOf(over), "openenv-1: its episode was over after the reset")
    }),
  )

  it.effect("fails when the data set is opened", () =>
    Effect.gen(function* () {
      const of = (schema: unknown) => openingFailure({ ...answering(""), schema })
      const at = "conf.yaml: url: openenv: its server at URL answered GET /schema"
      assert.strictEqual(yield* of(302), `${at} with the status 302; expected 200`)
      assert.strictEqual(yield* of(500), `${at} with the status 500; expected 200`)
      assert.include(yield* of("<html>"), `${at} by something else than JSON`)
      assert.include(yield* of([]), `${at} by no Schemas; expected an object with action and observation`)
      const large = JSON.stringify({ action: {}, observation: { text: "x".repeat(2 ** 20) } })
      const tooLarge = yield* openingFailure({ ...answering(""), schema: large }, { max_message_mb: 0.5 })
      assert.strictEqual(tooLarge, `${at} with more than 0.5 MB (max_message_mb)`)
      const tools = yield* openingFailure({ answer: () => observation({ tools: [{ name: "a b" }] }) })
      assert.include(tools, "answered list_tools wrongly: expected a name of letters")
    }),
  )

  it.effect("is given up after the time limit", () =>
    Effect.gen(function* () {
      const served = yield* serve({ schema: textSchema, answer: () => never })
      const { tasks } = yield* connected(opened({ type: "openenv", url: served.url, timeout_seconds: 5 }))
      const env = yield* tasks.at(0)
      const playing = yield* Effect.forkChild(Effect.flip(play(env, saying("on"))))
      yield* Effect.promise(() => served.firstMessage)
      yield* TestClock.adjust("6 seconds")
      const { message } = yield* Fiber.join(playing)
      assert.include(message, "did not answer a reset within 5 s (timeout_seconds)")
    }).pipe(Effect.scoped),
  )
})

describe("the sessions of a server of OpenEnv", () => {
  it.effect("are at most as many as the config allows, and end with their episodes", () =>
    Effect.gen(function* () {
      const { tasks, served } = yield* tasksOf(counting(), { sessions: 2, num_tasks: 6 })
      const envs = yield* Effect.forEach([0, 1, 2, 3, 4, 5], tasks.at)
      const played = yield* Effect.forEach(envs, (env) => play(env, saying("on")), { concurrency: "unbounded" })
      assert.deepStrictEqual(
        played.map(({ score }) => score),
        [1, 1, 1, 1, 1, 1],
      )
      yield* Effect.promise(served.whenIdle)
      assert.deepStrictEqual([served.sessions.all, served.sessions.most], [6, 2])
    }).pipe(Effect.scoped),
  )

  it.effect("end when the episode is interrupted while the server computes", () =>
    Effect.gen(function* () {
      const { tasks, served } = yield* tasksOf({ schema: textSchema, answer: () => never }, { sessions: 1 })
      const playing = yield* Effect.forkChild(Effect.flatMap(tasks.at(0), (env) => play(env, saying("on"))))
      yield* Effect.promise(() => served.firstMessage)
      yield* Fiber.interrupt(playing)
      yield* Effect.promise(served.whenIdle)
      assert.strictEqual(served.sessions.all, 1)
    }).pipe(Effect.scoped),
  )

  it.effect("wait for a free one of the server, until the time limit", () =>
    Effect.gen(function* () {
      const full = refusal("CAPACITY_REACHED", "full: 1/1")
      const inner = counting()
      const busy = (until: number): FaultyServer => ({
        ...inner,
        answer: (message, session) => (session < until ? full : inner.answer(message, session)),
      })
      const { tasks, served } = yield* tasksOf(busy(3), {})
      const playing = yield* Effect.forkChild(Effect.flatMap(tasks.at(0), (env) => play(env, saying("on"))))
      yield* advanced(playing)
      assert.strictEqual((yield* Fiber.join(playing)).score, 1)
      assert.strictEqual(served.sessions.all, 4)
      const never = yield* tasksOf(busy(Infinity))
      const failing = yield* Effect.forkChild(
        Effect.flip(Effect.flatMap(never.tasks.at(0), (env) => play(env, saying("on")))),
      )
      yield* advanced(failing)
      assert.include(
        (yield* Fiber.join(failing)).message,
        "has no free session: full: 1/1; expected sessions to be at most",
      )
    }).pipe(Effect.scoped),
  )

  it.effect("need trust, and requests have the token", () =>
    Effect.gen(function* () {
      const served = yield* serve(counting())
      const refused = (more: object) =>
        connected(problem({ type: "openenv", url: served.url, ...more })).pipe(Effect.provideService(Trust, refuseAll))
      assert.include(yield* refused({}), `conf.yaml: url: this would send texts to "${served.url}"`)
      assert.include(yield* refused({ token_variable: "OPENENV_TOKEN" }), 'the value of the variable "OPENENV_TOKEN"')
      assert.include(yield* refused({ url: "http://a:b@127.0.0.1" }), "expected an address that begins with http")
      const config = { type: "openenv", url: served.url, token_variable: "OPENENV_TOKEN" }
      const token = ConfigProvider.layer(ConfigProvider.fromUnknown({ OPENENV_TOKEN: "secret-1" }))
      const { tasks } = yield* connected(opened(config)).pipe(Effect.provide(token))
      yield* play(yield* tasks.at(0), saying("on"))
      assert.deepStrictEqual([...served.authorizations], ["Bearer secret-1"])
      assert.include(yield* connected(problem(config)), "the environment variable OPENENV_TOKEN holds no token")
    }).pipe(Effect.scoped),
  )
})
