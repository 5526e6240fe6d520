/**
 * Makes the script of the web worker of the page "Play", which is one file without imports. The published package contains it
 * as `worker.bundle.js`, which `npm run build` writes. In a checkout, esbuild makes it from the source when it is first
 * needed.
 */
import { posix } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, FileSystem } from "effect"

/** The name of the script in the published package, in the folder of this module. */
export const bundleName = "worker.bundle.js"

const here = (file: string): string => fileURLToPath(new URL(`./${file}`, import.meta.url))

/** Whether this package is its TypeScript source. */
const isSource = posix.extname(import.meta.url) === ".ts"

/** Bundles the worker from its source. The published package doesn't depend on esbuild, so this works only in a checkout. */
export const bundle: Effect.Effect<Uint8Array> = Effect.promise(() =>
  import("esbuild").then(({ build }) =>
    build({
      // The default would be the folder in which esbuild was loaded, which may no longer exist.
      absWorkingDir: here("."),
      entryPoints: [here("worker.ts")],
      bundle: true,
      format: "iife",
      platform: "browser",
      target: "es2023",
      minify: true,
      write: false,
      logLevel: "silent",
    }),
  ),
).pipe(Effect.map(({ outputFiles }) => outputFiles[0].contents))

const read: Effect.Effect<Uint8Array> = Effect.gen(function* () {
  return yield* (yield* FileSystem.FileSystem).readFile(here(bundleName))
}).pipe(Effect.orDie, Effect.provide(NodeFileSystem.layer))

/**
 * Returns the script, which a process makes or reads only once. It dies if the script is missing, because the script is part
 * of the package. A client that hangs up does not interrupt this, because the script is kept for all clients.
 */
export const workerScript: Effect.Effect<Uint8Array> = Effect.runSync(
  Effect.cached(Effect.uninterruptible(isSource ? bundle : read)),
)
