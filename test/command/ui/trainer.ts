/** The folder of a multi-run trainer, made up: its runs have the files of other runs, and those of the trainer. */
import { toPath } from "../../../src/run/identifier.ts"
import { ByteWriter } from "../../../src/base/formats/ByteWriter.ts"
import { writeHeader, writeScalars } from "../../../src/base/formats/tfevents.ts"
import * as Multirun from "../../../src/trainer/Layout.ts"
import { tokenText } from "../../../src/trainer/runs/token.ts"
import * as Layout from "../../../src/run/Layout.ts"
import { owner } from "../../../src/run/store/owner-node.ts"
import { write } from "./folder.ts"

const start = Date.UTC(2026, 0, 31, 12)

/** The text of an event file with a point for each step. */
const events = (steps: number, metricsAt: (step: number) => Readonly<Record<string, number>>): Uint8Array => {
  const file = new ByteWriter()
  writeHeader(file, start / 1000)
  for (let step = 1; step <= steps; step++) writeScalars(file, start / 1000 + step, step, metricsAt(step))
  return file.written
}

/** A line of scores, as the trainer records an answer. */
const answerLine = (
  answer: {
    readonly task: string
    readonly said: string
    readonly episode: number
    readonly score: number
    /** Whether the answer was cut off, and so not acted upon. */
    readonly isCutOff?: boolean
  },
  { mode, info }: { readonly mode: "train" | "val"; readonly info: Readonly<Record<string, unknown>> },
): string => {
  const { task, said, episode, score, isCutOff = false } = answer
  return `${JSON.stringify({
    timestamp: new Date(start + 1000 * episode).toISOString(),
    mode,
    episode_index: episode,
    step_index: 1,
    score,
    episode_cum_score: score,
    env_id: `reverse_text-${task}`,
    env_type: "reverse_text",
    observation: `reverse ${task}`,
    action: isCutOff ? null : said,
    feedback: { score, target: [...task].reverse().join(""), message: "" },
    info: isCutOff ? { said, ...info } : info,
    lm_model: "policy",
    agent_type: "memoryless_agent",
    next_observation: null,
    terminated: true,
    truncated: false,
    truncation_reason: null,
  })}\n`
}

/** The answers to two tasks in each of some steps: the first answers of a group are right. */
const transcripts = (steps: number, perGroup: number): string => {
  const lines: Array<string> = []
  for (let step = 0; step < steps; step += 10) {
    for (const [group, task] of ["abcd", "words"].entries()) {
      const right = Math.min(perGroup - 1, 1 + Math.floor((step / steps) * perGroup))
      const mean = right / perGroup
      for (let at = 0; at < perGroup; at++) {
        const score = at < right ? 1 : 0
        const said = score === 1 ? [...task].reverse().join("") : task
        const episode = step * 64 + group * perGroup + at + 1
        const info = { step, group, reward: score, advantage: score - mean }
        const isCutOff = at === perGroup - 1
        lines.push(answerLine({ task, said, episode, score, isCutOff }, { mode: "train", info }))
      }
    }
  }
  return lines.join("")
}

interface RunOptions {
  readonly steps?: number
  readonly maxSteps?: number
  /** The number of answers to each task. */
  readonly perGroup?: number
  /** The highest reward that it reaches. */
  readonly level?: number
  readonly isFinished?: boolean
}

/** Writes a run that has begun into the trainer's folder, as one that is being trained or has finished. */
export const writeRun = (
  results: string,
  trainer: string,
  name: string,
  { steps = 40, maxSteps = 100, perGroup = 4, level = 1, isFinished = false }: RunOptions = {},
): string => {
  const path = `${trainer}/run_${name}`
  write(
    results,
    `${path}/${Layout.config}`,
    `kind: multirun\nname: words\nseed: 1\nruns:\n  ${name}:\n    max_steps: ${maxSteps}\n`,
  )
  write(results, `${path}/${Layout.trainScores}`, transcripts(steps, perGroup))
  const rewardAt = (step: number): number => (level * step) / steps
  for (let step = 0; step <= steps; step += 20) {
    const scores = [0, 1, 2, 3].map((task) => (task < 4 * rewardAt(step) ? 1 : 0))
    const lines = scores.map((score, at) =>
      answerLine({ task: "abc", said: score === 1 ? "cba" : "abc", episode: at + 1, score }, { mode: "val", info: {} }),
    )
    write(results, `${path}/${Layout.validationScores(step)}`, lines.join(""))
  }
  const metricsAt = (step: number) => ({
    "sampling/reward": rewardAt(step),
    "sampling/staleness": step % 3,
    "losses/loss": 1 / step,
    "losses/gradient_norm": 0.5 + 1 / step,
    "losses/entropy": 2 - rewardAt(step),
    "losses/inference_kl": 0.01,
  })
  write(results, `${path}/${Layout.tensorBoard}`, events(steps, metricsAt))
  write(results, `${path}/${Layout.log}`, `2026-01-31T12:00:00Z ${name}: a run of a trainer\n`)
  if (isFinished) {
    write(results, `${path}/${Multirun.finished}`, `${maxSteps}\n`)
    write(results, `${path}/${Layout.metrics}`, JSON.stringify({ steps: maxSteps, episodes: 64 * maxSteps }))
    write(results, `${path}/${Layout.returns}`, JSON.stringify([{ step: maxSteps, returns_mean: level, returns: [1] }]))
  } else write(results, `${path}/${Layout.lock}`, owner.name)
  return path
}

/** Writes the config of a run, and the token by which the trainer found it as the run of this number. */
export const writeFound = (results: string, run: string, generation: number, maxSteps = 100): void => {
  write(results, `${run}/${Multirun.configFiles.yaml}`, `max_steps: ${maxSteps}\n`)
  const id = run.split("/").at(-1) ?? ""
  write(results, `${run}/${Multirun.token}`, tokenText({ id, generation, startedAtMillis: start }))
}

/** Writes a trainer with room for `maxRuns` runs, which is working. Returns the path of its folder. */
export const makeTrainer = (results: string, { maxRuns = 2, seed = 1 } = {}): string => {
  const path = toPath({
    time: "2026-01-31_12-00-00",
    commit: "0123abc",
    name: "words",
    population: { environment: "words", algorithm: "multirun" },
    seed,
  })
  const config = `kind: multirun\nname: words\nseed: ${seed}\ntrainer:\n  max_runs: ${maxRuns}\n  lora:\n    rank: 8\nruns: {}\n`
  write(results, `${path}/${Layout.config}`, config)
  write(results, `${path}/${Layout.lock}`, owner.name)
  write(results, `${path}/${Layout.log}`, "2026-01-31T12:00:00Z started\n")
  const metricsAt = (step: number) => ({
    "trainer/tokens_per_second": 4000 + step,
    "trainer/generated_tokens_per_second": 900 + step,
    "trainer/runs": maxRuns,
    "trainer/waiting": 1,
  })
  write(results, `${path}/${Layout.tensorBoard}`, events(30, metricsAt))
  return path
}
