import { studyText, trialsText } from "../../../src/command/tune/StudyFile.ts"
import type { Trial } from "../../../src/command/tune/Trial.ts"
import { makeRun, write } from "./folder.ts"

/** Writes a study of twelve trials as `effect tune` leaves it, made up; its folder, and the path of each trial's run. */
export const makeStudy = (results: string, time = "2026-02-01_10-00-00") => {
  const paths = Array.from(
    { length: 12 },
    (_, trial) =>
    makeRun(results, { time, population: { environment: "CartPole-v1", algorithm: "ppo", trial: String(trial).padStart(4, "0") } }, { lean: true }), // prettier-ignore
  )
  const trials = paths.map((path, trial): Trial => {
    const rate = 10 ** -(2 + (trial % 4))
    const isPruned = trial % 5 === 4
    const value = trial === 11 ? null : 100 * (trial % 4) + trial
    return {
      trial,
      state: trial === 11 ? "failed" : isPruned ? "pruned" : "finished",
      value,
      reason: trial === 11 ? "<b>no luck</b>" : isPruned ? "100 at step 500 is below 120" : null,
      params: { "algorithm.learning_rate": rate, "algorithm.hidden": trial % 2 === 0 ? [64] : [64, 64] },
      runs:
        trial === 11
          ? []
          : [{ seed: 1, path: path.slice(time.length + 1), value, steps: isPruned ? 500 : 1000, digest: "0" }],
      curve: [],
    }
  })
  const parameters = {
    "algorithm.learning_rate": { logUniform: [1e-5, 1e-2] },
    "algorithm.hidden": { choice: [[64], [64, 64]] },
  }
  const file = {
    file: "tune.ts",
    name: "tune",
    commit: "0123abc",
    base: {},
    study: { trials: 20, pruner: { name: "asha" }, parameters },
  }
  write(results, `${time}/study.yaml`, studyText(file))
  write(results, `${time}/trials.jsonl`, trialsText(trials))
  return { path: time, runs: paths }
}
