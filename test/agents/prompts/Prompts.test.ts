import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, FileSystem } from "effect"
import * as FunctionAgent from "../../../src/agents/agent/FunctionAgent.ts"
import type { Plain } from "../../../src/base/config/Config.ts"
import { config, learned } from "./support.ts"

const temporary = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped())

const withReflection = (lm: Record<string, unknown>, max = 100) => ({
  ...config,
  learner: { ...Object(config["learner"]), reflection_lm_config: lm, max_metric_calls: max },
})

const json = (text: string | undefined): Record<string, unknown> => JSON.parse(text ?? "null")

describe("a run that learns prompts", () => {
  it.effect("finds a better prompt than the seed's, also on held-out tasks", () =>
    Effect.gen(function* () {
      const { result, files } = yield* learned(config)
      assert.isAbove(result.best, 0)
      assert.strictEqual(result.endedBy, "metric_calls")
      assert.isAtMost(result.steps, 100)
      const { testScores: test } = result
      assert.strictEqual(test?.tasks, 20)
      assert.strictEqual(test?.seed.mean, 0)
      assert.isAbove(test?.difference.low ?? 0, 0.1)
      assert.match(String(json(files.get("texts.json"))["system_prompt"]), /^RULE: \[\w+\] -> \w+; RULE/)
      const { candidates, best } = json(files.get("candidates.json"))
      assert.strictEqual(Array.isArray(candidates) && candidates.length, result.candidates)
      assert.strictEqual(best, result.best)
      assert.isTrue(files.has("rollouts/train/rollouts.jsonl"))
      assert.isTrue(files.has("scores/train/scores.jsonl"))
    }),
  )

  it.effect("has the same candidates with any number of workers", () =>
    Effect.gen(function* () {
      const digests = yield* Effect.forEach([1, 8], (workers) =>
        Effect.map(learned({ ...config, workers }), ({ result }) => result.digest),
      )
      assert.strictEqual(digests[0], digests[1])
    }),
  )

  it.effect("has the same candidates when episodes ask for their texts in another order", () =>
    Effect.gen(function* () {
      const inOrderOf = Effect.fnUntraced(function* (isFirst: (text: string) => boolean) {
        // The others wait until the first ones have asked.
        const asked = Deferred.makeUnsafe<void>()
        const coder = FunctionAgent.make("coder", ({ text }, { text: named }) =>
          Effect.gen(function* () {
            if (!isFirst(text)) yield* Deferred.await(asked)
            named(text.length % 2 === 0 ? "even" : "odd", "x")
            named("both", text)
            yield* Deferred.succeed(asked, undefined)
            return "no"
          }),
        )
        const learner = { ...Object(config["learner"]), max_metric_calls: 40 }
        const agent = { type: coder }
        return yield* learned({ ...config, agent, test_dataset: null, workers: 12, learner })
      })
      const first = yield* inOrderOf((text) => text.length % 2 === 0)
      const second = yield* inOrderOf((text) => text.length % 2 === 1)
      assert.lengthOf(Object.keys(json(first.files.get("texts.json"))), 3)
      assert.strictEqual(first.result.digest, second.result.digest)
    }),
  )

  it.effect("learns the texts that a function asks for, whose values it learns when it plays", () =>
    Effect.gen(function* () {
      const coder = FunctionAgent.make("coder", ({ text }, { text: named }) => {
        const word = /\[[^\]]+\]/.exec(text)?.[0] ?? ""
        const rule = named("rules", "none yet")
          .split("; ")
          .find((line) => line.includes(word))
        return rule?.split(" -> ")[1] ?? "no idea"
      })
      const { result, files } = yield* learned({ ...config, agent: { type: coder } })
      assert.deepStrictEqual(Object.keys(json(files.get("texts.json"))), ["rules"])
      assert.isAbove(result.testScores?.difference.low ?? 0, 0.1)
    }),
  )

  it.effect("begins with the texts of the config, and a function agent loads what was learned", () =>
    Effect.gen(function* () {
      const seen = new Set<string>()
      const agent = FunctionAgent.make("told", (_, { text }) => {
        seen.add(text("my_rules", "own"))
        return "x"
      })
      const fs = yield* FileSystem.FileSystem
      const directory = yield* temporary
      yield* fs.writeFileString(`${directory}/texts.json`, '{"my_rules":"learned"}')
      const learner = { ...Object(config["learner"]), max_metric_calls: 30 }
      for (const [texts, expected] of [
        [{ my_rules: "configured" }, "configured"],
        [directory, "learned"],
      ]) {
        seen.clear()
        const what = { ...config, agent: { type: agent, texts }, learner, test_dataset: null }
        const { files } = yield* learned(what)
        const [seed] = Object(json(files.get("candidates.json"))["candidates"])
        assert.deepStrictEqual(seed.texts, { my_rules: expected })
        assert.isFalse(seen.has("own"))
      }
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.effect("collects few-shot examples from successes", () =>
    Effect.gen(function* () {
      // It guesses some words, and copies the answers of the examples that it is shown.
      const guesser = FunctionAgent.make("guesser", ({ text }, { text: named, seed }) => {
        const [, word = ""] = /\[([^\]]+)\]/.exec(text) ?? []
        const shown = new RegExp(`\\[${word}\\][^]*?Output:\\n(\\w+)`).exec(named("constructor", ""))
        return shown?.[1] ?? (seed % 2 === 0 ? word : "no idea")
      })
      const items = ["a", "b", "c", "d", "e", "f"].map((word) => ({ question: `Say [${word}].`, answer: word }))
      const { result, files } = yield* learned({
        ...config,
        agent: { type: guesser },
        dataset: { items },
        validation_dataset: { items: items.toReversed() },
        test_dataset: null,
        // No object's own names count as texts.
        learner: { type: "bootstrap", text: "constructor", shots: 2, sets: 3, max_metric_calls: 60 },
      })
      assert.strictEqual(result.endedBy, "done")
      assert.strictEqual(result.candidates, 4)
      assert.isNull(result.testScores)
      assert.isAbove(result.validationScores.best.mean, result.validationScores.seed.mean)
      assert.deepStrictEqual(Object.keys(json(files.get("texts.json"))), ["constructor"])
      for (const file of ["texts.json", "candidates.json"]) assert.match(files.get(file) ?? "", /[^\n]\n$/)
    }),
  )
})

type Learned = Effect.Success<ReturnType<typeof learned>>

const linesIn = (text: string | undefined): ReadonlyArray<string> => (text ?? "").trimEnd().split("\n")

/** Resumes from what a killed process leaves behind: the journal up to some line, and a part of the next one. */
const resumed = (what: Plain, whole: Learned, lines: number) => {
  const kept = linesIn(whole.files.get("prompts.jsonl")).slice(0, lines)
  const files = new Map<string, Uint8Array>()
  const directory = whole.result.runDir
  const encoder = new TextEncoder()
  for (const name of ["config.yaml", "config.json", "run.log"])
    files.set(`${directory}/${name}`, encoder.encode(whole.files.get(name) ?? ""))
  files.set(`${directory}/prompts.jsonl`, encoder.encode(`${kept.join("\n")}\n{"place":"valid`))
  return Effect.map(learned(what, { files, resume: directory }), (again) => ({ ...again, kept }))
}

describe("a stopped run", () => {
  it.effect("resumes at any call, repeats none, and ends with the same candidates", () =>
    Effect.gen(function* () {
      const whole = yield* learned(config)
      const total = linesIn(whole.files.get("prompts.jsonl")).length
      for (const share of [0.05, 0.5, 0.95]) {
        const { kept, ...again } = yield* resumed(config, whole, Math.max(1, Math.floor(total * share)))
        assert.strictEqual(again.result.digest, whole.result.digest)
        assert.strictEqual(again.files.get("candidates.json"), whole.files.get("candidates.json"))
        assert.lengthOf(linesIn(again.files.get("prompts.jsonl")), total)
        assert.strictEqual(
          again.files.get("prompts.jsonl")?.split("\n").slice(0, kept.length).join("\n"),
          kept.join("\n"),
        )
      }
    }),
  )

  it.effect("keeps the texts for which a function asked in the episodes that are not repeated", () =>
    Effect.gen(function* () {
      const coder = FunctionAgent.make("coder", ({ text }, { text: named }) => {
        const word = /\[[^\]]+\]/.exec(text)?.[0] ?? ""
        named(word < "[m" ? "early" : "late", word)
        const rule = named("rules", "none yet")
          .split("; ")
          .find((line) => line.includes(word))
        return rule?.split(" -> ")[1] ?? "no idea"
      })
      const what = {
        ...config,
        agent: { type: coder },
        learner: { ...Object(config["learner"]), max_metric_calls: 60 },
      }
      const whole = yield* learned(what)
      assert.sameMembers(Object.keys(json(whole.files.get("texts.json"))), ["early", "late", "rules"])
      // Some or all of the 12 validation episodes of the seed are kept.
      for (const lines of [4, 13]) {
        const again = yield* resumed(what, whole, lines)
        assert.strictEqual(again.result.digest, whole.result.digest, `after ${lines} lines`)
      }
    }),
  )

  it.effect("may have another limit for the calls of a judge, but no other judge", () =>
    Effect.gen(function* () {
      const files = new Map<string, Uint8Array>()
      const judged = (lm: Plain) => ({
        ...config,
        scorer: { type: "judge", rubric: "Is it right?", lm_config: { model: "scripted:echo", ...lm } },
        test_dataset: null,
        learner: { ...Object(config["learner"]), max_metric_calls: 30 },
      })
      const { result } = yield* learned(judged({}), { files })
      const place = { files, resume: result.runDir }
      const again = yield* learned(judged({ max_retries: 1, budget: { calls: 1000 } }), place)
      assert.strictEqual(again.result.digest, result.digest)
      const error = yield* Effect.flip(learned(judged({ temperature: 0.5 }), place))
      assert.include(error.message, "scorer: the run was started with")
    }),
  )

  it.effect("does not need the file of its reflection prompt, but notices another prompt", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const file = `${yield* temporary}/prompt.md`
      const prompt = "Improve ```{text}``` by {examples}"
      const reflecting = (reflection_prompt: string) => ({
        ...config,
        test_dataset: null,
        learner: { ...Object(config["learner"]), reflection_prompt, max_metric_calls: 30 },
      })
      yield* fs.writeFileString(file, prompt)
      const files = new Map<string, Uint8Array>()
      const { result, files: written } = yield* learned(reflecting(`{file:${file}}`), { files })
      assert.include(written.get("config.yaml"), prompt)
      const place = { files, resume: result.runDir }
      // A resume reads the saved config, which has the text of the file.
      assert.strictEqual((yield* learned(reflecting(prompt), place)).result.digest, result.digest)
      yield* fs.writeFileString(file, `Please: ${prompt}`)
      const error = yield* Effect.flip(learned(reflecting(`{file:${file}}`), place))
      assert.include(error.message, "learner: the run was started with")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.effect("can continue with a larger budget, as if it had had it from the beginning", () =>
    Effect.gen(function* () {
      const withBudget = (max: number) => ({
        ...config,
        learner: { ...Object(config["learner"]), max_metric_calls: max },
      })
      const files = new Map<string, Uint8Array>()
      const short = yield* learned(withBudget(60), { files })
      const longer = yield* learned(withBudget(100), { files, resume: short.result.runDir })
      const whole = yield* learned(withBudget(100))
      assert.strictEqual(longer.result.digest, whole.result.digest)
    }),
  )

  it.effect("keeps its answers if the reflection model fails for good, and continues when it answers again", () =>
    Effect.gen(function* () {
      const whole = yield* learned(config)
      const directory = yield* temporary
      const files = new Map<string, Uint8Array>()
      const nothing = { model: "scripted:reader", cache: "replay", cache_dir: directory }
      const error = yield* Effect.flip(learned(withReflection(nothing), { files }))
      assert.strictEqual(error._tag, "LmError")
      assert.include(error.message, "no answer to the request")
      const [run = ""] = [...files.keys()].flatMap((path) => /^(.*)\/prompts\.jsonl$/.exec(path)?.[1] ?? [])
      const kept = new TextDecoder().decode(files.get(`${run}/prompts.jsonl`)).split("\n")
      // The settings, the seed's validation, and the first minibatch.
      assert.strictEqual(kept.length - 1, 1 + 12 + 3)
      const { result } = yield* learned(config, { files, resume: run })
      assert.strictEqual(result.digest, whole.result.digest)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.effect("is repeated from recorded answers, with the same digest", () =>
    Effect.gen(function* () {
      const cache_dir = yield* temporary
      const cached = (cache: string) => {
        const lm_config = { model: "scripted:reader", temperature: 1, cache, cache_dir }
        const agent = { ...Object(config["agent"]), lm_config }
        return learned({ ...withReflection({ ...lm_config }, 50), agent, test_dataset: null })
      }
      const recorded = yield* cached("record")
      const replayed = yield* cached("replay")
      assert.strictEqual(replayed.result.digest, recorded.result.digest)
      assert.isAbove(replayed.result.best, 0)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer)),
  )

  it.effect("is not resumed with another agent", () =>
    Effect.gen(function* () {
      const files = new Map<string, Uint8Array>()
      const { result } = yield* learned(config, { files })
      const other = { ...config, agent: { ...Object(config["agent"]), system_prompt: "Other." } }
      const error = yield* Effect.flip(learned(other, { files, resume: result.runDir }))
      assert.match(error.message, /agent: the run was started with .*"Answer\.".*start a new run without --resume/)
    }),
  )
})

describe("settings of a run that learns prompts", () => {
  const refused = (what: Record<string, unknown>) =>
    Effect.map(Effect.flip(learned({ ...config, ...what })), ({ message }) => message)

  it.effect("are checked before anything is played", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* refused({ learner: { ...Object(config["learner"]), max_metric_calls: 20 } }),
        "Prompts.fromConfig: learner.max_metric_calls: expected at least 30 (the seed's validation, 12, and one iteration, 18), found 20",
      )
      assert.include(
        yield* refused({ learner: { ...Object(config["learner"]), reflection_prompt: "Improve {text}." } }),
        "learner.reflection_prompt: expected a prompt with {text} and {examples}, found none of {examples}",
      )
      assert.include(yield* refused({ scorer: "tokens" }), "scorer: expected a scorer whose higher values are better")
      assert.include(
        yield* refused({ learn: ["sistem"] }),
        'learn: the agent has no text "sistem"; it has system_prompt',
      )
      assert.include(
        yield* refused({ dataset: { type: "codebook", num_tasks: 5, max_samples: 0 } }),
        "dataset: expected",
      )
    }),
  )
})
