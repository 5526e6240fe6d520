import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Schema, Stream } from "effect"
import type * as Credit from "../../../../src/agents/episode/samples/credit.ts"
import type { AgentStep, Rollout } from "../../../../src/agents/episode/Rollout.ts"
import * as Samples from "../../../../src/agents/episode/samples/samples.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import { decodeExperts, encodeExperts } from "../../../../src/base/formats/routedExperts.ts"
import { bytes } from "../../../../src/base/tokens/words.ts"
import {
  counting,
  episodeOf,
  scripted,
  type ScriptedAnswer,
  type ScriptOptions,
  tokensOf,
  withTools,
} from "../support.ts"

const text = (ids: ReadonlyArray<number>): string => String.fromCodePoint(...ids)
/** Keeps the tokens that the mask marks. */
const said = ({ inputIds, actionMask }: Samples.Sample): string =>
  text(inputIds.filter((_, at) => actionMask[at] === 1))
const says = (all: ReadonlyArray<ScriptedAnswer>, options?: ScriptOptions) =>
  scripted((index) => all[Math.min(index, all.length - 1)], options)
const lookup: ScriptedAnswer = { tools: [["lookup", "x"]] }
const go: ScriptedAnswer = { act: "go" }

const changed = (
  rollout: Rollout,
  index: number,
  change: (step: AgentStep) => Partial<AgentStep["call"]["completion"]>,
): Rollout => ({
  ...rollout,
  steps: rollout.steps.map((step) =>
    step.index === index && step._tag === "AgentStep"
      ? { ...step, call: { ...step.call, completion: { ...step.call.completion, ...change(step) } } }
      : step,
  ),
})

/** A trace in which the expert of each token that the model has read is `first`. */
const withExpert = (step: AgentStep, first: number) => {
  const { tokens } = step.call.completion
  if (tokens === null) return {}
  const read = tokens.promptIds.length + tokens.completionIds.length - 1
  const ids = new Uint8Array(read).fill(first)
  return { tokens: { ...tokens, routedExperts: encodeExperts({ layers: 1, perToken: 1, ids }) } }
}

describe("samples", () => {
  it.effect("are one sequence for each turn: prompts and completions", () =>
    Effect.gen(function* () {
      const agent = says([lookup, lookup, go, { fail: "what?" }, go])
      const rollout = yield* SingleAgent.play(agent, episodeOf(withTools(3)), { maxSteps: 3 })
      const samples = yield* Samples.of([rollout])
      assert.deepStrictEqual(
        samples.map(({ id }) => id),
        ["e/turn/0", "e/turn/1", "e/turn/2"],
      )
      const [first, second, third] = samples
      const begun = "system:play\nuser:count from 0\nassistant:"
      assert.isTrue(text(first.inputIds).startsWith(`${begun}call 1`))
      assert.strictEqual(said(first), "call 1call 2go")
      assert.strictEqual(
        first.actionMask.findIndex((mask) => mask === 1),
        begun.length,
      )
      assert.deepInclude(first, {
        turnId: "e/turn/0",
        stepIndices: [0, 1, 2],
        stepIds: ["e/0", "e/1", "e/2"],
        actionTargets: ["external", "external", "env"],
        hasEnvStep: true,
        parseFailed: false,
        reward: 0.1,
        terminated: false,
        truncated: false,
        weight: 1,
        credit: rollout.totalReward,
      })
      assert.deepInclude(second, { hasEnvStep: false, parseFailed: true, reward: -0.1 })
      assert.deepInclude(third, { hasEnvStep: true, reward: 0.2, truncated: true, terminated: false })
    }),
  )

  it.effect("need conversations that only grow within a turn, but not from one turn to the next", () =>
    Effect.gen(function* () {
      const agent = says([lookup, go, go], { forgetful: true })
      const samples = yield* Samples.of([yield* SingleAgent.play(agent, episodeOf(withTools(2)))])
      assert.deepStrictEqual(samples.map(said), ["call 1go", "go"])
      assert.isTrue(text(samples[1].inputIds).startsWith("system:play\nuser:at 1\nassistant:"))
    }),
  )

  it.effect("have the log-probabilities of completions, and 0 elsewhere", () =>
    Effect.gen(function* () {
      const rollout = yield* SingleAgent.play(says([lookup, go]), episodeOf(withTools(1)))
      const [{ inputIds, actionMask, logprobs }] = yield* Samples.of([rollout], { requireLogprobs: true })
      assert.deepStrictEqual(
        logprobs,
        inputIds.map((id, at) => (actionMask[at] === 1 ? -id / 1000 : 0)),
      )
    }),
  )

  it.effect(
    "keep the experts of the call that sampled a token, and take those of other tokens from the next call",
    () =>
      Effect.gen(function* () {
        const played = yield* SingleAgent.play(says([lookup, go]), episodeOf(withTools(1)))
        const rollout = changed(
          changed(played, 0, (step) => withExpert(step, 3)),
          1,
          (step) => withExpert(step, 4),
        )
        const [{ inputIds, actionMask, routedExperts }] = yield* Samples.of([rollout])
        const experts = routedExperts && decodeExperts(routedExperts)
        assert(typeof experts === "object")
        const end = actionMask.lastIndexOf(1, actionMask.lastIndexOf(0))
        assert.deepStrictEqual(
          Array.from(experts.ids),
          inputIds.slice(0, -1).map((_, at) => (at < end ? 3 : 4)),
        )
        const [cut] = yield* Samples.of([rollout], { maxSeqLen: 5 })
        assert.deepStrictEqual(cut.routedExperts?.shape, [5, 1, 1])
      }),
  )

  it.effect("record how the episode ended, and which sample it ended with", () =>
    Effect.gen(function* () {
      const endings = function* (goal: number, action: string, maxSteps: number | null) {
        const agent = scripted(() => ({ act: action }))
        const samples = yield* Samples.of([yield* SingleAgent.play(agent, episodeOf(counting(goal)), { maxSteps })])
        return samples.map((sample) => [
          sample.terminated,
          sample.truncated,
          sample.episodeTerminated,
          sample.episodeTruncated,
          sample.truncationReason,
        ])
      }
      assert.deepStrictEqual(yield* Effect.gen(() => endings(5, "go", 2)), [
        [false, false, false, true, "max_steps"],
        [false, true, false, true, "max_steps"],
      ])
      assert.deepStrictEqual(yield* Effect.gen(() => endings(5, "stop", null)), [[false, true, false, true, "env"]])
      assert.deepStrictEqual(yield* Effect.gen(() => endings(2, "go", null)), [
        [false, false, true, false, null],
        [true, false, true, false, null],
      ])
    }),
  )

  it.effect("are cut off if they are too long, and marked apart from the episode's ending", () =>
    Effect.gen(function* () {
      const whole = yield* SingleAgent.play(
        scripted(() => go),
        episodeOf(counting(2)),
      )
      const capped = yield* SingleAgent.play(
        scripted(() => go),
        episodeOf(counting(5)),
        { maxSteps: 2 },
      )
      const [full] = yield* Samples.of([whole])
      for (const [rollout, reason] of [
        [whole, "max_seq_len"],
        [capped, "max_steps"],
      ] as const) {
        const samples = yield* Samples.of([rollout], { maxSeqLen: full.inputIds.length - 1 })
        const [first, second] = samples
        const length = full.inputIds.length - 1
        assert.deepInclude(first, {
          inputIds: full.inputIds.slice(0, length),
          actionMask: full.actionMask.slice(0, length),
          seqLenTruncated: true,
          seqLenOriginal: length + 1,
          seqLenRetained: length,
          truncationReason: reason,
          truncated: true,
        })
        assert.strictEqual(first.logprobs?.length, length)
        assert.strictEqual(first.episodeTruncated, rollout.ending.truncated)
        assert.strictEqual(second.terminated, rollout.ending.terminated)
      }
      const [exact] = yield* Samples.of([whole], { maxSeqLen: full.inputIds.length })
      assert.deepStrictEqual(exact, full)
      assert.deepInclude(exact, { seqLenTruncated: false, truncated: false, truncationReason: null })
    }),
  )

  it.effect("have the credit and weight of the turn's last step", () =>
    Effect.gen(function* () {
      const rollout = yield* SingleAgent.play(says([lookup, go]), episodeOf(withTools(2)))
      const credit: Credit.StepCredit = ([{ steps }]) => new Map(steps.map(({ id, index }) => [id, index * 10]))
      const samples = yield* Samples.of([rollout], { credit, weight: ({ index }) => index })
      assert.deepStrictEqual(
        samples.map(({ credit, weight }) => [credit, weight]),
        [
          [20, 2],
          [40, 4],
        ],
      )
    }),
  )

  it.effect("have a turn of its own for a reflection", () =>
    Effect.gen(function* () {
      const agent = scripted(() => go, { reflections: ["hm"] })
      const rollout = yield* SingleAgent.play(agent, episodeOf(counting(1)))
      const samples = yield* Samples.of([rollout])
      assert.deepStrictEqual(
        samples.map(({ purpose, credit, terminated }) => [purpose, credit, terminated]),
        [
          ["action", 0.1, true],
          ["reflection", 0, false],
        ],
      )
    }),
  )
})

describe("tokens that the server did not give", () => {
  const untraced = (rollout: Rollout): Rollout =>
    rollout.steps.reduce((all, { index }) => changed(all, index, () => ({ tokens: null })), rollout)

  it.effect("are made by a tokenizer, of messages and tools", () =>
    Effect.gen(function* () {
      const rollout = untraced(yield* SingleAgent.play(says([lookup, go]), episodeOf(withTools(1))))
      const [sample] = yield* Samples.of([rollout], { tokenizer: bytes })
      const tool = `[{"id":"call-1-0","name":"lookup","arguments":"x"}]`
      assert.strictEqual(bytes.decode(sample.inputIds), `playcount from 0call 1${tool}lookup x at 0go`)
      const masked = sample.inputIds.filter((_, at) => sample.actionMask[at] === 1)
      assert.strictEqual(bytes.decode(masked), `call 1${tool}go`)
      assert.isNull(sample.logprobs)
      const tools = [{ name: "lookup", description: "", parameters: {} }]
      const told: Rollout = {
        ...rollout,
        steps: rollout.steps.map((step) =>
          step._tag === "AgentStep" ? { ...step, call: { ...step.call, tools } } : step,
        ),
      }
      const [withSpecs] = yield* Samples.of([told], { tokenizer: bytes })
      assert.strictEqual(bytes.decode(withSpecs.inputIds), `${JSON.stringify(tools)}${bytes.decode(sample.inputIds)}`)
    }),
  )

  it.effect("are an error without a tokenizer", () =>
    Effect.gen(function* () {
      const rollout = untraced(yield* SingleAgent.play(says([go]), episodeOf(counting(1))))
      const error = yield* Effect.flip(Samples.of([rollout]))
      assert.deepInclude(error, { _tag: "SampleError", reason: "no_tokens", turn: "e/turn/0", step: "e/0" })
    }),
  )
})

describe("a rollout that cannot become samples", () => {
  const failing = (change: (rollout: Rollout) => Rollout, options: Samples.SampleOptions = {}) =>
    Effect.gen(function* () {
      const rollout = yield* SingleAgent.play(says([lookup, go]), episodeOf(withTools(1)))
      return yield* Effect.flip(Samples.of([change(rollout)], options))
    })
  const tokens = (step: AgentStep, about: Partial<NonNullable<AgentStep["call"]["completion"]["tokens"]>>) => ({
    tokens: { promptIds: [], completionIds: [], logprobs: null, ...step.call.completion.tokens, ...about },
  })

  const cases: ReadonlyArray<
    [
      what: string,
      change: (rollout: Rollout) => Rollout,
      options: Samples.SampleOptions,
      reason: Samples.SampleError["reason"],
      said: string,
    ]
  > = [
    [
      "a prompt that says something else",
      (rollout) =>
        changed(rollout, 1, (step) => tokens(step, { promptIds: tokensOf("system:PLAY and so on".repeat(9)) })),
      {},
      "not_append_only",
      "e/turn/0: step e/1: its prompt differs at token 7 from the earlier tokens of the turn",
    ],
    [
      "a prompt that is shorter",
      (rollout) => changed(rollout, 1, (step) => tokens(step, { promptIds: tokensOf("system:play") })),
      {},
      "not_append_only",
      "e/turn/0: step e/1: its prompt has 11 tokens, fewer than the 46 earlier tokens of the turn",
    ],
    [
      "log-probabilities of another number",
      (rollout) => changed(rollout, 0, (step) => tokens(step, { logprobs: [-1] })),
      {},
      "logprobs",
      "e/turn/0: step e/0: expected 6 log-probabilities, one for each token, found 1",
    ],
    [
      "log-probabilities of some",
      (rollout) => changed(rollout, 0, (step) => tokens(step, { logprobs: null })),
      {},
      "logprobs",
      "e/turn/0: step e/0: it has no log-probabilities, but 1 of the turn's 2 calls have them",
    ],
    [
      "log-probabilities that are asked for",
      (rollout) => changed(rollout, 0, (step) => tokens(step, { logprobs: null })),
      { requireLogprobs: true },
      "logprobs",
      "e/turn/0: step e/0: expected log-probabilities, found none",
    ],
    [
      "experts of another number of tokens",
      (rollout) =>
        changed(rollout, 0, (step) =>
          tokens(step, { routedExperts: encodeExperts({ layers: 2, perToken: 1, ids: Uint8Array.of(1, 2) }) }),
        ),
      {},
      "routed_experts",
      "e/turn/0: step e/0: expected the experts of 45 tokens, all of prompt and completion except the last one, found those of 1",
    ],
    [
      "experts of some calls",
      (rollout) => changed(rollout, 1, (step) => withExpert(step, 0)),
      {},
      "routed_experts",
      "e/turn/0: step e/0: expected 1 experts in each of 1 layers, as other calls of the turn have them; found none",
    ],
    [
      "a weight that is none",
      (rollout) => rollout,
      { weight: () => NaN },
      "not_finite",
      "e/turn/0: step e/2: weight: expected a finite number, found NaN",
    ],
    [
      "a credit that is missing",
      (rollout) => rollout,
      { credit: () => new Map([["e/0", 1]]) },
      "not_finite",
      "e/turn/0: step e/2: credit: expected a finite number, found none",
    ],
  ]
  for (const [what, change, options, reason, message] of cases) {
    it.effect(`says so: ${what}`, () =>
      Effect.gen(function* () {
        assert.deepInclude(yield* failing(change, options), {
          _tag: "SampleError",
          rollout: "e",
          turn: "e/turn/0",
          reason,
          message,
        })
      }),
    )
  }

  it.effect("is split if configured so, without losing tokens", () =>
    Effect.gen(function* () {
      const rollout = changed(yield* SingleAgent.play(says([lookup, lookup, go]), episodeOf(withTools(1))), 1, (step) =>
        tokens(step, { promptIds: tokensOf("anew:"), completionIds: tokensOf("two"), logprobs: [-1, -1, -1] }),
      )
      const samples = yield* Samples.of([rollout], { onBreak: "split" })
      assert.deepStrictEqual(
        samples.map((sample) => [sample.id, sample.turnId, sample.stepIds, said(sample)]),
        [
          ["e/turn/0#1", "e/turn/0", ["e/0"], "call 1"],
          ["e/turn/0#2", "e/turn/0", ["e/1"], "two"],
          ["e/turn/0#3", "e/turn/0", ["e/2"], "go"],
        ],
      )
      for (const { hasEnvStep, terminated } of samples) assert.isTrue(hasEnvStep && terminated)
    }),
  )
})

describe("files of samples", () => {
  it.effect("are written and read with the names that trainers expect", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const directory = yield* fs.makeTempDirectoryScoped()
      const path = `${directory}/samples.jsonl`
      const rollout = yield* SingleAgent.play(
        says([lookup, go]),
        episodeOf(withTools(3), { groupId: "g", tags: { split: "train" } }),
        { maxSteps: 2 },
      )
      const samples = yield* Samples.of([rollout], { maxSeqLen: 60 })
      yield* fs.writeFileString(path, samples.map(Samples.line).join(""))
      assert.deepStrictEqual(yield* Stream.runCollect(Samples.read(path)), samples)
      const [line] = (yield* fs.readFileString(path)).split("\n")
      const json = yield* Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))(line)
      assert.deepInclude(json, {
        rollout_id: "e",
        turn_id: "e/turn/0",
        group_id: "g",
        episode_truncated: true,
        truncation_reason: "max_steps",
        seq_len_truncated: true,
        seq_len_retained: 60,
      })
      yield* fs.writeFileString(path, `${line}\n${line.replace(`"truncated":true`, `"truncated":"no"`)}\n`)
      const error = yield* Effect.flip(Stream.runDrain(Samples.read(path)))
      assert.deepInclude(error, { _tag: "FormatError", line: 2 })
      assert.include(error.message, `${path}:2: truncated: expected boolean`)
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer)),
  )

  it.effect("keep the advantages of tokens that a trainer has computed", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = `${yield* fs.makeTempDirectoryScoped()}/samples.jsonl`
      const rollout = yield* SingleAgent.play(says([go]), episodeOf(withTools(1)), { maxSteps: 1 })
      const [plain] = yield* Samples.of([rollout])
      const worth = { ...plain, advantages: plain.actionMask.map((mask) => mask * 0.25) }
      yield* fs.writeFileString(path, Samples.line(plain) + Samples.line(worth))
      assert.deepStrictEqual(yield* Stream.runCollect(Samples.read(path)), [plain, worth])
    }).pipe(Effect.scoped, Effect.provide(NodeFileSystem.layer)),
  )

  it("belong in the folder of their rollouts", () => {
    assert.strictEqual(Samples.pathFor("runs/rollouts/train/rollouts.jsonl"), "runs/rollouts/train/samples.jsonl")
    assert.strictEqual(Samples.pathFor("5_seen_episodes_rollouts.jsonl"), "5_seen_episodes_samples.jsonl")
    assert.strictEqual(Samples.pathFor("outcomes.jsonl"), "samples.jsonl")
  })
})
