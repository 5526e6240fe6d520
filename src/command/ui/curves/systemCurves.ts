/** Makes the curves of the resources that a run used (memory, CPU, speed) from the text of its `system.jsonl`. */
import { fields, finite, parsed } from "../json.ts"

/** The largest number of points in a curve, since a small chart shows no more. */
const mostPoints = 500

/**
 * Returns columns of equal length, from every line of the file or from every n-th line. A value is null if it is missing in
 * its line.
 */
export const systemCurves = (text: string) => {
  // A line that is still being written is ignored.
  const lines = text
    .split("\n")
    .slice(0, -1)
    .map((line) => fields(parsed(line)))
    .filter((line) => finite(line.seconds) !== null)
  let before = 0
  let last = 0
  const seconds = lines.map((line) => {
    const now = Number(line.seconds)
    // The clock in the file starts at 0 again when a run is resumed.
    if (now < last) before += last
    last = now
    return Number((before + now).toPrecision(7))
  })
  const every = Math.ceil(lines.length / mostPoints)
  // Keep each value whose distance from the end is a multiple of `every`, so that the newest value is always shown.
  const shown = <A>(values: ReadonlyArray<A>): ReadonlyArray<A> =>
    values.filter((_, index) => (values.length - 1 - index) % every === 0)
  const column = (name: string): ReadonlyArray<number | null> => shown(lines.map((line) => finite(line[name])))
  return {
    /** The time since the run's start in seconds, without the time during which the run was interrupted. */
    seconds: shown(seconds),
    stepsPerSecond: column("steps_per_second"),
    rss: column("rss"),
    heap: column("heap"),
    buffers: column("buffers"),
    /** The CPU use as a number of cores. */
    cpu: column("cpu"),
  }
}
