/** Defines the flags of `effect replay`. */
import {
  argument,
  backendFlag,
  type FlagValues,
  lookupDir,
  number,
  runArgument,
  text,
  threadsFlag,
  toggle,
  trustFlag,
} from "../flags.ts"

export const flags = {
  run: argument("run", runArgument),
  resultsDir: lookupDir,
  file: text("file", "file", "The module that made the run, if its env, algorithm or demonstrations are your own"),
  episode: number(
    "episode",
    "index",
    "Compare only this training episode (its episode_index in scores.jsonl), and stop after it",
  ),
  backend: backendFlag("The backend that computes; for the same bits use the run's own, which run.log names"),
  threads: threadsFlag,
  trust: trustFlag,
  quiet: toggle("quiet", "Print no progress"),
  json: toggle("json", "Print the outcome as one line of JSON on stdout"),
}
export type ReplayFlags = FlagValues<typeof flags>
