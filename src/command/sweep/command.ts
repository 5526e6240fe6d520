/** Makes the command lines of a sweep: one for each of its runs, and one that resumes the sweep. These are pure functions. */
import { flagWords, quoted } from "../cli/flags.ts"
import type { RunFlags } from "../cli/run/flags.ts"
import { fileWords } from "../cli/presets/packaged.ts"
import { resumedCluster } from "../cli/worker/cluster.ts"
import { isNaming } from "../cli/run/overrides.ts"
import type { PlannedRun } from "./plan.ts"

/** The flags of a sweep that decide how each of its runs is trained. */
export type TrainFlags = Pick<
  RunFlags,
  "file" | "config" | "set" | "totalSteps" | "backend" | "threads" | "name" | "csv" | "cluster" | "trust"
>

/** Returns the arguments of `effect run` for one run of a sweep. `resume` is the folder of an unfinished run. */
export const argumentsOf = (
  input: TrainFlags,
  run: PlannedRun,
  resultsDir: string | undefined,
  resume: string | undefined,
): ReadonlyArray<string> => {
  const { config, backend, threads, name, csv, trust } = input
  return [
    ...fileWords(input.file),
    ...flagWords({
      config,
      set: settingsOf(run, input),
      // A resumed run would otherwise keep the number of steps in its saved config.
      "total-steps": resume === undefined ? input.totalSteps : run.effective.totalSteps,
      backend,
      threads,
      "results-dir": resultsDir,
      name,
      seed: run.identity.seed,
      resume,
      csv,
      trust,
    }),
  ]
}

/** Returns the values of a run's `--set` flags. Names of env and algorithm come first: they reset settings. */
const settingsOf = (
  { choices }: Pick<PlannedRun, "choices">,
  { set }: Pick<TrainFlags, "set">,
): ReadonlyArray<string> => [
  ...choices.filter(isNaming).map(settingOf),
  ...set,
  ...choices.filter((choice) => !isNaming(choice)).map(settingOf),
]

/** Returns the command that trains with these settings again, as a single run. */
export const runCommand = (
  input: Omit<TrainFlags, "csv" | "cluster" | "trust">,
  choices: PlannedRun["choices"],
): string => {
  const { config, set, totalSteps, backend, threads, name } = input
  const words = flagWords({
    config,
    set: settingsOf({ choices }, { set }),
    "total-steps": totalSteps,
    backend: backend === "auto" ? undefined : backend,
    threads,
    name,
  })
  return `npx effect run ${quoted([...fileWords(input.file), ...words])}`
}

export const settingOf = ({ path, text }: { readonly path: string; readonly text: string }): string => `${path}=${text}`

/**
 * Returns the command that resumes a sweep in its folder. `resultsDir` is the results folder, if the command must name it
 * too.
 */
export const resumeCommand = (input: RunFlags, place: string, resultsDir?: string): string => {
  const { seeds, seed, jobs, config, set, totalSteps, threads, name, csv } = input
  const words = flagWords({
    population: [...input.population, ...input.more],
    seeds,
    seed,
    jobs,
    config,
    set,
    "total-steps": totalSteps,
    backend: input.backend === "auto" ? undefined : input.backend,
    threads,
    name,
    cluster: resumedCluster(input.cluster),
    csv,
    "results-dir": resultsDir,
    resume: place,
  })
  return `npx effect run ${quoted([...fileWords(input.file), ...words])}`
}
