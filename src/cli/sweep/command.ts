import { Option } from "effect"
import { flagWords, type Given, quoted } from "../flags.ts"
import { isNaming } from "./population.ts"
import type { PlannedRun } from "./plan.ts"

/** What was given, as one run's training is given it. */
export const argumentsOf = (
  given: Given,
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

/** One that goes on would else have the total that it had. */
const totalOf = ({ effective: { totalSteps } }: PlannedRun): Option.Option<unknown> => Option.some(totalSteps)

/** In the order in which they are laid over each other. */
const settings = ({ choices }: PlannedRun, { set }: Given): ReadonlyArray<string> => [
  ...choices.filter(isNaming).map(settingOf),
  ...set,
  ...choices.filter((choice) => !isNaming(choice)).map(settingOf),
]

export const settingOf = ({ path, text }: { readonly path: string; readonly text: string }): string => `${path}=${text}`

/** The command that goes on with a sweep. */
export const goOnCommand = (given: Given, place: string): string =>
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
