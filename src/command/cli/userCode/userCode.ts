/** Recognises the errors of the user's own code, and describes each in one line with the file and line in that code. */
import { createRequire } from "node:module"
import { dirname, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { Context, Effect } from "effect"
import { display } from "../../../base/config/Config.ts"
import { shortened, shownError } from "../../../base/text/text.ts"
import { CommandError } from "../../CommandError.ts"

const library = new URL("../../../", import.meta.url).href

/** Tells whether a location in a stack trace is in a package or in this library, and not in the user's own files. */
const isForeign = (place: string): boolean => place.includes("/node_modules/") || place.startsWith(library)

/** Returns the files in a stack trace, with their lines and columns. */
const placesIn = (stack: string): ReadonlyArray<string> =>
  stack.split("\n").flatMap((line) => /(file:\/\/[^\s)]+:\d+)\)?$/.exec(line)?.[1] ?? [])

/**
 * Returns the path of a `file:` URL with line and column, without the query that tsx adds to the files that it
 * compiles.
 */
const pathOf = (place: string): string => {
  const [, file = place, line = ""] = /^(.*?)(?:\?[^:]*)?((?::\d+)*)$/.exec(place) ?? []
  return `${fileURLToPath(file)}${line}`
}

/** Returns the first location of a stack trace that is in the user's own files; undefined if there is none. */
export const placeIn = (stack = ""): string | undefined => {
  const place = placesIn(stack).find((one) => !isForeign(one))
  return place === undefined ? undefined : pathOf(place)
}

/** Describes an error that the user's code threw, with its location; undefined if the library or a package threw it. */
const thrownByUser = (thrown: unknown): string | undefined => {
  // The library throws only instances of Error.
  if (!(thrown instanceof Error)) return shownThrown(thrown)
  const [first] = placesIn(thrown.stack ?? "")
  if (first === undefined || isForeign(first)) return undefined
  return `${shownError(thrown)} (${pathOf(first)})`
}

/** Converts an error that nothing caught to a failure. An error of this library is a bug, so it stays a defect. */
export const strayError = (thrown: unknown): Effect.Effect<never, CommandError> => {
  const stack = thrown instanceof Error ? (thrown.stack ?? "") : ""
  const place = placeIn(stack)
  if (place === undefined && placesIn(stack).some((one) => one.startsWith(library))) return Effect.die(thrown)
  const what = thrown instanceof Error ? shownError(thrown) : shownThrown(thrown)
  const where = place === undefined ? "" : `${place}: `
  const message = `${where}${what}; nothing could catch it: it was thrown in a timer, or in a promise that is not awaited`
  return Effect.fail(CommandError.failed(message))
}

/** Describes a thrown value that isn't an Error, for a message. */
export const shownThrown = (thrown: unknown): string =>
  typeof thrown === "string" ? shortened(thrown) : display(thrown)

/**
 * Guards this process against the user's code that it imports. main.ts provides the functions of userProcess.ts and watch.ts. The
 * default does nothing, because the command may run inside another program's process, such as a test.
 */
export const UserProcess = Context.Reference<{
  /** Calls `load`, which imports a module of the user, and returns its result. */
  readonly importing: <A>(load: () => Promise<A>) => Promise<A>
  /** Starts to watch for calls that block the process. It runs after the import, before the training starts. */
  readonly watch: Effect.Effect<void>
}>("effect-rl/cli/UserProcess", { defaultValue: () => ({ importing: (load) => load(), watch: Effect.void }) })

/** Matches the message of the error that Effect throws when a service is not provided. */
const missingService = /^Service not found: (.+)$/

/**
 * Runs a module's default export, and checks that it returns the result of a run. Anything that it throws becomes a
 * `CommandError`.
 */
export const guarded = <A, E, R>(
  file: string,
  training: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | CommandError, R> =>
  training.pipe(
    Effect.catchDefect((defect): Effect.Effect<never, CommandError> => {
      const service = defect instanceof Error ? missingService.exec(defect.message)?.[1] : undefined
      if (service !== undefined) {
        const message = `${file}: its default export needs the service ${service}; provide it there by Effect.provide`
        return Effect.fail(CommandError.failed(message))
      }
      const thrown = thrownByUser(defect)
      if (thrown === undefined) {
        const mixed = mixedCopies(file)
        if (mixed === undefined) return Effect.die(defect)
        const what = defect instanceof Error ? shownError(defect) : shownThrown(defect)
        return Effect.fail(CommandError.failed(`${file}: its default export died of ${what}; ${mixed}`))
      }
      return Effect.fail(CommandError.failed(`${file}: its default export died of ${thrown}`))
    }),
    Effect.filterOrFail(isResult, (result) => {
      const message = `${file}: expected a default export that returns the result of a run, as Train.run({ … }) does, found ${display(result)}`
      return CommandError.failed(message)
    }),
  )

/** Returns the folder of the package `effect-rl` that a file imports; undefined if it finds none. */
const packageOf = (from: string): string | undefined => {
  try {
    return dirname(createRequire(from).resolve("effect-rl/package.json"))
  } catch {
    return undefined
  }
}

/**
 * Warns that a file imports another copy of this library than the command, because values of two copies may not work
 * together; undefined if it imports the same copy.
 */
const mixedCopies = (file: string): string | undefined => {
  const [own, imported] = [packageOf(import.meta.url), packageOf(resolve(file))]
  if (own === undefined || imported === undefined || own === imported) return undefined
  return `it imports the effect-rl in ${imported}, but this command is that of ${own}: use "npx effect" in the project of the file`
}

/** Tells whether a value can be the result of a run. A program without types may return anything. */
const isResult = (value: unknown): boolean => typeof value === "object" && value !== null && "runDir" in value

/** Describes a default export that isn't a run, and tells what to export instead, such as `Train.run({ … })`. */
export const notATraining = (exported: unknown, expected: string): string => {
  if (exported instanceof Promise) return `a promise; expected ${expected} itself, or export default await …`
  if (typeof exported === "function") return `a function; expected ${expected} itself, not a function that returns it`
  const kind = exported === null ? "null" : typeof exported === "object" ? "an object" : `a ${typeof exported}`
  return `${kind}; expected ${expected}`
}
