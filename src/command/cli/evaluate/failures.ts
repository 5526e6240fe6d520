/** Ends `effect eval` with the exit code 1 if more episodes failed than `--max-failures` allows, and reports the reasons. */
import { Effect, Option } from "effect"
import * as Flag from "effect/cli/Flag"
import type { FailureCounts } from "../../../base/statistics/failureCounts.ts"
import { CommandError } from "../../CommandError.ts"

interface MostFailures {
  /** The flag as the user typed it; undefined without the flag. */
  readonly typed: string | undefined
  readonly of: (episodes: number) => number
}

const noFailures: MostFailures = { typed: undefined, of: () => 0 }

/** Allows all episodes to fail. */
export const anyFailures: MostFailures = { typed: undefined, of: (episodes) => episodes }

const mostFailures = (typed: string): Option.Option<MostFailures> => {
  const [, digits = "", percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(typed) ?? []
  const value = Number(digits)
  if (percent === "%" && value <= 100) return Option.some({ typed, of: (episodes) => (episodes * value) / 100 })
  return percent === "" && Number.isSafeInteger(value) ? Option.some({ typed, of: () => value }) : Option.none()
}

export const maxFailures = Flag.String("max-failures").pipe(
  Flag.withMetavar("n|n%"),
  Flag.filterMap(mostFailures, () => "a whole number, or a share such as 5%"),
  Flag.withDefault(noFailures),
  Flag.withDescription(
    "The exit code is 1 if more episodes than this fail: a number, or a share such as 5% (default: 0)",
  ),
)

/** The largest number of reasons in a message. */
const mostReasons = 3

interface PlayedEpisodes {
  readonly episodes: number
  readonly failed?: number
  readonly failures?: FailureCounts
}

/** Says that too many episodes failed, and why; none if `most` allows as many. */
export const failuresProblem = (
  { episodes, failed = 0, failures = [] }: PlayedEpisodes,
  most: MostFailures = noFailures,
): Option.Option<string> => {
  if (failed <= most.of(episodes)) return Option.none()
  const shown = failures.slice(0, mostReasons).map(({ reason, count }) => `${count} × ${reason}`)
  const rest = failures.slice(mostReasons).reduce((sum, { count }) => sum + count, 0)
  const all = [...shown, ...(rest === 0 ? [] : [`${rest} for other reasons`])].join("; ")
  return Option.some(`${failed} of ${episodes} episodes failed${all === "" ? "" : `: ${all}`}`)
}

/** Fails if too many episodes failed, even where nothing else is printed. */
export const refuseFailures = (played: PlayedEpisodes, most?: MostFailures): Effect.Effect<void, CommandError> =>
  Option.match(failuresProblem(played, most), {
    onNone: () => Effect.void,
    onSome: (problem) => Effect.fail(CommandError.failed(problem)),
  })
