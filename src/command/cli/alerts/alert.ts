/**
 * Reads the flag `--alert`: when to alert, and what to start or where to send it. Only the user's own command line has alerts,
 * never a config: an alert starts a program. These are pure functions.
 *
 * @example
 * ```ts
 * parseAlert("failed, validation>=475: notify-send 'effect-rl'")
 * // { alert: { moments: ["failed"], thresholds: [{ key: "validation/score", … }], target: { command: "notify-send …" } } }
 * parseAlert("ended: https://hooks.example.org/runs") // a webhook
 * ```
 */
import { numberOf } from "../../../run/find/Value.ts"

/** How a run can end. The moment `ended` of a flag means all of them. */
const moments = ["finished", "failed", "stopped"] as const
export type Moment = (typeof moments)[number]

const operators = {
  ">": (value: number, limit: number) => value > limit,
  ">=": (value: number, limit: number) => value >= limit,
  "<": (value: number, limit: number) => value < limit,
  "<=": (value: number, limit: number) => value <= limit,
}

/** A condition on a metric, such as `validation>=475`. */
export interface Threshold {
  /** The condition as the user wrote it, without spaces. */
  readonly text: string
  /** The name of the metric in TensorBoard. */
  readonly key: string
  readonly isPassed: (value: number) => boolean
}

/** A command for the shell, or the address of a webhook. */
export type AlertTarget = { readonly command: string } | { readonly webhook: URL }

export interface Alert {
  readonly moments: ReadonlyArray<Moment>
  readonly thresholds: ReadonlyArray<Threshold>
  readonly target: AlertTarget
}

/** The largest number of alerts of a command, and of characters of one. */
export const most = { alerts: 16, characters: 4096 }

const thresholdOf = (text: string): Threshold | undefined => {
  const [, key, operator, limitText] = /^([^\s<>=!]+)\s*(<=|>=|<|>)\s*(\S+)$/.exec(text) ?? []
  const limit = numberOf(limitText ?? "")
  if (limit === undefined) return undefined
  const compare = Object.entries(operators).find(([symbol]) => symbol === operator)?.[1]
  if (compare === undefined) return undefined
  const metric = key === "validation" ? "validation/score" : key
  return { text: `${key}${operator}${limitText}`, key: metric, isPassed: (value) => compare(value, limit) }
}

const targetOf = (text: string): AlertTarget | string => {
  if (!/^https?:/i.test(text)) return { command: text }
  const webhook = URL.parse(text)
  if (webhook === null || webhook.username !== "" || webhook.password !== "" || /\s/.test(text))
    return "expected an address such as https://hooks.example.org/runs, without a user"
  return { webhook }
}

/** Parses the value of one flag `--alert`. A problem does not repeat the target, which may contain a key. */
export const parseAlert = (text: string): { readonly alert: Alert } | { readonly problem: string } => {
  const [, when = "", wanted = ""] = /^([^:]*):(.*)$/s.exec(text) ?? []
  if (text.length > most.characters) return { problem: `expected at most ${most.characters} characters` }
  if (when.trim() === "" || wanted.trim() === "" || wanted.includes("\0"))
    return { problem: "expected WHEN: COMMAND or WHEN: URL, such as 'ended: notify-send done'" }
  const own: Array<Moment> = []
  const thresholds: Array<Threshold> = []
  for (const part of when.split(",").map((one) => one.trim())) {
    const threshold = thresholdOf(part)
    const moment = moments.find((one) => one === part)
    if (part === "ended") own.push(...moments)
    else if (moment !== undefined) own.push(moment)
    else if (threshold !== undefined) thresholds.push(threshold)
    else
      return {
        problem: `expected ended, finished, failed, stopped or a threshold such as validation>=475, found ${JSON.stringify(part)}`,
      }
  }
  const target = targetOf(wanted.trim())
  return typeof target === "string"
    ? { problem: target }
    : { alert: { moments: [...new Set(own)], thresholds, target } }
}
