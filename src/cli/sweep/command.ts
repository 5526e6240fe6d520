import { flagWords, quoted } from "../flags.ts"
import type { RunFlags } from "../run/flags.ts"
import { isNaming } from "../run/overrides.ts"
import type { PlannedRun } from "./plan.ts"

/** Returns the arguments of `effect run` for one run of a sweep. */
export const argumentsOf = (
  given: RunFlags,
  run: PlannedRun,
  resultsDir: string,
  resume: string | undefined,
): ReadonlyArray<string> => {
  const { config, backend, name, csv } = given
  return [
    given.file,
    ...flagWords({
      config,
      set: settings(run, given),
      // Without the total, a resumed run would keep the total of its saved config.
      "total-steps": resume === undefined ? given.totalSteps : run.effective.totalSteps,
      backend,
      "results-dir": resultsDir,
      name,
      seed: run.identity.seed,
      resume,
      csv,
    }),
  ]
}

/** Returns the settings in the order in which they override each other, as in `overridesOf`. */
const settings = ({ choices }: PlannedRun, { set }: RunFlags): ReadonlyArray<string> => [
  ...choices.filter(isNaming).map(settingOf),
  ...set,
  ...choices.filter((choice) => !isNaming(choice)).map(settingOf),
]

export const settingOf = ({ path, text }: { readonly path: string; readonly text: string }): string => `${path}=${text}`

/** Returns the command that resumes a sweep in its folder. */
export const resumeCommand = (given: RunFlags, place: string): string => {
  const { seeds, seed, jobs, config, set, totalSteps, name, csv } = given
  const words = flagWords({
    population: [...given.population, ...given.more],
    seeds,
    seed,
    jobs,
    config,
    set,
    "total-steps": totalSteps,
    backend: given.backend === "auto" ? undefined : given.backend,
    name,
    csv,
    resume: place,
  })
  return `npx effect run ${quoted([given.file, ...words])}`
}
