import { Effect } from "effect"
import type { EpisodeEnded, RunStarted, UpdateApplied, ValidationEnded } from "../../../src/run/record/RunEvent.ts"
import type { Recording, Sink } from "../../../src/run/record/Recorder.ts"
import { memoryRun } from "../store/disk.ts"

export const started: RunStarted = {
  _tag: "RunStarted",
  name: "tune",
  env: "CartPole-v1",
  algorithm: "ppo",
  devices: { act: "wasm", update: "cpu" },
  seed: 7,
  totalSteps: 20_000,
  numEnvs: 4,
  resumedFromStep: null,
  config: { gamma: 0.5, normalize: { rewards: true }, algorithm: { name: "ppo" } },
}

export const episode = (fields: Partial<EpisodeEnded> = {}): EpisodeEnded => ({
  _tag: "EpisodeEnded",
  step: 128,
  episode: 0,
  env: 3,
  return: 21.5,
  length: 21,
  terminated: true,
  truncated: false,
  truncationReason: null,
  ...fields,
})

export const update = (step: number, metrics: Readonly<Record<string, number>> = {}): UpdateApplied => ({
  _tag: "UpdateApplied",
  step,
  update: 1,
  metrics,
})

export const validation: ValidationEnded = {
  _tag: "ValidationEnded",
  step: 512,
  seenEpisodes: 12,
  episodes: [
    { return: 1, length: 10, terminated: true, truncated: false },
    { return: 3, length: 500, terminated: false, truncated: true },
  ],
  meanReturn: 2,
  stdReturn: 1,
}

/** A run in memory and what a sink records of it. */
export const recorded = Effect.fnUntraced(function* (sink: Sink, about: RunStarted = started) {
  const run = yield* memoryRun
  const recording: Recording = yield* sink(run, about)
  return { run, ...recording }
})
