/** Delivers an alert: starts the user's command, or sends the facts to a webhook. A failure is a warning on stderr. */
import { type ChildProcess, spawn } from "node:child_process"
import { Context, Effect, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import { harmless, oneLine, shortened } from "../../../base/text/text.ts"
import { exchange, type ExchangeOptions, type Site, withoutName } from "../../../agents/lm/exchange.ts"
import { httpClient } from "../../../node.ts"
import { killGroup } from "../../../spread/programs/group-node.ts"
import { warningLabel } from "../output/colors.ts"
import { writeError } from "../output/output.ts"
import type { AlertTarget, Moment } from "./alert.ts"

/** What an alert tells: as JSON to a webhook and on a command's standard input, and as variables to a command. */
export interface AlertFacts {
  readonly event: Moment | "threshold"
  /** The folder of the run; of a sweep, the results folder. */
  readonly run: string
  readonly name: string
  readonly environment?: string
  readonly algorithm?: string
  readonly seed?: number
  readonly step?: number
  readonly total_steps?: number
  /** The score of the last validation. */
  readonly validation?: number
  /** The threshold that was passed, and the value that passed it. */
  readonly condition?: string
  readonly value?: number
  /** Why the run failed, or ended early. */
  readonly message?: string
}

/** The limits of a delivery: the times in seconds, and how often a webhook is tried again. Tests make them shorter. */
export const AlertLimits = Context.Reference("effect-rl/cli/AlertLimits", {
  defaultValue: () => ({ commandSeconds: 30, webhookSeconds: 20, maxRetries: 3, startingDelay: 1 }),
})

/** The largest number of characters of a text in the facts, and of a command's errors in a warning. */
const mostCharacters = 2000

const asVariables = (facts: AlertFacts): Record<string, string> =>
  Object.fromEntries(
    Object.entries(facts).flatMap(([key, value]) =>
      value === undefined ? [] : [[`EFFECT_ALERT_${key.toUpperCase()}`, String(value).replaceAll("\0", "")]],
    ),
  )

/** The commands in progress. They end with this process. */
const running = new Set<ChildProcess>()
const endAll = (): void => running.forEach(killGroup)

/** Ends a command with this process, until the result is called. All commands share one listener. */
const endingWithProcess = (child: ChildProcess): (() => void) => {
  if (running.size === 0) process.once("exit", endAll)
  running.add(child)
  return () => {
    running.delete(child)
    if (running.size === 0) process.off("exit", endAll)
  }
}

/** Runs a command with the user's shell. Returns why it failed; undefined if it succeeded. An interruption ends the command. */
const runCommand = (command: string, facts: AlertFacts) =>
  Effect.callback<string | undefined>((resume) => {
    // If the limit of open files is reached, Node makes a child without streams, and emits the error later.
    const child: ChildProcess = spawn(command, {
      shell: true,
      stdio: ["pipe", "ignore", "pipe"],
      env: { ...process.env, ...asVariables(facts) },
      // Ctrl-C in a terminal must reach only the run.
      detached: process.platform !== "win32",
      windowsHide: true,
    })
    let errors = ""
    const release = endingWithProcess(child)
    const settle = (problem: string | undefined): void => {
      release()
      child.stderr?.destroy()
      resume(Effect.succeed(problem))
    }
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (errors = (errors + text).slice(-mostCharacters)))
    // A command need not read its input.
    child.stdin?.on("error", () => {})
    child.stdin?.end(`${JSON.stringify(facts)}\n`)
    child.once("error", ({ message }) => settle(message))
    child.once("exit", (code, signal) => {
      // Processes that the command left behind end with it.
      killGroup(child)
      const last = errors.trimEnd().split("\n").at(-1) ?? ""
      const ending = signal === null ? `it ended with exit code ${code}` : `it was ended by ${signal}`
      settle(code === 0 ? undefined : `${ending}${last === "" ? "" : `: ${oneLine(last)}`}`)
    })
    return Effect.sync(() => killGroup(child))
  })

/** Ends a delivery that takes too long. */
const within = <R>(
  seconds: number,
  delivery: Effect.Effect<string | undefined, never, R>,
  problem: string,
): Effect.Effect<string | undefined, never, R> =>
  Effect.timeoutOrElse(delivery, { duration: seconds * 1000, orElse: () => Effect.succeed(problem) })

/** Sends the facts to a webhook by POST. Returns why that failed; undefined if it succeeded. */
const callWebhook = Effect.fnUntraced(function* (webhook: URL, facts: AlertFacts) {
  const { webhookSeconds, maxRetries, startingDelay } = yield* AlertLimits
  // The path of a webhook is often its key. The path "/" is none, and every address in a message contains it.
  const secrets = [`${webhook.pathname}${webhook.search}`, webhook.pathname].filter((part) => part.length > 1)
  const site: Site = {
    name: webhook.origin,
    client: yield* HttpClient.HttpClient,
    origin: webhook.origin,
    authorization: null,
    secrets: secrets.map((part) => Redacted.make(part)),
    hint: "",
  }
  const request = HttpClientRequest.post(webhook).pipe(HttpClientRequest.bodyJsonUnsafe(facts))
  const options: ExchangeOptions = {
    mostBytes: 64 * 1024,
    isRepeatable: true,
    redirections: "sameOrigin",
    retries: { maxRetries, startingDelay, backoffFactor: 2, maxDelay: 5, jitter: 0 },
  }
  return yield* exchange(site, request, options, () => Effect.undefined).pipe(
    Effect.catch((error) => Effect.succeed(withoutName(site, error))),
    Effect.map((problem) => secrets.reduce((text, secret) => text?.replaceAll(secret, "/…"), problem)),
    (delivery) => within(webhookSeconds, delivery, `it did not take the alert within ${webhookSeconds} seconds`),
  )
})

/** Delivers one alert. It never fails: a failure is a warning, and changes nothing about the run. */
export const deliver = (target: AlertTarget, facts: AlertFacts): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { commandSeconds } = yield* AlertLimits
    // Only the first line: the others are a stack, with paths of this machine.
    const [first] = (facts.message ?? "").split("\n")
    const message = facts.message === undefined ? {} : { message: shortened(first, mostCharacters) }
    const told = { ...facts, ...message }
    const problem =
      "command" in target
        ? yield* within(
            commandSeconds,
            runCommand(target.command, told),
            `it did not end within ${commandSeconds} seconds, so it was ended`,
          )
        : yield* Effect.provide(callWebhook(target.webhook, told), httpClient)
    const name = "command" in target ? shortened(oneLine(target.command), 80) : target.webhook.origin
    if (problem !== undefined)
      yield* writeError(`${warningLabel()} the alert to ${harmless(name)} failed: ${harmless(problem)}\n`)
  }).pipe(
    Effect.catchDefect((defect) => writeError(`${warningLabel()} an alert failed: ${harmless(String(defect))}\n`)),
  )
