import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as HistoryList from "../../../src/agents/agent/memory/HistoryList.ts"
import * as Reflections from "../../../src/agents/agent/memory/Reflections.ts"
import * as ReflexionAgent from "../../../src/agents/agent/ReflexionAgent.ts"
import { broken, lastOf, linesOf, look, play, said, scripted, told } from "./support.ts"

/** Its model answers `x`, and reflects `learnt 1`, `learnt 2` … */
const made = (
  config: Omit<ReflexionAgent.ReflexionAgentConfig, "model"> = {},
  reflection: (n: number) => ReturnType<typeof said> | string | null = (n) => `learnt ${n}`,
) => {
  let reflections = 0
  const script = scripted(({ messages }) =>
    messages.at(-1)?.content.endsWith("Reflection:") === true ? reflection(++reflections) : "x",
  )
  return Effect.map(Effect.provide(ReflexionAgent.make({ model: "m", ...config }), script.layer), (agent) => ({
    agent,
    script,
  }))
}

const scoring = (...scores: ReadonlyArray<number>) =>
  scores.map((score, at) => ({
    observation: at === scores.length - 1 ? null : `after ${at + 1}`,
    feedback: told(score),
  }))

const reflectionsOf = (lines: ReadonlyArray<string>) => lines.filter((line) => line.startsWith("Reflection: "))

describe("an agent that reflects", () => {
  it.effect("reflects at the end of an episode, and adds the reflection after the episode's entries", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({ reflectionSystemPrompt: "Look back.", systemPrompt: "Play." })
      const { looking } = yield* play(agent, "a", [{ observation: null, feedback: { ...told(0), target: "y" } }])
      assert.deepStrictEqual(yield* linesOf(agent.memory), [
        "Observation: a",
        "Action: x",
        'Feedback: {"score":0,"target":"y","message":"Wrong."}',
        "Reflection: learnt 1",
      ])
      assert.deepStrictEqual(script.purposes, ["action", "reflection"])
      assert.strictEqual(looking.length, 1)
      assert.deepInclude(looking[0], { purpose: "reflection", target: "internal", parsed: null })
      assert.deepStrictEqual(script.requests[1].messages, [
        { role: "system", content: "Look back." },
        {
          role: "user",
          content:
            'The episode:\n\nOBSERVATION: a\n\nACTION: x\n\nFEEDBACK: {"score":0,"target":"y","message":"Wrong."}\n\n' +
            "Its score: 0\n\nReflection:",
        },
      ])
    }),
  )

  it.effect("has all reflections in the prompt if the limit is null", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({ maxReflectionsInPrompt: null, historyK: 0 })
      for (let at = 0; at < 12; at++) yield* play(agent, `${at}`, scoring(0))
      yield* play(agent, "last", scoring(0))
      const asked = script.requests.at(-2)?.messages.at(-1)?.content ?? ""
      assert.lengthOf(asked.match(/REFLECTION: /g) ?? [], 12)
    }),
  )

  it.effect("has its reflections in the prompt before the history, up to their limit", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({ maxReflectionsInPrompt: 2, historyK: 1 })
      for (const seen of ["a", "b", "c"]) yield* play(agent, seen, scoring(0))
      yield* agent.reset
      yield* agent.act(look("d"))
      assert.strictEqual(
        lastOf(script.requests.at(-1)),
        'REFLECTION: learnt 2\n\nREFLECTION: learnt 3\n\nFEEDBACK: {"score":0,"target":null,"message":"Wrong."}\n\nd',
      )
      const none = yield* made({ maxReflectionsInPrompt: 0, historyK: 0 })
      yield* play(none.agent, "a", scoring(0))
      yield* play(none.agent, "b", scoring(0))
      assert.strictEqual(lastOf(none.script.requests[2]), "b")
    }),
  )

  it.effect("reflects exactly when its settings say so", () =>
    Effect.gen(function* () {
      type Row = readonly [Omit<ReflexionAgent.ReflexionAgentConfig, "model">, ReadonlyArray<number>, boolean]
      const table: ReadonlyArray<Row> = [
        [{}, [0], true],
        [{}, [1], true],
        [{}, [5, 5], true],
        [{ enableReflection: false }, [0], false],
        [{ enableReflection: false, reflectOnFailureOnly: true }, [0], false],
        [{ reflectOnFailureOnly: true }, [0], true],
        [{ reflectOnFailureOnly: true }, [0.99], true],
        [{ reflectOnFailureOnly: true }, [1], false],
        // The episode's score is the sum of its feedbacks'.
        [{ reflectOnFailureOnly: true }, [0.5, 0.5], false],
        [{ reflectOnFailureOnly: true }, [1, -0.5], true],
        [{ reflectOnFailureOnly: true, failureThreshold: 3 }, [1, 1], true],
        [{ reflectOnFailureOnly: true, failureThreshold: 2 }, [1, 1], false],
        [{ reflectOnFailureOnly: false, failureThreshold: 2 }, [1, 1], true],
      ]
      for (const [config, scores, expected] of table) {
        const { agent, script } = yield* made(config)
        yield* play(agent, "a", scoring(...scores))
        assert.strictEqual(script.purposes.includes("reflection"), expected, JSON.stringify([config, scores]))
        const evaluated = yield* made(config)
        const clone = yield* evaluated.agent.cloneForEpisode({ training: false, shareMemory: true })
        yield* play(clone, "a", scoring(...scores))
        assert.deepStrictEqual(
          evaluated.script.purposes,
          scores.map(() => "action"),
        )
        assert.deepStrictEqual(yield* linesOf(clone.memory), [])
      }
    }),
  )

  it.effect("counts scores per episode, and skips an episode without steps", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({ reflectOnFailureOnly: true })
      yield* play(agent, "a", scoring(1))
      yield* play(agent, "b", scoring(0))
      assert.strictEqual(script.purposes.filter((purpose) => purpose === "reflection").length, 1)
      assert.notInclude(lastOf(script.requests.at(-1)), "OBSERVATION: a")
      yield* agent.reset
      assert.deepStrictEqual(yield* agent.endEpisode, [])
    }),
  )

  it.effect("shows examples, and acts with a system prompt of its own", () =>
    Effect.gen(function* () {
      const { agent, script } = yield* made({
        systemPrompt: "Play.",
        agentSystemPrompt: "Play well.",
        reflectionFewShotExamples: "One.\n",
      })
      yield* play(agent, "a", scoring(0))
      assert.deepInclude(script.requests[0].messages[0], { role: "system", content: "Play well." })
      assert.match(lastOf(script.requests[1]), /^Examples:\n\nOne\.\n\nThe episode:\n\nOBSERVATION: a/)
      // A prompt of ours, if none is given.
      assert.match(script.requests[1].messages[0]?.content ?? "", /^Reflect on an episode/)
    }),
  )

  it.effect("fails on feedback that it cannot remember", () =>
    Effect.gen(function* () {
      const { agent } = yield* made()
      yield* agent.reset
      yield* agent.act(look("One."))
      const feedback = { ...told(1), extra: { big: 1n } }
      const error = yield* Effect.flip(agent.observe({ action: "x", observation: null, feedback, done: true }))
      assert.match(error.message, /^memory "reflections": cannot keep a Feedback: .*BigInt/)
    }),
  )

  it.effect("does not remember a reflection that was cut off or is empty", () =>
    Effect.gen(function* () {
      const filtered = said("I sho", { finishReason: "content_filter" })
      for (const reflection of [said("I sho", { finishReason: "length" }), filtered, said("  \n")]) {
        const { agent } = yield* made({}, () => reflection)
        const { looking } = yield* play(agent, "a", scoring(0))
        assert.strictEqual(looking.length, 1)
        assert.deepStrictEqual(reflectionsOf(yield* linesOf(agent.memory)), [])
      }
    }),
  )

  it.effect("fails if it cannot reflect, and can retry", () =>
    Effect.gen(function* () {
      const { agent } = yield* made({}, (n) => (n === 1 ? null : "learnt"))
      assert.strictEqual(yield* Effect.flip(play(agent, "a", scoring(0))), broken)
      assert.strictEqual((yield* agent.endEpisode).length, 1)
      assert.deepStrictEqual((yield* linesOf(agent.memory)).length, 4)
      assert.deepStrictEqual(reflectionsOf(yield* linesOf(agent.memory)), ["Reflection: learnt"])
      assert.deepStrictEqual(yield* agent.endEpisode, [])
    }),
  )

  it.effect("never forgets a reflection because of observations, unless its memory is a plain list", () =>
    Effect.gen(function* () {
      const kept = yield* made({ memory: Reflections.make({ maxLength: 3 }), reflectOnFailureOnly: true })
      const lost = yield* made({ memory: HistoryList.make({ maxLength: 3 }), reflectOnFailureOnly: true })
      for (const { agent } of [kept, lost]) {
        yield* play(agent, "a", scoring(0))
        yield* play(agent, "b", scoring(1))
      }
      assert.deepStrictEqual(reflectionsOf(yield* linesOf(kept.agent.memory)), ["Reflection: learnt 1"])
      assert.deepStrictEqual(reflectionsOf(yield* linesOf(lost.agent.memory)), [])
    }),
  )

  it.effect("refuses invalid counts", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(made({ maxReflectionsInPrompt: -1 }))
      assert.strictEqual(
        error.message,
        "reflexion_agent: max_reflections_in_prompt: expected a whole number of at least 0, found -1",
      )
    }),
  )
})
