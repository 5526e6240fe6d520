/** Compares a checkpoint's settings with the present ones, to tell whether its run can be resumed. It only computes. */
import { display, isPlain, snakeCase } from "./Config.ts"

/** Returns the first path at which two trees differ, in snake_case, with both values; undefined if they are equal. */
export const firstDifference = (
  now: unknown,
  then: unknown,
  path: ReadonlyArray<string> = [],
): { readonly key: string; readonly now: unknown; readonly then: unknown } | undefined => {
  if (isPlain(now) && isPlain(then)) {
    for (const key of new Set([...Object.keys(now), ...Object.keys(then)])) {
      const difference = firstDifference(now[key], then[key], [...path, key])
      if (difference !== undefined) return difference
    }
    return undefined
  }
  return JSON.stringify(now) === JSON.stringify(then) ? undefined : { key: path.map(snakeCase).join("."), now, then }
}

/** Returns the error message for the first setting that differs from the saved settings; undefined if all are equal. */
export const changedSetting = (now: unknown, saved: unknown): string | undefined => {
  const difference = firstDifference(now, saved)
  if (difference === undefined) return undefined
  const { key, then } = difference
  const found = display(difference.now)
  return `the checkpoint was saved with ${key} = ${display(then)}, found ${found}; use the setting that it was saved with`
}
