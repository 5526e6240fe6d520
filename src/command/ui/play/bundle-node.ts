/**
 * Makes the script of the web worker of the page "Play": one file, without imports. The published package has it as
 * `worker.bundle.js`, which `npm run build` writes. In a checkout, esbuild makes it from the source when it is first
 * needed.
 */
import { posix } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, FileSystem } from "effect"

/** The name of the script in the published package, in the folder of this module. */
export const bundleName = "worker.bundle.js"

const here = (file: string): string => fileURLToPath(new URL(`./${file}`, import.meta.url))

/** Is true if this package is its TypeScript source. */
const isSource = posix.extname(import.meta.url) === ".ts"

/** Bundles the worker from its source. esbuild is no dependency of the published package, so only a checkout has it. */
export const bundle: Effect.Effect<Uint8Array> = Effect.promise(() =>
  import("esbuild").then(({ build }) =>
    build({
      // By default this is the folder in which esbuild was loaded, which may be gone by now.
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

/** Returns the script, which a process makes or reads once. Dies without it, because it is a part of the package. */
export const workerScript: Effect.Effect<Uint8Array> = Effect.runSync(Effect.cached(isSource ? bundle : read))
