import { Option } from "effect"
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
): ReadonlyArray<string> => [
  given.file,
  ...flagWords("config", given.config),
  ...settings(run, given).flatMap((setting) => ["--set", setting]),
  ...flagWords("total-steps", resume === undefined ? given.totalSteps : totalOf(run)),
  ...flagWords("backend", Option.some(given.backend)),
  ...flagWords("results-dir", Option.some(resultsDir)),
  ...flagWords("name", given.name),
  ...flagWords("seed", Option.some(run.identity.seed)),
  ...flagWords("resume", Option.fromUndefinedOr(resume)),
  ...(given.csv ? ["--csv"] : []),
]

/** Returns the total number of steps to pass on. Without it, a resumed run would keep the total of its saved config. */
const totalOf = ({ effective: { totalSteps } }: PlannedRun): Option.Option<unknown> => Option.some(totalSteps)

/** Returns the settings in the order in which they override each other, as in `overridesOf`. */
const settings = ({ choices }: PlannedRun, { set }: RunFlags): ReadonlyArray<string> => [
  ...choices.filter(isNaming).map(settingOf),
  ...set,
  ...choices.filter((choice) => !isNaming(choice)).map(settingOf),
]

export const settingOf = ({ path, text }: { readonly path: string; readonly text: string }): string => `${path}=${text}`

/** Returns the command that resumes a sweep in its folder. */
export const resumeCommand = (given: RunFlags, place: string): string =>
  `npx effect run ${quoted([
    given.file,
    ...[...given.population, ...given.more].flatMap((spec) => ["--population", spec]),
    ...flagWords("seeds", given.seeds),
    ...flagWords("seed", given.seed),
    ...flagWords("jobs", given.jobs),
    ...flagWords("config", given.config),
    ...given.set.flatMap((setting) => ["--set", setting]),
    ...flagWords("total-steps", given.totalSteps),
    ...(given.backend === "auto" ? [] : ["--backend", given.backend]),
    ...flagWords("name", given.name),
    ...(given.csv ? ["--csv"] : []),
    "--resume",
    place,
  ])}`
