import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { runLog } from "../../../src/run/record/runLog.ts"
import type { LogLevel } from "../../../src/run/record/logLevel.ts"
import type { EpisodeEnded } from "../../../src/run/record/RunEvent.ts"
import { memoryRun } from "../store/disk.ts"
import { episode, recorded, started, update, validation } from "./events.ts"

it.effect("the log has a line for everything but episodes and updates, as soon as it happens", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 0, 31, 12))
    const { run, emit } = yield* recorded(runLog)
    yield* emit([started, episode(), update(512)])
    yield* TestClock.adjust("1 second")
    yield* emit([validation, { _tag: "CheckpointSaved", step: 512, path: "checkpoints/step_512" }])
    yield* emit([{ ...started, resumedFromStep: 512 }])
    yield* emit([
      { _tag: "Note", message: "act runs on wasm: 2.9 µs" },
      { _tag: "Warning", message: "no validation" },
      { _tag: "RunEnded", step: 600, episodes: 14, reason: "interrupted", message: null },
      { _tag: "RunEnded", step: 600, episodes: 14, reason: "failed", message: "EnvError: broken" },
    ])
    assert.deepEqual((yield* run.readText("run.log")).split("\n"), [
      "2026-01-31T12:00:00.000Z started: ppo on CartPole-v1, 4 envs, 20000 steps, seed 7",
      "2026-01-31T12:00:00.000Z devices: act on wasm, update on cpu",
      "2026-01-31T12:00:01.000Z validation at step 512: mean return 2.00 ± 1.00 over 2 episodes",
      "2026-01-31T12:00:01.000Z saved checkpoints/step_512",
      "2026-01-31T12:00:01.000Z resumed at step 512: ppo on CartPole-v1, 4 envs, 20000 steps, seed 7",
      "2026-01-31T12:00:01.000Z devices: act on wasm, update on cpu",
      "2026-01-31T12:00:01.000Z act runs on wasm: 2.9 µs",
      "2026-01-31T12:00:01.000Z warning: no validation",
      "2026-01-31T12:00:01.000Z interrupted at step 600 after 14 episodes",
      "2026-01-31T12:00:01.000Z failed at step 600 after 14 episodes: EnvError: broken",
      "",
    ])
  }),
)

it.effect("the log of a resumed run begins a new line after one that was cut off", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 0, 31, 12))
    for (const [before, kept] of [
      ["", ""],
      ["whole\n", "whole\n"],
      ["whole\n2026-01-31T11:59:59.000Z save", "whole\n"],
      ["2026-01-31T11:59:59.000Z star", ""],
    ]) {
      const run = yield* memoryRun
      yield* run.append("run.log", before)
      const { emit } = yield* runLog(run, started)
      yield* emit([{ _tag: "Note", message: "again" }])
      assert.strictEqual(yield* run.readText("run.log"), `${kept}2026-01-31T12:00:00.000Z again\n`)
    }
  }),
)

it.effect("the log has the score of each agent of a game", () =>
  Effect.gen(function* () {
    const { run, emit } = yield* recorded(runLog)
    const [first, second] = validation.episodes
    const episodes = [first, second, first].map((one, at) => ({ ...one, agent: at === 1 ? "sheep" : "wolf" }))
    // A validation can have another env, in which one agent plays against others.
    yield* emit([{ ...validation, episodes: [...episodes, second] }])
    assert.match(yield* run.readText("run.log"), /over 4 episodes \(wolf 1\.00, sheep 3\.00\)\n$/)
  }),
)

it.effect("the log names no envs and no devices of a trainer of language models, which has none at the start", () =>
  Effect.gen(function* () {
    const { run, emit } = yield* recorded(runLog)
    yield* emit([{ ...started, agents: true, devices: {} }])
    assert.match(yield* run.readText("run.log"), /^\S+ started: ppo on CartPole-v1, 20000 steps, seed 7\n$/)
  }),
)

it.effect("the log counts the samples of a trainer of language models, because some are imitated answers", () =>
  Effect.gen(function* () {
    const { run, emit } = yield* recorded(runLog, { ...started, agents: true })
    yield* emit([{ _tag: "RunEnded", step: 600, episodes: 14, reason: "finished", message: null }])
    assert.match(yield* run.readText("run.log"), /^\S+ finished at step 600 after 14 samples\n$/)
  }),
)

it.effect.each([
  ["ERROR", ["started", "error: a tool broke", "failed"]],
  ["WARN", ["started", "warning: no validation", "error: a tool broke", "stopped", "failed"]],
  ["INFO", ["started", "devices", "validation", "saved", "a note", "warning: no validation", "error: a tool broke", "finished", "stopped", "failed"]], // prettier-ignore
  ["DEBUG", ["started", "devices", "episode 0 ended at step 128: return 21.5, 21 steps, terminated", "update 1 at step 512: losses/policy_loss 0.5", "validation", "saved", "a note", "warning: no validation", "error: a tool broke", "finished", "stopped", "failed"]], // prettier-ignore
] satisfies ReadonlyArray<readonly [LogLevel, ReadonlyArray<string>]>)("the log at %s", ([logLevel, expected]) =>
  Effect.gen(function* () {
    const { run, emit } = yield* recorded(runLog, { ...started, logLevel })
    const ended = { _tag: "RunEnded", step: 600, episodes: 14, message: null } as const
    yield* emit([{ ...started, logLevel }, episode(), update(512, { "losses/policy_loss": 0.5 }), validation])
    yield* emit([
      { _tag: "CheckpointSaved", step: 512, path: "checkpoints/step_512" },
      { _tag: "Note", message: "a note" },
      { _tag: "Warning", message: "no validation" },
      { _tag: "Warning", message: "a tool broke", isError: true },
      { ...ended, reason: "finished" },
      { ...ended, reason: "stopped" },
      { ...ended, reason: "failed", message: "EnvError: broken" },
    ])
    const lines = (yield* run.readText("run.log"))
      .trimEnd()
      .split("\n")
      .map((line) => line.replace(/^\S+ /, ""))
    assert.lengthOf(lines, expected.length)
    for (const [at, line] of lines.entries()) assert.isTrue(line.startsWith(expected[at]), line)
  }),
)

it.effect("the log says why an episode was truncated", () =>
  Effect.gen(function* () {
    const { run, emit } = yield* recorded(runLog, { ...started, logLevel: "DEBUG" })
    const cut = (truncationReason: EpisodeEnded["truncationReason"]) =>
      episode({ terminated: false, truncated: true, truncationReason })
    yield* emit([cut("env"), cut("max_steps"), cut("diverged"), cut(null)])
    const lines = (yield* run.readText("run.log")).trimEnd().split("\n")
    assert.deepEqual(
      lines.map((line) => line.replace(/^.* steps, /, "")),
      [
        "truncated by the env",
        "truncated at the limit of steps",
        "truncated because its simulation diverged",
        "truncated at the limit of steps",
      ],
    )
  }),
)

it.effect("the log keeps one entry of each event, whatever line breaks the name of a run has", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 0, 31, 12))
    const forged = "a\n2026-01-31T12:00:00.000Z finished at step 9"
    const { run, emit } = yield* recorded(runLog)
    yield* emit([
      { ...started, env: forged, devices: {} },
      { _tag: "Note", message: `run_${forged}: found` },
      { _tag: "Warning", message: `run_${forged}: \u001b[2J\rgone` },
      { _tag: "RunEnded", step: 6, episodes: 1, reason: "failed", message: `Error: ${forged}\n    at train.ts:1` },
    ])
    const time = "2026-01-31T12:00:00.000Z"
    assert.deepEqual((yield* run.readText("run.log")).split("\n"), [
      `${time} started: ppo on a\\n${time} finished at step 9, 4 envs, 20000 steps, seed 7`,
      `${time} run_a\\n${time} finished at step 9: found`,
      `${time} warning: run_a\\n${time} finished at step 9: \\x1b[2J\\rgone`,
      `${time} failed at step 6 after 1 episodes: Error: a`,
      `  ${time} finished at step 9`,
      "    at train.ts:1",
      "",
    ])
  }),
)
