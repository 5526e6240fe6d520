import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { withDefault } from "../../../src/base/config/fields.ts"
import { verdictOf } from "../../../src/agents/evaluate/Scorer.ts"
import type { EpisodeToScore } from "../../../src/agents/evaluate/PlayedEpisode.ts"
import * as Scorer from "../../../src/agents/evaluate/Scorer.ts"
import * as Scorers from "../../../src/agents/evaluate/Scorers.ts"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { answered } from "./support.ts"

const valueOf = (scorer: Scorer.Scorer, played: EpisodeToScore) => scorer.score(played)

describe("scorers", () => {
  it("know which of their values are better: lower ones of what costs something, and their config can say otherwise", async () => {
    const opened = (settings: unknown) =>
      Effect.runPromise(
        Effect.map(
          Effect.provide(
            Scorers.open(settings, { from: { source: "x" }, baseDir: ".", openLm: () => Effect.die("no model") }),
            NodeServices.layer,
          ),
          ({ scorer, config }) => [scorer.direction, config],
        ),
      )
    const expected = {
      tokens: "lower",
      calls: "lower",
      latency: "lower",
      steps: "none",
      exact: "higher",
      score: "higher",
    }
    for (const [type, direction] of Object.entries(expected)) {
      assert.deepStrictEqual<unknown>(await opened(type), [direction, { type, name: type }])
    }
    const fewer = { type: "steps", direction: "lower" }
    assert.deepStrictEqual<unknown>(await opened(fewer), ["lower", { ...fewer, name: "steps" }])
    assert.strictEqual(Scorer.make("cost", () => 1).direction, "lower")
    assert.strictEqual(Scorer.make("price", () => 1, { direction: "lower" }).direction, "lower")
    const judge = { type: "score", direction: "up" }
    assert.match(String(await opened(judge).catch((error: unknown) => error)), /direction: .*"up"/)
  })

  it.effect("score the env's score, the answer, and the costs", () =>
    Effect.gen(function* () {
      const table: ReadonlyArray<readonly [Scorer.Scorer, EpisodeToScore, number | null]> = [
        [Scorer.score(), answered("Rome", "Rome", { totalScore: 0.4 }), 0.4],
        [Scorer.solved(), answered("Rome", "Rome", { totalScore: 0.9 }), 0],
        [Scorer.solved({ threshold: 0.9 }), answered("Rome", "Rome", { totalScore: 0.9 }), 1],
        [Scorer.steps(), answered("Rome", "Rome"), 1],
        [Scorer.exact(), answered(" ROME. ", "Rome"), 1],
        [Scorer.exact(), answered("in Rome", "Rome"), 0],
        [Scorer.exact(), answered(null, "Rome"), 0],
        // Parses that failed, before any step of the env could tell.
        [Scorer.exact(), answered(null, null), 0],
        [Scorer.contains(), answered(null, null), 0],
        [Scorer.exact(), answered("Rome", null), null],
        [Scorer.f1(), answered("the old Rome", "Rome"), 2 / 3],
        [Scorer.contains(), answered("It is ROME, I think", "Rome"), 1],
        [Scorer.contains(), answered("It is Paris", "Rome"), 0],
        [Scorer.contains(), answered("Rome", null), null],
        [Scorer.latency(), answered("Rome", "Rome"), 0.5],
        [Scorer.tokens(), answered("Rome", "Rome"), 0],
        [Scorer.make("length", ({ steps }) => steps.length * 2), answered("Rome", "Rome"), 2],
        [Scorer.make("waits", () => Effect.succeed(7)), answered("Rome", "Rome"), 7],
      ]
      for (const [scorer, played, expected] of table) {
        assert.strictEqual(yield* valueOf(scorer, played), expected, scorer.name)
      }
      assert.deepStrictEqual([Scorer.latency().timed, Scorer.exact().timed], [true, false])
    }),
  )

  it.effect("call a judge, which sees the rubric, the actions and the target", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const lm = Scripted.make(({ messages }) => {
        seen.push(...messages.map(({ content }) => content))
        return "It is short.\nSCORE: 0.75"
      })
      const judge = Scorer.judge({ lm, config: LmConfig.make({ model: "judge" }), rubric: "Is it short?" })
      assert.strictEqual(yield* valueOf(judge, answered("Rome", "Roma")), 0.75)
      for (const part of ["Is it short?", "OBSERVATION: What?", "ACTION: Rome", "A RIGHT ANSWER: Roma"]) {
        assert.include(seen.join("\n"), part)
      }
    }),
  )

  it.effect("fail with an AgentError if their function throws", () =>
    Effect.gen(function* () {
      const thrown = (): never => {
        throw new Error("no\ntarget")
      }
      for (const scorer of [Scorer.make("own", thrown), Scorer.make("own", () => Effect.sync(thrown))]) {
        const error = yield* Effect.flip(valueOf(scorer, answered("a", "a", { index: 2 })))
        assert.deepEqual([error._tag, "agent" in error && error.agent], ["AgentError", "own"])
        assert.strictEqual(error.message, "scorers: own threw for episode 3: no; target; expected a number or null")
      }
    }),
  )

  it.effect("are null if the judge gives no score, and stop if the judge cannot be called any more", () =>
    Effect.gen(function* () {
      const config = LmConfig.make({ model: "judge" })
      const failing = (reason: "exhausted" | "budget") =>
        Scripted.make(() => Effect.fail(new LmError({ model: "judge", reason, attempts: 1, message: reason })))
      const judgeBy = (lm: ReturnType<typeof failing>) => Scorer.judge({ lm, config, rubric: "?" })
      assert.isNull(yield* valueOf(judgeBy(Scripted.make(() => "I'd rather not say")), answered("a", "a")))
      assert.isNull(yield* valueOf(judgeBy(failing("exhausted")), answered("a", "a")))
      const error = yield* Effect.flip(valueOf(judgeBy(failing("budget")), answered("a", "a")))
      assert.deepInclude(error, { _tag: "LmError", reason: "budget" })
    }),
  )

  it("read a verdict in its usual forms", () => {
    const table: ReadonlyArray<readonly [string, number | null]> = [
      ["SCORE: 1", 1],
      ["score = .5", 0.5],
      ["**Score:** 0.25", 0.25],
      ["A score: 0.2 at first.\nSCORE: 0.9", 0.9],
      ["SCORE: 7", null],
      ["SCORE: 1/5", null],
      ["underscore: 1", null],
      ['"score": **  "0.5"', 0.5],
      [`score:${" ".repeat(1_000_000)}?`, null],
      ["", null],
    ]
    for (const [text, expected] of table) assert.strictEqual(verdictOf(text), expected, text)
  })
})

describe("scorers of a config", () => {
  const context = {
    from: { source: "tasks.yaml", prefix: ["scorers"] },
    baseDir: ".",
    openLm: () => Effect.succeed(Scripted.make(() => "SCORE: 0.5")),
  }

  it.effect("are names, or names with settings, or a user's own kinds", () =>
    Effect.gen(function* () {
      const loud = Scorers.make({
        type: "loud",
        schema: Schema.Struct({ ...Scorers.fields("loud"), marks: withDefault(Schema.Int, 1) }),
        make: ({ name, marks }) =>
          Scorer.make(name, ({ steps }) => (steps.at(-1)?.action?.endsWith("!".repeat(marks)) === true ? 1 : 0)),
      })
      const opened = yield* Scorers.openAll(
        [
          "exact",
          { type: "solved", threshold: 0.5, name: "half" },
          { type: "judge", rubric: "Is it good?", lmConfig: { model: "gpt-4.1" } },
          { type: "loud", marks: 2 },
        ],
        context,
      ).pipe(Effect.provideService(Scorers.Kinds, [...Scorers.builtIn, loud]))
      assert.deepStrictEqual(
        opened.map(({ scorer }) => scorer.name),
        ["exact", "half", "judge", "loud"],
      )
      const values = yield* Effect.forEach(opened, ({ scorer }) =>
        valueOf(scorer, answered("Roma!!", "Rome", { totalScore: 0.5 })),
      )
      assert.deepStrictEqual(values, [0, 1, 0.5, 1])
      assert.deepStrictEqual(opened[1].config, { type: "solved", name: "half", threshold: 0.5 })
    }).pipe(Effect.provide(NodeServices.layer)),
  )

  it.effect("that are invalid are errors of one line", () =>
    Effect.gen(function* () {
      const messageOf = (said: ReadonlyArray<unknown>) =>
        Effect.map(Effect.flip(Scorers.openAll(said, context)), ({ message }) => message)
      assert.strictEqual(
        yield* messageOf(["score", "exakt"]),
        'tasks.yaml: scorers.1: expected a scorer, found "exakt"; did you mean "exact"?',
      )
      assert.strictEqual(
        yield* messageOf([{ type: "solved", treshold: 1 }]),
        'tasks.yaml: unknown key "scorers.0.treshold"; did you mean "scorers.0.threshold"?',
      )
      assert.strictEqual(
        yield* messageOf(["score", "score"]),
        'tasks.yaml: scorers.1: expected a name of its own, found "score" again',
      )
      assert.include(yield* messageOf([7]), "scorers.0: expected a scorer, found 7; expected one of score, solved")
    }).pipe(Effect.provide(NodeServices.layer)),
  )
})
