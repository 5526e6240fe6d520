import * as NodeServices from "@effect/platform-node/NodeServices"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Option, Stream } from "effect"
import { assert, describe, it } from "vitest"
import * as ScoreRecords from "../../../src/run/record/ScoreRecords.ts"
import { episodesOf, scoreLine } from "../../../src/run/record/scoreLine.ts"

const short = {
  timestamp: "2026-01-31T12:00:00.000001Z",
  mode: "train",
  episode_index: 1,
  step_index: 2,
  score: 0,
  episode_cum_score: 0.5,
  env_id: "q-1",
  env_type: "qa",
}
const verbose = {
  ...short,
  observation: "2 + 2?",
  action: "5",
  feedback: { score: 0, target: 4, message: "Incorrect." },
  info: { level: 1 },
  lm_model: "gpt-4.1-mini",
  agent_type: "history_agent",
  step_start: "2026-01-31T12:00:00.000000Z",
  step_end: "2026-01-31T12:00:00.000001Z",
  duration_ms: 1.5,
  next_observation: null,
  terminated: true,
  truncated: false,
  truncation_reason: null,
}
/** The same as another program writes it. */
const theirs = {
  ...short,
  observation: "3 + 3?",
  action: "5",
  feedback_message: "Incorrect due to arithmetic!",
  target: 4,
  feedback_extra: { hint: "count" },
  error_type: "arithmetic",
  env_info: { level: 1 },
  agent_type: "history_agent",
  lm_model: "gpt-4.1-mini",
  timing: { step_start: verbose.step_start, step_end: verbose.step_end, duration_ms: 1.5 },
}

const line = (record: unknown): string => `${JSON.stringify(record)}\n`

const reading = async (text: string): Promise<ReadonlyArray<unknown> | string> => {
  const folder = mkdtempSync(join(tmpdir(), "effect-scores-"))
  try {
    const path = join(folder, "scores.jsonl")
    writeFileSync(path, text)
    const records = Stream.runCollect(ScoreRecords.read(path)).pipe(
      Effect.map((found): ReadonlyArray<unknown> | string => [...found]),
      Effect.catch(({ message, line }) => Effect.succeed(`${line} ${message.replace(folder, "")}`)),
    )
    return await Effect.runPromise(Effect.provide(records, NodeServices.layer))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("records of scores", () => {
  it("are read as they were written", async () => {
    assert.deepStrictEqual(await reading(line(short) + line(verbose)), [short, verbose])
    const failed = { ...short, score: null, error: "the env failed" }
    assert.deepStrictEqual(await reading(line(failed)), [failed])
  })

  it("of another program are read in our words: what it saw is what came after the step", async () => {
    const { observation: _, next_observation: _next, terminated, truncated, truncation_reason, ...same } = verbose
    const feedback = { score: 0, target: 4, message: "Incorrect due to arithmetic!" }
    const extra = { hint: "count", error_type: "arithmetic" }
    assert.deepEqual(await reading(line(theirs)), [
      { ...same, feedback: { ...feedback, extra }, next_observation: "3 + 3?" },
    ])
    assert.deepEqual([terminated, truncated, truncation_reason], [true, false, null])

    // The end of an episode, with nothing that one could leave out.
    const last = {
      ...short,
      mode: "val",
      action: "4",
      feedback_message: "Correct.",
      target: null,
      error_type: null,
      timing: null,
    }
    assert.deepEqual(await reading(line(last)), [
      {
        ...short,
        mode: "val",
        action: "4",
        feedback: { score: 0, target: null, message: "Correct." },
        next_observation: null,
      },
    ])
    assert.containSubset(await reading(line({ ...last, feedback_extra: "why" })), [
      { feedback: { extra: { value: "why" } } },
    ])
  })

  it("have the modes train and val, and no other", () => {
    for (const mode of ["train", "val"]) assert.isTrue(Option.isSome(ScoreRecords.decode({ ...short, mode })), mode)
    for (const mode of ["validation", "test"])
      assert.isTrue(Option.isNone(ScoreRecords.decode({ ...short, mode })), mode)
  })

  it("leave out half a line at the end of a file, and no other", async () => {
    const whole = line(verbose)
    for (const length of [1, 20, whole.length - 2]) {
      assert.deepStrictEqual(await reading(line(short) + whole.slice(0, length)), [short])
    }
    // All of it but its end.
    assert.deepStrictEqual(await reading(line(short) + whole.trimEnd()), [short, verbose])
    assert.deepStrictEqual(await reading(""), [])
  })

  it("say which line is damaged, and how", async () => {
    assert.match(
      String(await reading(`${line(short)}{"timest\n${line(short)}`)),
      /^2 \/scores\.jsonl:2: expected JSON, found /,
    )
    assert.match(
      String(await reading(line({ ...short, score: "1" }))),
      /^1 \/scores\.jsonl:1: score: expected .*, found "1"$/,
    )
    assert.match(
      String(await reading(line({ ...short, mode: "test" }))),
      /^1 \/scores\.jsonl:1: mode: expected .*, found "test"$/,
    )
    assert.match(
      String(await reading(`\n${line({ ...theirs, timing: { duration_ms: "long" } })}`)),
      /^2 \/scores\.jsonl:2: timing\.duration_ms: expected .*, found "long"$/,
    )
    const missing = await Effect.runPromise(
      Effect.provide(Effect.flip(Stream.runDrain(ScoreRecords.read("nowhere.jsonl"))), NodeServices.layer),
    )
    assert.notProperty(missing, "line")
    assert.deepInclude(missing, { _tag: "FormatError", message: "nowhere.jsonl: there is no such file" })
  })

  it("are told from a trainer's lines by those who draw them, whoever wrote them", () => {
    const trainer = {
      ...short,
      step_index: 480,
      score: 20,
      episode_cum_score: 20,
      episode_length: 20,
      terminated: true,
    }
    const lines = [verbose, theirs, { ...theirs, episode_index: 2, episode_cum_score: 1 }, trainer].map((record) =>
      scoreLine(JSON.stringify(record)),
    )
    assert.deepStrictEqual(
      lines.map((found) => [found?.of, found?.episode, found?.step, found?.total, found?.length]),
      [
        ["step", 1, 2, 0.5, 2],
        ["step", 1, 2, 0.5, 2],
        ["step", 2, 2, 1, 2],
        ["episode", 1, 480, 20, 20],
      ],
    )
    assert.deepStrictEqual(
      episodesOf(lines.flatMap((found) => found ?? [])).map(({ total }) => total),
      [0.5, 1, 20],
    )
    assert.isTrue(scoreLine(JSON.stringify({ ...short, score: null, error: "the env failed" }))?.failed)
    assert.isUndefined(scoreLine('{"step_index":1}'))
    assert.isUndefined(scoreLine('{"step_index":1,"sco'))
  })
})
