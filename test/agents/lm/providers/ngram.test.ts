import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as MemorylessAgent from "../../../../src/agents/agent/MemorylessAgent.ts"
import * as TextEnv from "../../../../src/agents/task/TextEnv.ts"
import * as Samples from "../../../../src/agents/episode/samples/samples.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import type { LmRequest } from "../../../../src/agents/lm/Chat.ts"
import { completionIds, promptIds } from "../../../../src/agents/lm/ChatTokens.ts"
import { Lm } from "../../../../src/agents/lm/Lm.ts"
import * as Ngram from "../../../../src/agents/lm/providers/ngram.ts"
import { seeded } from "../../../../src/agents/lm/middleware/seeded.ts"
import { request } from "../support.ts"

const say = (model: Ngram.Ngram, text: string, more: Partial<LmRequest> = {}) =>
  Effect.runSync(model.lm.complete(request(text, { temperature: 1, traceTokens: true, seed: 0, ...more })))

const traceOf = ({ tokens }: ReturnType<typeof say>) => {
  assert(tokens !== null)
  return tokens
}

const questions = [
  ["What does the sparrow eat?", "seeds"],
  ["What does the cat eat?", "mice"],
  ["What does the cow eat?", "grass"],
  ["What does the shark eat?", "fish"],
] as const
const answers = questions.map(([, answer]) => answer)

const quiz = (question: string, answer: string): TextEnv.TextEnv =>
  TextEnv.make({
    id: question,
    type: "quiz",
    begin: () => ({ state: null, observation: question }),
    step: (state, action) => ({
      state,
      observation: null,
      feedback: { score: action === answer ? 1 : 0, target: answer, message: "" },
      terminated: true,
    }),
  })

describe("ngram", () => {
  it("learns the right answers from rewards alone, reproducibly", () => {
    const train = () => {
      const model = Ngram.make({ answers })
      const right: Array<number> = []
      for (let episode = 0; episode < 400; episode++) {
        const [question, answer] = questions[episode % 4]
        const completion = say(model, question, { seed: episode })
        const reward = completion.content === answer ? 1 : 0
        right.push(reward)
        model.learn([Ngram.sample(traceOf(completion), reward - 0.25)])
      }
      return { model, right }
    }
    const { model, right } = train()
    const mean = (some: ReadonlyArray<number>) => some.reduce((sum, one) => sum + one, 0) / some.length
    assert.isBelow(mean(right.slice(0, 40)), 0.5)
    assert.isAbove(mean(right.slice(-100)), 0.9)
    for (const [question, answer] of questions) {
      assert.strictEqual(say(model, question, { temperature: 0 }).content, answer)
    }
    assert.deepStrictEqual(train().right, right)
  })

  it.effect("learns from the samples of an agent's rollouts", () =>
    Effect.gen(function* () {
      const policy = Ngram.make({ answers })
      const agent = yield* MemorylessAgent.make({ model: "policy", temperature: 1, traceTokens: true }).pipe(
        Effect.provideService(Lm, seeded(policy.lm)),
      )
      const right: Array<number> = []
      for (let round = 0; round < 100; round++) {
        const rollouts = yield* Effect.forEach(questions, ([question, answer], index) =>
          SingleAgent.play(agent, {
            id: `${round}-${index}`,
            env: quiz(question, answer),
            envSeed: 0,
            samplingSeed: 4 * round + index,
          }),
        )
        for (const { totalReward } of rollouts) right.push(totalReward)
        const samples = yield* Samples.of(rollouts, { requireLogprobs: true })
        policy.learn(samples.map((sample) => ({ ...sample, weight: sample.credit - 0.25 })))
      }
      const scored = (some: ReadonlyArray<number>) => some.reduce((sum, one) => sum + one, 0) / some.length
      assert.isBelow(scored(right.slice(0, 40)), 0.5)
      assert.isAbove(scored(right.slice(-100)), 0.9)
    }),
  )

  it("generalises to new questions from their words", () => {
    const model = Ngram.make({ answers })
    const lessons = questions.map(([question, answer]) => {
      const { promptIds } = traceOf(say(model, question))
      const completionIds = [...model.tokenizer.encode(answer), 0]
      return Ngram.sample({ promptIds, completionIds, logprobs: null }, 1)
    })
    for (let epoch = 0; epoch < 20; epoch++) model.learn(lessons)
    assert.strictEqual(say(model, "Tell me: shark?", { temperature: 0 }).content, "fish")
    // Only the last paragraph counts.
    const history = "OBSERVATION: What does the cat eat?\n\nFEEDBACK: mice\n\nWhat does the cow eat?"
    assert.strictEqual(say(model, history, { temperature: 0 }).content, "grass")
  })

  it("learns to write by imitation, character by character", () => {
    const model = Ngram.make()
    const text = "Hello, world."
    const { promptIds } = traceOf(say(model, "Hi", { maxOutputTokens: 1 }))
    const lesson = Ngram.sample({ promptIds, completionIds: [...model.tokenizer.encode(text), 0], logprobs: null }, 1)
    const logprobs = Array.from({ length: 30 }, () => model.learn([lesson]))
    assert.isAbove(logprobs[29], logprobs[0] + 3)
    const { content, finishReason } = say(model, "Hi", { temperature: 0 })
    assert.deepStrictEqual([content, finishReason], [text, "stop"])
  })

  it("makes samples of negative weight less likely", () => {
    const model = Ngram.make({ answers: ["left", "right"] })
    const completion = say(model, "Where?")
    for (let times = 0; times < 10; times++) model.learn([Ngram.sample(traceOf(completion), -1)])
    assert.notStrictEqual(say(model, "Where?", { temperature: 0 }).content, completion.content)
  })

  it("learns from several turns as from each alone", () => {
    const first = Ngram.make({ answers: ["a", "b"] })
    const one = traceOf(say(first, "one"))
    const two = traceOf(
      Effect.runSync(
        first.lm.complete({
          ...request("one", { traceTokens: true, temperature: 1 }),
          messages: [
            { role: "user", content: "one" },
            { role: "assistant", content: say(first, "one").content },
            { role: "user", content: "two" },
          ],
        }),
      ),
    )
    const begun = one.promptIds.length + one.completionIds.length
    assert.deepStrictEqual(two.promptIds.slice(0, begun), [...one.promptIds, ...one.completionIds])
    const ids = [...two.promptIds, ...two.completionIds]
    const mask = ids.map((_, at) => ((at >= one.promptIds.length && at < begun) || at >= two.promptIds.length ? 1 : 0))
    first.learn([{ inputIds: ids, actionMask: mask, weight: 1 }])
    const second = Ngram.make({ answers: ["a", "b"] })
    second.learn([Ngram.sample(one, 1), Ngram.sample(two, 1)])
    assert.deepStrictEqual(first.snapshot(), second.snapshot())
  })

  it("samples answers as often as their log-probabilities say", () => {
    const model = Ngram.make({ answers: ["left", "right", "up"] })
    model.learn([Ngram.sample(traceOf(say(model, "Where?")), 1)])
    for (const more of [{}, { temperature: 0.5 }, { topP: 0.6 }]) {
      const counts = new Map<string, number>()
      const chances = new Map<string, number>()
      const draws = 2000
      for (let seed = 0; seed < draws; seed++) {
        const completion = say(model, "Where?", { seed, ...more })
        const logprobs = traceOf(completion).logprobs ?? []
        counts.set(completion.content, (counts.get(completion.content) ?? 0) + 1)
        chances.set(completion.content, Math.exp(logprobs.reduce((sum, one) => sum + one, 0)))
      }
      assert.closeTo(
        [...chances.values()].reduce((sum, one) => sum + one),
        1,
        1e-9,
      )
      for (const [text, chance] of chances) assert.closeTo((counts.get(text) ?? 0) / draws, chance, 0.03)
    }
  })

  it("is more certain at a lower temperature", () => {
    const model = Ngram.make({ answers: ["left", "right"] })
    model.learn([Ngram.sample(traceOf(say(model, "Where?")), 1)])
    const odds = (temperature: number) => {
      const [chosen] = traceOf(say(model, "Where?", { temperature })).logprobs ?? []
      return Math.abs(chosen - Math.log(-Math.expm1(chosen)))
    }
    assert.isAbove(odds(1), 0.1)
    assert.closeTo(odds(0.5), 2 * odds(1), 1e-9)
  })

  it("generates text that encodes to the same tokens", () => {
    for (const [model, how] of [
      [Ngram.make(), { maxOutputTokens: 40 }],
      [Ngram.make({ vocabulary: ["yes", "no", "maybe"] }), { maxOutputTokens: 12 }],
      [Ngram.make({ answers: ["go left", "go", "left", "Grüße"] }), {}],
      [Ngram.make(), { maxOutputTokens: 40, stop: ["a", "e"] }],
      [Ngram.make({ vocabulary: ["yes", "no", "maybe"] }), { maxOutputTokens: 12, stop: ["o", "ay"] }],
    ] as const) {
      for (let seed = 0; seed < 50; seed++) {
        const completion = say(model, "What now?", { seed, ...how })
        const trace = traceOf(completion)
        const { content } = completion
        const ended = trace.completionIds.at(-1) === 0
        assert.deepStrictEqual(
          trace.completionIds,
          completionIds(model.tokenizer, { role: "assistant", content }, ended),
        )
        assert.strictEqual(trace.logprobs?.length, trace.completionIds.length)
        assert.deepStrictEqual(trace.promptIds, promptIds(model.tokenizer, request("What now?")))
        assert.strictEqual(completion.usage.outputTokens, trace.completionIds.length)
        if ("stop" in how) for (const stop of how.stop) assert.notInclude(content, stop)
      }
    }
  })

  it("reports that an answer was cut off", () => {
    const model = Ngram.make({ vocabulary: ["yes", "no"] })
    const reasons = [1, 2, 3, 4, 5, 6].map((seed) => {
      const { content, finishReason, tokens } = say(model, "?", { seed, maxOutputTokens: 2 })
      assert.strictEqual(finishReason === "stop", tokens?.completionIds.at(-1) === 0, content)
      return finishReason
    })
    assert.deepStrictEqual([...new Set(reasons)].sort(), ["length", "stop"])
  })

  it.effect("survives being saved and read, and names a file that is no model", () =>
    Effect.gen(function* () {
      const model = Ngram.make({ answers, order: 2 })
      for (let seed = 0; seed < 30; seed++) {
        model.learn([Ngram.sample(traceOf(say(model, questions[seed % 4][0], { seed })), (seed % 3) - 1)])
      }
      const again = yield* Ngram.read(JSON.stringify(model.snapshot()), "m.json")
      assert.deepStrictEqual(again.snapshot(), model.snapshot())
      for (let seed = 0; seed < 30; seed++) {
        const [question] = questions[seed % 4]
        assert.deepStrictEqual(say(again, question, { seed }), say(model, question, { seed }))
      }
      const none = yield* Effect.flip(Ngram.read("{", "m.json"))
      assert.match(none.message, /^m\.json: not the JSON of a model: /)
      const other = yield* Effect.flip(Ngram.read('{"kind":"other"}', "m.json"))
      assert.match(other.message, /^m\.json: kind: expected "effect-rl\/ngram", found "other"/)
      const empty = yield* Effect.flip(Ngram.read(JSON.stringify({ ...model.snapshot(), answers: [] }), "m.json"))
      assert.include(empty.message, "answers: expected texts to choose from")
    }),
  )
})
