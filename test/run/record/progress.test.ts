import { validationOfTrainer } from "../../../src/run/record/RunEvent.ts"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import { progress } from "../../../src/run/record/progress.ts"
import { episode, recorded, started, update, validation } from "./events.ts"

const clear = "\r\u001b[2K"

const watched = Effect.fnUntraced(function* (options: { readonly isTerminal: boolean; readonly columns?: number }) {
  const shown: Array<string> = []
  const scope = yield* Scope.make()
  const write = (text: string) => Effect.sync(() => void shown.push(text))
  const recording = yield* recorded(progress({ write, columns: 200, ...options })).pipe(Scope.provide(scope))
  return { shown, ...recording, close: Scope.close(scope, Exit.void) }
})

describe("the progress line", () => {
  it.effect("says how far, how fast, how well and how long still", () =>
    Effect.gen(function* () {
      const { shown, emit } = yield* watched({ isTerminal: true })
      yield* TestClock.adjust("2 seconds")
      yield* emit([episode({ return: 10 }), episode({ return: 20 }), update(5000), validation])
      assert.deepEqual(shown, [
        `${clear}ppo on CartPole-v1  5,000 of 20,000 steps (25 %)  2,500/s  return 15.0  validation 2.0  6 s left`,
      ])
    }),
  )

  it.effect("has three digits of a score of at most 1", () =>
    Effect.gen(function* () {
      const { shown, emit } = yield* watched({ isTerminal: true })
      yield* emit([{ ...update(5000), metrics: { [validationOfTrainer]: 0.985 } }])
      assert.include(shown[0], "validation 0.985")
    }),
  )

  it.effect(
    "says no share of the steps if there are more than at the start, as in a trainer to which runs are added",
    () =>
      Effect.gen(function* () {
        const { shown, emit } = yield* watched({ isTerminal: true })
        yield* TestClock.adjust("2 seconds")
        yield* emit([update(20_001)])
        assert.include(shown[0], "ppo on CartPole-v1  20,001 steps  10,001/s")
      }),
  )

  it.effect("is of the last hundred episodes", () =>
    Effect.gen(function* () {
      const { shown, emit } = yield* watched({ isTerminal: true })
      yield* emit(Array.from({ length: 250 }, (_, index) => episode({ return: index < 150 ? -1000 : index - 150 })))
      assert.include(shown[0], "return 49.5")
    }),
  )

  it.effect("shows the speed of the last seconds", () =>
    Effect.gen(function* () {
      const { shown, emit } = yield* watched({ isTerminal: true })
      yield* TestClock.adjust("1 minute")
      yield* emit([update(1000)])
      for (let second = 1; second <= 10; second++) {
        yield* TestClock.adjust("1 second")
        yield* emit([update(1000 + second * 500)])
      }
      assert.include(shown.at(-1), "  500/s  ")
    }),
  )

  it.effect("is drawn ten times a second at most, and never wider than the terminal", () =>
    Effect.gen(function* () {
      const { shown, emit } = yield* watched({ isTerminal: true, columns: 30 })
      for (let call = 0; call < 100; call++) {
        yield* emit([update(call)])
        yield* TestClock.adjust("10 millis")
      }
      assert.strictEqual(shown.length, 10)
      for (const line of shown) assert.isBelow(line.length, 30 + clear.length)
    }),
  )

  for (const [columns, expected] of [
    [100, "ppo on CartPole-v1  5,000 of 20,000 steps (25 %)  2,500/s  return 15.0  validation 2.0  6 s left"],
    [92, "ppo on CartPole-v1  5,000 of 20,000 steps (25 %)  2,500/s  return 15.0  validation 2.0"],
    [80, "ppo on CartPole-v1  5,000 of 20,000 steps (25 %)  return 15.0  validation 2.0"],
    [70, "ppo on CartPole-v1  5,000 of 20,000 steps (25 %)  validation 2.0"],
    [50, "ppo on CartPole-v1  5,000 of 20,000 steps (25 %)"],
    [40, "5,000 of 20,000 steps (25 %)"],
    [10, "5,000 of "],
  ] as const) {
    it.effect(`leaves out whole fields in ${columns} columns, the validation after the speed`, () =>
      Effect.gen(function* () {
        const { shown, emit } = yield* watched({ isTerminal: true, columns })
        yield* TestClock.adjust("2 seconds")
        yield* emit([episode({ return: 10 }), episode({ return: 20 }), update(5000), validation])
        assert.deepEqual(shown, [`${clear}${expected}`])
      }),
    )
  }

  it.effect("makes room for its last word", () =>
    Effect.gen(function* () {
      const { shown, emit, close } = yield* watched({ isTerminal: true })
      yield* emit([update(1)])
      yield* TestClock.adjust("90 seconds")
      yield* emit([{ _tag: "RunEnded", step: 18_000, episodes: 3, reason: "interrupted", message: null }])
      yield* close
      assert.deepEqual(shown.slice(1), [
        clear,
        "ppo on CartPole-v1  18,000 of 20,000 steps (90 %)  200/s  interrupted after 1 min 30 s\n",
      ])
    }),
  )

  it.effect("is cleared when nobody says how it ended", () =>
    Effect.gen(function* () {
      const { shown, emit, close } = yield* watched({ isTerminal: true })
      yield* emit([update(1)])
      yield* close
      assert.deepEqual(shown.slice(1), [clear])
    }),
  )

  it.effect("is quiet where there is no terminal, but for the end", () =>
    Effect.gen(function* () {
      const { shown, emit, close } = yield* watched({ isTerminal: false })
      yield* TestClock.adjust("10 seconds")
      yield* emit([started, episode({ return: 7 }), update(10_000), validation])
      assert.deepEqual(shown, [])
      yield* emit([{ _tag: "RunEnded", step: 20_000, episodes: 1, reason: "finished", message: null }])
      yield* close
      assert.deepEqual(shown, [
        "ppo on CartPole-v1  20,000 of 20,000 steps (100 %)  2,000/s  return 7.0  validation 2.0  finished after 10 s\n",
      ])
    }),
  )

  it.effect("says at the end why the run ended early", () =>
    Effect.gen(function* () {
      const { shown, emit } = yield* watched({ isTerminal: false })
      yield* TestClock.adjust("1 second")
      const message = "the callback enough ended it: no better"
      yield* emit([{ _tag: "RunEnded", step: 1000, episodes: 1, reason: "finished", message }])
      assert.deepEqual(shown, [
        `ppo on CartPole-v1  1,000 of 20,000 steps (5 %)  1,000/s  finished after 1 s: ${message}\n`,
      ])
    }),
  )

  it.effect("lets warnings stand above it, terminal or not", () =>
    Effect.gen(function* () {
      for (const isTerminal of [true, false]) {
        const { shown, emit } = yield* watched({ isTerminal })
        yield* emit([update(1)])
        const drawn = shown.splice(0).length
        yield* emit([{ _tag: "Warning", message: "it rains" }])
        assert.strictEqual(drawn, isTerminal ? 1 : 0)
        assert.deepEqual(shown, [...(isTerminal ? [clear] : []), "warning: it rains\n"])
      }
    }),
  )

  it.effect("is not controlled by names and warnings, such as the answer of a server", () =>
    Effect.gen(function* () {
      const shown: Array<string> = []
      const write = (text: string) => Effect.sync(() => void shown.push(text))
      const sink = progress({ write, isTerminal: true, columns: 200 })
      const { emit } = yield* recorded(sink, { ...started, env: "evil\u001b]0;title\u0007" })
      yield* emit([update(1)])
      yield* emit([{ _tag: "Warning", message: "a\u001b[2Jb\rc" }])
      assert.isTrue(shown[0].startsWith(`${clear}ppo on evil�]0;title�  1 of`), shown[0])
      assert.deepEqual(shown.slice(1), [clear, "warning: a�[2Jb�c\n"])
    }),
  )

  it.effect("counts from where a resumed run goes on", () =>
    Effect.gen(function* () {
      const shown: Array<string> = []
      const sink = progress({
        write: (text) => Effect.sync(() => void shown.push(text)),
        isTerminal: true,
        columns: 200,
      })
      const { emit } = yield* recorded(sink, { ...started, resumedFromStep: 10_000 })
      yield* TestClock.adjust("1 second")
      yield* emit([update(11_000)])
      assert.include(shown[0], "11,000 of 20,000 steps (55 %)  1,000/s  9 s left")
    }),
  )
})
