import { fileURLToPath } from "node:url"
import { Context, Effect, Schema } from "effect"
import { display } from "../../config/Config.ts"
import { shortened, shownError } from "../../config/text.ts"

/**
 * What the user's own code does wrong where no error is foreseen: it throws, or it gives something that is no result.
 * People get one line that names their file; a stack is for bugs of ours.
 */
export class UserCodeError extends Schema.TaggedError<UserCodeError>()("UserCodeError", {
  message: Schema.String,
}) {}

const library = new URL("../../", import.meta.url).href

const isForeign = (place: string): boolean => place.includes("/node_modules/") || place.startsWith(library)

/** The files in a stack, with their lines and columns. */
const placesIn = (stack: string): ReadonlyArray<string> =>
  stack.split("\n").flatMap((line) => /(file:\/\/[^\s)]+:\d+)\)?$/.exec(line)?.[1] ?? [])

/** tsx marks what it compiles by a query. */
const pathOf = (place: string): string => {
  const [, file = place, line = ""] = /^(.*?)(?:\?[^:]*)?((?::\d+)*)$/.exec(place) ?? []
  return `${fileURLToPath(file)}${line}`
}

/** The first line of a stack that is in the user's own files. */
export const placeIn = (stack = ""): string | undefined => {
  const place = placesIn(stack).find((one) => !isForeign(one))
  return place === undefined ? undefined : pathOf(place)
}

/** What was thrown by the user's code, and where; undefined for what the library itself has thrown. */
const thrownByUser = (thrown: unknown): string | undefined => {
  // The library throws nothing else than errors.
  if (!(thrown instanceof Error)) return shownThrown(thrown)
  const [first] = placesIn(thrown.stack ?? "")
  if (first === undefined || isForeign(first)) return undefined
  return `${shownError(thrown)} (${pathOf(first)})`
}

/** What was thrown where nobody could catch it; a defect where it is the library's own. */
export const strayError = (thrown: unknown): Effect.Effect<never, UserCodeError> => {
  const stack = thrown instanceof Error ? (thrown.stack ?? "") : ""
  const place = placeIn(stack)
  if (place === undefined && placesIn(stack).some((one) => one.startsWith(library))) return Effect.die(thrown)
  const what = thrown instanceof Error ? shownError(thrown) : shownThrown(thrown)
  const where = place === undefined ? "" : `${place}: `
  const message = `${where}${what}; nothing could catch it: it was thrown in a timer, or in a promise that is not awaited`
  return Effect.fail(new UserCodeError({ message }))
}

export const shownThrown = (thrown: unknown): string =>
  typeof thrown === "string" ? shortened(thrown) : display(thrown)

/** What a process does about the user's code that it imports; nothing where it is imported by somebody else's process. */
export const UserProcess = Context.Reference<{
  readonly importing: <A>(load: () => Promise<A>) => Promise<A>
  /** Done when the module was imported, before any of its code is called. */
  readonly watch: Effect.Effect<void>
}>("effect-rl/cli/UserProcess", { defaultValue: () => ({ importing: (load) => load(), watch: Effect.void }) })

/** Effect says so of a Layer that nobody has provided. */
const missingService = /^Service not found: (.+)$/

/** A module's default export, that of a program that may be anything: what it throws and gives is checked. */
export const guarded = <A, E, R>(
  file: string,
  training: Effect.Effect<A, E, R>,
): Effect.Effect<A, E | UserCodeError, R> =>
  training.pipe(
    Effect.catchDefect((defect): Effect.Effect<never, UserCodeError> => {
      const service = defect instanceof Error ? missingService.exec(defect.message)?.[1] : undefined
      if (service !== undefined) {
        const message = `${file}: its default export needs the service ${service}; provide it there by Effect.provide`
        return Effect.fail(new UserCodeError({ message }))
      }
      const thrown = thrownByUser(defect)
      if (thrown === undefined) return Effect.die(defect)
      return Effect.fail(new UserCodeError({ message: `${file}: its default export died of ${thrown}` }))
    }),
    Effect.filterOrFail(isResult, (found) => {
      const message = `${file}: expected a default export that gives the result of a run, as Train.run({ … }) does, found ${display(found)}`
      return new UserCodeError({ message })
    }),
  )

/** The types say that it is one; whoever writes none may give anything. */
const isResult = (value: unknown): boolean => typeof value === "object" && value !== null && "runDir" in value

/** What a default export is that is no training, and what to do. */
export const notATraining = (exported: unknown): string => {
  if (exported instanceof Promise) return "a promise; expected Train.run({ … }) itself, or export default await …"
  if (typeof exported === "function") return "a function; expected Train.run({ … }) itself, not what makes it"
  const kind = exported === null ? "null" : typeof exported === "object" ? "an object" : `a ${typeof exported}`
  return `${kind}; expected Train.run({ … })`
}
