/** Imports the module that the user names, which runs its code. Explains an error of the import in one line. */
import { basename } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Effect } from "effect"
import { exists } from "../../../base/files/files.ts"
import { shownError } from "../../../base/text/text.ts"
import { usageError } from "../output/output.ts"
import { placeIn, shownThrown, UserProcess } from "./userCode.ts"

/**
 * Imports a module of the user and returns its default export; undefined if the module has none. Node imports a file once
 * in each process. With a `version`, which names its content, it imports each version once.
 */
export const loadModule = Effect.fnUntraced(function* (file: string, path: string, version?: string) {
  const { importing, watch } = yield* UserProcess
  const url = pathToFileURL(path)
  if (version !== undefined) url.searchParams.set("version", version)
  const { href } = url
  const load = Effect.tryPromise({ try: () => importing(() => import(href)), catch: (error) => error }).pipe(
    Effect.catch((error) =>
      codeOf(error) === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX" ? loadCompiled(href, error) : Effect.fail(error),
    ),
  )
  const loaded: unknown = yield* Effect.catch(load, (error) =>
    Effect.flatMap(messageFor(error), (message) => Effect.fail(usageError(`${file}: ${message}`))),
  )
  yield* watch
  return defaultExport(loaded)
})

/** Imports a module with tsx, if tsx is installed. It compiles enums and namespaces, which Node can't strip. */
const loadCompiled = Effect.fnUntraced(function* (href: string, error: unknown) {
  const { importing } = yield* UserProcess
  const { register } = yield* Effect.tryPromise({ try: () => import("tsx/esm/api"), catch: () => error })
  // Register tsx for the whole process: if only this module were imported with tsx, it would load a second copy of the
  // library, which doesn't recognise the graphs of the first copy.
  register()
  return yield* Effect.tryPromise({
    // The query makes this a new import. Without it, Node would report the failure of the first import again.
    try: (): Promise<unknown> => importing(() => import(`${href}${href.includes("?") ? "&" : "?"}compiled`)),
    catch: (problem) => problem,
  })
})

const codeOf = (error: unknown): unknown =>
  typeof error === "object" && error !== null && "code" in error ? error.code : undefined

/** Returns the default export of a module. tsx wraps the exports of a CommonJS package a second time. */
const defaultExport = (loaded: unknown): unknown => {
  const value = typeof loaded === "object" && loaded !== null && "default" in loaded ? loaded.default : undefined
  const isWrapped = !Effect.isEffect(value) && typeof value === "object" && value !== null && "default" in value
  return isWrapped ? value.default : value
}

/** Returns one line with the error, the place in the user's own files where it was thrown, and what to do. */
const messageFor = Effect.fnUntraced(function* (error: unknown) {
  if (!(error instanceof Error)) return shownThrown(error)
  const place = placeIn(error.stack)
  return `${shownError(error)}${place === undefined ? "" : ` (${place})`}${yield* hintFor(error)}`
})

const hintFor = Effect.fnUntraced(function* (error: Error) {
  if (codeOf(error) === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") {
    return '; install a compiler for this syntax: "npm install tsx"'
  }
  if (error.message.includes("outside a module")) return '; set "type": "module" in the nearest package.json'
  if (codeOf(error) !== "ERR_MODULE_NOT_FOUND" || !("url" in error) || typeof error.url !== "string") return ""
  // Node requires the extension in the name of an imported file.
  const path = fileURLToPath(error.url).replace(/\.js$/, "")
  return (yield* exists(`${path}.ts`)) ? `; did you mean ${basename(path)}.ts?` : ""
})
