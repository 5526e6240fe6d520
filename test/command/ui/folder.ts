import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { type Identifier, toPath } from "../../../src/run/identifier.ts"

/** In memory where that can be had: a disk takes seconds for thousands of files. */
const base = existsSync("/dev/shm") ? "/dev/shm" : tmpdir()

/** A folder for a test, gone afterwards. */
export const withFolder = async <A>(body: (folder: string) => Promise<A>): Promise<A> => {
  const folder = realpathSync(mkdtempSync(join(base, "effect-ui-")))
  try {
    return await body(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const write = (folder: string, path: string, text: string | Uint8Array): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

export const identity: Identifier = {
  time: "2026-01-31_12-00-00",
  commit: "0123abc",
  name: "tune",
  population: { algorithm: "ppo" },
  seed: 1,
}

export const scoreLine = (step: number, score: number, episode: number, mode = "train"): string =>
  `${JSON.stringify({
    timestamp: new Date(Date.UTC(2026, 0, 31, 12) + step).toISOString(),
    mode,
    episode_index: episode,
    step_index: step,
    score,
    episode_cum_score: score,
    env_id: "CartPole-v1",
    env_type: "CartPole-v1",
    episode_length: 20,
    terminated: true,
    truncated: false,
  })}\n`

/** A run as the trainer leaves it, made up; its path. */
export const makeRun = (
  results: string,
  given: Partial<Identifier> = {},
  { finished = true, steps = 1000, level = 100, lean = false } = {},
): string => {
  const path = toPath({ ...identity, ...given })
  const places = [steps / 2, steps]
  write(results, `${path}/config.yaml`, `env: CartPole-v1\ntotal_steps: 1000\nseed: 1\nalgorithm:\n  name: ppo\n`)
  const lines = Array.from({ length: 50 }, (_, index) =>
    scoreLine((steps / 50) * (index + 1), level * (index / 49), index),
  )
  write(results, `${path}/scores/train/scores.jsonl`, lines.join(""))
  // Thousands of runs are made in a bearable time with fewer files.
  for (const step of lean ? [] : places) {
    const score = level * (step / steps)
    const file = `${path}/scores/val/${(step / steps) * 50}_seen_episodes_scores.jsonl`
    write(results, file, [score - 1, score + 1].map((one, index) => scoreLine(step, one, index, "validation")).join(""))
  }
  if (!lean)
    write(
      results,
      `${path}/run.log`,
      `2026-01-31T12:00:00Z validation at step ${steps}: mean return ${level}.00 ± 1.00 over 2 episodes\n`,
    )
  if (!finished) return path
  const records = places.map((step) => ({
    step,
    returns_mean: level * (step / steps),
    returns_std: 1,
    returns: [1, 2],
  }))
  write(results, `${path}/metrics.json`, JSON.stringify({ steps, episodes: 50, wall_seconds: 2 }))
  write(results, `${path}/return.json`, JSON.stringify(records))
  return path
}
