import { spawn } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

const bin = fileURLToPath(new URL("../../node_modules/workerd/bin/workerd", import.meta.url))

/** The engine of edge workers; undefined where the package is not installed. */
export const workerd = existsSync(bin) ? bin : undefined

const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (services = [(name = "main", worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "2026-01-01"))]);
`

/** Runs `test()` of a worker's default export, and gives the lines that it prints. */
export const inWorkerd = (
  worker: string,
  folder: string,
): Promise<{ readonly code: number | null; readonly lines: ReadonlyArray<string> }> => {
  writeFileSync(join(folder, "worker.js"), worker)
  writeFileSync(join(folder, "config.capnp"), config)
  const child = spawn(bin, ["test", join(folder, "config.capnp")], { stdio: ["ignore", "pipe", "pipe"] })
  let text = ""
  child.stdout.on("data", (chunk) => (text += String(chunk)))
  child.stderr.on("data", (chunk) => (text += String(chunk)))
  return new Promise((resolve, reject) => {
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, lines: text.split("\n") }))
  })
}

export interface Served {
  readonly url: string
  /** The group of the engine's processes. */
  readonly group: number
  /** Returns the output of the engine so far, such as complaints. */
  readonly printed: () => string
  readonly stop: () => Promise<void>
}

/** Serves the worker of a folder with a `workerd.capnp`, whose socket is named `http`, at a free port. */
export const serveInWorkerd = (folder: string): Promise<Served> => {
  // The command of the package starts the engine as a child: a group of their own ends both.
  const flags = ["--socket-addr=http=127.0.0.1:0", "--control-fd=1"]
  const child = spawn(bin, ["serve", "workerd.capnp", ...flags], {
    cwd: folder,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  })
  let text = ""
  const ended = new Promise<void>((resolve) => child.on("close", () => resolve()))
  const stop = (): Promise<void> => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGTERM")
    return ended
  }
  return new Promise((resolve, reject) => {
    const look = (chunk: unknown): void => {
      text += String(chunk)
      const port = /"port":(\d+)/.exec(text)?.[1]
      if (port !== undefined)
        resolve({ url: `http://127.0.0.1:${port}`, group: child.pid ?? 0, printed: () => text, stop })
    }
    child.stdout.on("data", look)
    child.stderr.on("data", look)
    child.on("error", reject)
    child.on("close", () => reject(new Error(`workerd ended: ${text}`)))
  })
}
