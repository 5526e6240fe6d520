/** Compares a checkpoint's settings with the current ones, to tell whether its run can be resumed. It only computes. */
import { display, isPlain, snakeCase } from "./Config.ts"

/** A path at which two trees differ, in snake_case, with both values. */
export interface ConfigDifference {
  readonly key: string
  readonly now: unknown
  readonly then: unknown
}

/** Returns all paths at which two trees differ. */
export const differences = (
  now: unknown,
  then: unknown,
  path: ReadonlyArray<string> = [],
): ReadonlyArray<ConfigDifference> => {
  if (isPlain(now) && isPlain(then)) {
    const keys = [...new Set([...Object.keys(now), ...Object.keys(then)])]
    return keys.flatMap((key) => differences(now[key], then[key], [...path, key]))
  }
  return JSON.stringify(now) === JSON.stringify(then) ? [] : [{ key: path.map(snakeCase).join("."), now, then }]
}

/** Returns the first path at which two trees differ; undefined if they are equal. */
export const firstDifference = (now: unknown, then: unknown): ConfigDifference | undefined =>
  differences(now, then).at(0)

/** Returns the error message for the first setting that differs from the saved settings; undefined if all are equal. */
export const changedSetting = (now: unknown, saved: unknown): string | undefined => {
  const difference = firstDifference(now, saved)
  return difference === undefined ? undefined : refusalOf(difference)
}

/** Returns the error message for a setting that a resumed run cannot change. */
export const refusalOf = ({ key, now, then }: ConfigDifference): string =>
  `the checkpoint was saved with ${key} = ${display(then)}, found ${display(now)}; use the setting that it was saved with`
