import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { pooled, type StartProgram, TextPrograms } from "../../../../src/agents/task/foreign/TextPrograms.ts"
import { opened, problem } from "../opening.ts"
import { play, saying } from "../support.ts"

const options = { id: "count", command: ["count"], options: { upTo: 3 }, processes: 2, timeoutSeconds: 60 }

interface Request {
  readonly type: string
  readonly [key: string]: unknown
}

/** Stands for no reply. */
const never = Symbol("never")

/** Counts to 3 by the action "more". The replies may be others than the right ones. */
const makeProgram = (replies: Readonly<Record<string, unknown>> = {}) => {
  const requests: Array<Request> = []
  const living = new Set<number>()
  let started = 0
  const start: StartProgram = () =>
    Effect.gen(function* () {
      const number = started++
      yield* Effect.acquireRelease(
        Effect.sync(() => living.add(number)),
        () => Effect.sync(() => living.delete(number)),
      )
      let at = 0
      return (line: string) =>
        Effect.suspend(() => {
          const request: Request = JSON.parse(line)
          requests.push(request)
          const own = replies[request.type]
          if (typeof own === "string") return Effect.succeed(own)
          if (own === never) return Effect.never
          if (request.type === "open") return Effect.succeed(JSON.stringify(own ?? { protocol: 1, tasks: 5 }))
          at = request.type === "reset" ? 0 : at + (request.action === "more" ? 1 : 0)
          const seen = { observation: `At ${at}.`, actions: ["more", "wait"], info: { at } }
          const step = { ...seen, reward: at === 3 ? 1 : 0, done: at === 3 }
          return Effect.succeed(JSON.stringify(own ?? (request.type === "reset" ? seen : step)))
        })
    })
  return { start, requests, living, starts: () => started }
}

const config = { type: "foreign", id: "count", command: ["count"], options: { up_to: 3 } }

/** Opens the data set of a config by a program. */
const withProgram = <A, E, R>(effect: Effect.Effect<A, E, R>, { start }: ReturnType<typeof makeProgram>) =>
  Effect.flatMap(pooled(start), (service) => Effect.provideService(effect, TextPrograms, service))

describe("a task that a program plays", () => {
  it.effect("shows what the program shows, with the possible actions", () =>
    Effect.gen(function* () {
      const program = makeProgram()
      const { tasks, config: effective } = yield* withProgram(opened(config), program)
      assert.deepStrictEqual([tasks.name, tasks.size], ["count", 5])
      assert.deepStrictEqual([effective.options, effective.processes, effective.num_tasks], [{ up_to: 3 }, 4, null])
      const env = yield* tasks.at(2)
      assert.deepStrictEqual([env.id, env.type, env.metadata], ["count-3", "count", { task: 2 }])
      const { observations, score, steps, terminated } = yield* play(env, saying("more", "think: on", "wait", "more"))
      assert.deepStrictEqual(observations, [
        "At 0.\nPossible actions: more, wait",
        "At 1.\nPossible actions: more, wait",
        "OK.",
        "At 1.\nPossible actions: more, wait",
        "At 2.\nPossible actions: more, wait",
        "At 3.",
      ])
      assert.deepStrictEqual([score, terminated, steps[0].info], [1, true, { at: 1, actions: ["more", "wait"] }])
      assert.deepStrictEqual(steps[0].feedback, { score: 0, target: null, message: "At 1." })
      const [open, reset] = program.requests
      assert.deepStrictEqual(open, { type: "open", protocol: 1, id: "count", options: { up_to: 3 } })
      const seed = stream(1, "env").child("begin").uint32()
      assert.deepStrictEqual(reset, { type: "reset", task: 2, seed })
      assert.isAbove(seed, 0)
    }),
  )

  it.effect("leaves out the actions, and takes limits, truncation, messages and targets from the program", () =>
    Effect.gen(function* () {
      const step = { observation: null, reward: 0.5, done: false, truncated: true, message: "Too late.", target: "now" }
      const program = makeProgram({ open: { protocol: 1, maxSteps: 7 }, step })
      const { tasks } = yield* withProgram(opened({ ...config, show_actions: false, num_tasks: 3 }), program)
      assert.strictEqual(tasks.size, 3)
      const env = yield* tasks.at(0)
      assert.strictEqual(env.maxSteps, 7)
      const { observations, steps } = yield* play(env, saying("more"))
      assert.deepStrictEqual(observations, ["At 0.", null])
      assert.isTrue(steps[0].truncated)
      assert.deepStrictEqual(steps[0].feedback, { score: 0.5, target: "now", message: "Too late." })
    }),
  )

  it.effect("says what is missing in the config", () =>
    Effect.gen(function* () {
      const of = (more: object, program = makeProgram({ open: { protocol: 1 } })) =>
        withProgram(problem({ ...config, ...more }), program)
      assert.strictEqual(
        yield* of({}),
        "conf.yaml: num_tasks: expected the number of tasks, because the program does not say how many it has",
      )
      assert.strictEqual(
        yield* of({ num_tasks: 6 }, makeProgram()),
        "conf.yaml: num_tasks: the program has 5 tasks, found 6",
      )
      const huge = makeProgram({ open: { protocol: 1, tasks: 1e12 } })
      assert.strictEqual(
        yield* of({ shuffle: true }, huge),
        "conf.yaml: num_tasks: expected a value between 1 and 1000000 (a list holds all of them), found 1000000000000, the number of tasks that the program has",
      )
      // A part of them can be used.
      const { tasks } = yield* withProgram(opened({ ...config, num_tasks: 3, shuffle: true }), huge)
      assert.strictEqual(tasks.size, 3)
      assert.include(yield* problem(config), "command: count: its program needs a process; provide `platform`")
      assert.include(yield* of({ comand: "x" }), "did you mean")
    }),
  )

  it.effect("says what is wrong with a reply", () =>
    Effect.gen(function* () {
      const failure = (replies: Readonly<Record<string, unknown>>) =>
        Effect.gen(function* () {
          const program = makeProgram(replies)
          const { tasks } = yield* withProgram(opened(config), program)
          const { message } = yield* Effect.flip(play(yield* tasks.at(0), saying("more")))
          return message
        })
      const opening = (open: unknown) => withProgram(problem(config), makeProgram({ open }))
      assert.include(
        yield* opening("Loading the game"),
        `its program replied to "open" by "Loading the game"; expected an object of JSON in one line`,
      )
      assert.include(yield* opening({ protocol: 3 }), "speaks version 3 of the protocol; effect-rl speaks version 1")
      assert.include(yield* opening({ protocol: 1, tasks: 0 }), `"tasks"`)
      assert.strictEqual(
        yield* failure({ reset: { error: "KeyError('seed')\nin reset" } }),
        `count-1: its program failed at "reset": KeyError('seed'); in reset`,
      )
      assert.match(
        yield* failure({ step: { observation: "On.", done: false } }),
        /^count-1, step 1: its program replied to "step" by .*: .*reward/,
      )
      assert.match(yield* failure({ reset: "[1, 2" }), /replied to "reset" by "\[1, 2"; expected an object of JSON/)
    }),
  )
})

describe("the pool of a program's processes", () => {
  it.effect("lends each process to one episode at a time, and starts no more than it may", () =>
    Effect.gen(function* () {
      const program = makeProgram()
      const scope = yield* Scope.make()
      const service = yield* Scope.provide(pooled(program.start), scope)
      const { lend } = yield* service.open(options)
      assert.strictEqual(yield* Effect.map(service.open(options), (again) => again.lend), lend)
      assert.strictEqual(program.starts(), 1)
      const scopes = [yield* Scope.make(), yield* Scope.make()]
      const [first, second] = yield* Effect.forEach(scopes, (own) => Scope.provide(lend, own))
      assert.notStrictEqual(first, second)
      const third = yield* Effect.forkChild(Effect.scoped(lend))
      yield* Effect.yieldNow
      assert.isUndefined(third.pollUnsafe())
      yield* Scope.close(scopes[1], Exit.void)
      assert.strictEqual(yield* Fiber.join(third), second)
      assert.deepStrictEqual([program.starts(), program.living.size], [2, 2])
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(program.living.size, 0)
    }),
  )

  it.effect("ends a process that still owes a reply, and starts another one", () =>
    Effect.gen(function* () {
      const program = makeProgram({ reset: never })
      const service = yield* pooled(program.start)
      const { lend } = yield* service.open(options)
      const waiting = yield* Effect.forkChild(
        Effect.scoped(Effect.flatMap(lend, ({ reset }) => reset("count-1", 0, 1))),
      )
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waiting)
      assert.strictEqual(program.living.size, 0)
      yield* Effect.scoped(lend)
      assert.deepStrictEqual([program.starts(), program.living.size], [2, 1])
    }),
  )

  it.effect("refuses a program that describes other tasks in another process", () =>
    Effect.gen(function* () {
      const program = makeProgram()
      let started = 0
      const start: StartProgram = (of) =>
        Effect.suspend(() => {
          const other = makeProgram({ open: { protocol: 1, tasks: 6 } })
          return started++ === 0 ? program.start(of) : other.start(of)
        })
      const service = yield* pooled(start)
      const { lend } = yield* service.open(options)
      yield* lend
      const { message } = yield* Effect.flip(lend)
      assert.strictEqual(message, "count: its program now describes other tasks than before")
    }),
  )
})
