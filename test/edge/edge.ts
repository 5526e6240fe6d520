import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { build } from "esbuild"
import { serveInWorkerd } from "../bundle/workerd.ts"
import { root } from "../command/cli/effect.ts"

export interface EdgeOptions {
  /** The module of the worker, relative to the checkout. */
  readonly entry: string
  /** The kind of the binding RUNS, and the port at which the test serves it. */
  readonly store: { readonly kind: "kvNamespace" | "r2Bucket"; readonly port: number }
  /** Further bindings: texts by name. */
  readonly texts?: Readonly<Record<string, string>>
}

const configOf = ({ store, texts = {} }: EdgeOptions): string => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = (
      modules = [(name = "worker.js", esModule = embed "worker.js")],
      compatibilityDate = "2026-01-01",
      bindings = [
        (name = "RUNS", ${store.kind} = "store"),
        ${Object.entries(texts)
          .map(([name, text]) => `(name = "${name}", text = "${text}"),`)
          .join("\n        ")}
      ],
    )),
    (name = "store", external = (address = "127.0.0.1:${store.port}", http = ())),
    (name = "internet", network = (allow = ["private", "public"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
`

/** Bundles a worker as one file, and serves it in workerd until the scope closes. */
export const edge = Effect.fnUntraced(function* (options: EdgeOptions) {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(root, ".tmp-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
  )
  yield* Effect.promise(() =>
    build({
      // By default this is the folder in which esbuild was loaded, which a test of the command may have removed by now.
      absWorkingDir: root,
      entryPoints: [join(root, options.entry)],
      outfile: join(folder, "worker.js"),
      bundle: true,
      format: "esm",
      platform: "browser",
      target: "es2023",
      logLevel: "silent",
    }),
  )
  writeFileSync(join(folder, "workerd.capnp"), configOf(options))
  return yield* Effect.acquireRelease(
    Effect.promise(() => serveInWorkerd(folder)),
    (running) => Effect.promise(() => running.stop()),
  )
})

/** Sends a request without a body, and returns the answer's status and JSON. */
export const post = (url: string) =>
  Effect.promise(async () => {
    const response = await fetch(url, { method: "POST" })
    const text = await response.text()
    const body: Readonly<Record<string, unknown>> = text.startsWith("{") ? JSON.parse(text) : { text }
    return { status: response.status, body }
  })
